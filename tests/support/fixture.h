// Reads the committed fixtures and compares modules with them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "qkv/core/grad_check.h"
#include "qkv/nn/module.h"
#include "qkv/ops/ops.h"
#include "support/paths.h"

namespace qkv::testing {

/// Named tensors of one file: lines "name d0 d1 …" each followed by a line of numbers.
class Fixture {
 public:
  explicit Fixture(const std::string& name) {
    const std::string path = qkv::testing::fixtures() + "/" + name;
    std::ifstream in(path);
    if (!in) throw std::runtime_error("no fixture " + path);
    std::string head, body;
    while (std::getline(in, head) && std::getline(in, body)) {
      std::istringstream words(head), numbers(body);
      std::string key;
      words >> key;
      Shape shape;
      for (int64_t size; words >> size;) shape.push_back(size);
      std::vector<double> values;
      for (double v; numbers >> v;) values.push_back(v);
      tensors_.emplace(key, Tensor::from(std::span<const double>(values), shape).to(DType::f32));
    }
  }

  bool has(const std::string& name) const { return tensors_.count(name) > 0; }
  Tensor operator[](const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::runtime_error("no tensor " + name + " in the fixture");
    return found->second.clone();
  }
  std::vector<int64_t> ints(const std::string& name) const {
    std::vector<int64_t> out;
    for (double v : (*this)[name].to_doubles()) out.push_back(static_cast<int64_t>(std::llround(v)));
    return out;
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

/// Largest |a - b|, infinite when the shapes differ.
inline double distance(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || !(a.shape() == b.shape())) return std::numeric_limits<double>::infinity();
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = std::abs(x[i] - y[i]);
    if (!(d <= worst)) worst = d;
  }
  return worst;
}

inline void expect_close(const Tensor& got, const Tensor& wanted, double tolerance, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.shape().str(), wanted.shape().str()) << what;
  double largest = 1;
  for (double v : wanted.to_doubles()) largest = std::max(largest, std::abs(v));
  EXPECT_LE(distance(got, wanted), tolerance * largest) << what;
}

inline void expect_same_bits(const Tensor& a, const Tensor& b, const std::string& what) {
  EXPECT_EQ(distance(a, b), 0.0) << what;
}

/// Replaces every parameter's numbers by the fixture's "param.NAME"; the names must be the same set.
template <Module M>
void load_parameters(M& module, const Fixture& fixture, const std::string& prefix = "param.") {
  for (NamedParameter& p : parameters(module)) p.value.copy_from(fixture[prefix + p.name]);
}

/// Compares every parameter's gradient with the fixture's "grad.NAME".
template <Module M>
void expect_gradients(M& module, const Fixture& fixture, double tolerance, const std::string& prefix = "grad.") {
  for (const NamedParameter& p : parameters(module)) {
    expect_close(p.value.grad(), fixture[prefix + p.name], tolerance, prefix + p.name);
  }
}

/// Gradient check of fn over all parameters of the module (as f64) and the extra inputs.
template <Module M>
GradCheckResult check_module(M& module, const std::vector<Tensor>& inputs,
                             const std::function<Tensor(const std::vector<Tensor>&)>& fn,
                             const GradCheckOptions& options = {}) {
  struct Assign final : Visitor {
    const std::vector<Tensor>* values = nullptr;
    size_t next = 0;
    void see(const std::string&, Tensor& parameter) override { parameter = (*values)[next++]; }
  };
  std::vector<Tensor> all;
  for (const NamedParameter& p : parameters(module)) all.push_back(p.value);
  const size_t count = all.size();
  all.insert(all.end(), inputs.begin(), inputs.end());
  return grad_check(
      [&](const std::vector<Tensor>& leaves) {
        Assign assign;
        assign.values = &leaves;
        module.visit(assign);
        return fn({leaves.begin() + static_cast<std::ptrdiff_t>(count), leaves.end()});
      },
      all, options);
}

}  // namespace qkv::testing
