// Modules are value members plus one visit(); optimizer, checkpoint, export and counting all read that one list.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/parameter.h"

namespace qkv {

class Visitor;

/// What has parameters: a class with visit(Visitor&).
template <class M>
concept Module = requires(M& m, Visitor& v) {
  m.visit(v);
};

/// Walks a module tree and sees every parameter once, under its dotted path ("encoder.0.query.weight").
class Visitor {
 public:
  virtual ~Visitor() = default;

  /// A parameter; undefined tensors (an absent bias) are passed over.
  void operator()(std::string_view name, Tensor& parameter) {
    const Scope scope(*this, name);
    if (parameter.defined()) see(path_, parameter);
  }
  /// A child module.
  template <Module M>
  void operator()(std::string_view name, M& child) {
    const Scope scope(*this, name);
    child.visit(*this);
  }
  template <Module M>
  void operator()(std::string_view name, std::unique_ptr<M>& child) {
    if (child) (*this)(name, *child);
  }
  /// Children by number: name.0, name.1, …
  template <class M>
  void operator()(std::string_view name, std::vector<M>& children) {
    const Scope scope(*this, name);
    for (size_t i = 0; i < children.size(); ++i) (*this)(std::to_string(i), children[i]);
  }

 protected:
  /// Called for every parameter, in the order of the visits.
  virtual void see(const std::string& path, Tensor& parameter) = 0;

 private:
  struct Scope {
    Scope(Visitor& v, std::string_view name) : visitor(v), length(v.path_.size()) {
      if (length > 0) v.path_ += '.';
      v.path_ += name;
    }
    ~Scope() { visitor.path_.resize(length); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    Visitor& visitor;
    size_t length;
  };
  std::string path_;
};

/// All parameters of a module in visiting order.
template <Module M>
std::vector<NamedParameter> parameters(M& module) {
  struct List final : Visitor {
    std::vector<NamedParameter> found;
    void see(const std::string& path, Tensor& parameter) override { found.push_back({path, parameter}); }
  } list;
  module.visit(list);
  return std::move(list.found);
}

/// Number of trained values.
template <Module M>
int64_t parameter_count(M& module) {
  int64_t n = 0;
  for (const NamedParameter& p : parameters(module)) n += p.value.numel();
  return n;
}

}  // namespace qkv
