// Inside the explain command: the formulas' symbols, and the class that computes and lists the steps.
#pragma once

#include <string>
#include <vector>

#include "qkv/lab/explain/explain.h"

namespace qkv::lab {

/// A piece of a formula, as plain text and as LaTeX.
struct Symbol {
  std::string text, latex;

  Symbol() = default;
  Symbol(const char* both) : text(both), latex(both) {}         // NOLINT: formulas read as formulas
  Symbol(const std::string& both) : text(both), latex(both) {}  // NOLINT
  Symbol(std::string text_form, std::string latex_form) : text(std::move(text_form)), latex(std::move(latex_form)) {}
};
inline Symbol operator+(const Symbol& a, const Symbol& b) { return {a.text + b.text, a.latex + b.latex}; }
/// letter_index, or the letter alone.
inline Symbol indexed(const std::string& letter, const std::string& index) {
  return index.empty() ? Symbol(letter) : Symbol(letter + "_" + index, letter + "_{" + index + "}");
}
inline Symbol gradient(const Symbol& s) { return Symbol("d", "\\mathrm{d}") + s; }
inline Symbol transposed(const Symbol& s) { return s + Symbol("ᵀ", "^\\top"); }

/// Runs forward and backward in stages. Each stage starts from its own leaves, so that every gradient is left
/// where it can be shown.
class Explainer {
 public:
  explicit Explainer(const ExplainInput& input) : in_(input), rule_(input.rule) {}
  Explanation run();

 private:
  // Queries, keys or values on their way from the source to the heads.
  struct Role {
    Symbol source, weight, whole;  // X, W_Q, Q
    std::string letter;            // "Q"; heads are Q_1, Q_2, …
    std::string as;                // "k" when the source has other roles too: dX_k is its gradient as keys
    Tensor from, w;                // leaves; w undefined: no projection
    Tensor projected;              // [L, H·D], recorded
  };
  struct Head {
    std::string index;  // "1", "2", …; empty when there is one head
    Symbol q, k, v, s, p, o;
    Tensor q_in, k_in, v_in, bias;  // leaves, [1, L, D] and [Lq, Lk]
    Tensor out;                     // [1, Lq, Dv], recorded
  };
  struct Axes {
    std::string rows, columns;
  };

  // Forward: explain_forward.cc.
  void check();
  void show_given();
  Role project(const std::string& letter, const ExplainInput::Named& named, const Tensor& from, const Tensor& w);
  void prepare_rule();
  void forward_head(int64_t h);
  Symbol show_scores(const Head& head);
  void forward_output();
  Tensor scores(const Head& head, ScoreStage stage) const;
  Tensor head_of(const Role& role, int64_t h) const;
  int roles_of(const Tensor& source) const;
  std::string source_rows(const Tensor& source) const;

  // Backward: explain_backward.cc.
  void backward();
  void backward_head(Head& head, const Tensor& d_o);
  void backward_projections();
  void show_source_gradient(const Role& role);
  Symbol normaliser_gradient(const Head& head) const;
  Tensor joined(Tensor Head::*part) const;

  void add(const Symbol& name, const Symbol& formula, const Tensor& value, const Axes& axes,
           const std::string& note = "");
  [[noreturn]] static void refuse(const std::string& what);
  static Tensor leaf(const Tensor& t);
  static Tensor flat(const Tensor& t);  // [1, L, D] → [L, D]
  bool many() const { return heads_.size() > 1; }

  const ExplainInput& in_;
  ScoreRule rule_;
  Explanation out_;
  Role roles_[3];     // queries, keys, values
  Symbol scale_, y_;  // " / √2" and the output's name
  std::vector<Head> heads_;
  Tensor w_o_;     // leaf
  Tensor concat_;  // leaf, [Lq, H·Dv]
  Tensor result_;  // [Lq, C], recorded
  bool in_backward_ = false;
};

}  // namespace qkv::lab
