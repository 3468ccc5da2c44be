// What the explain command and the page show: a small attention example with every intermediate value, forward and
// backward.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/ops/attention.h"

namespace qkv::lab {

/// A small example, all matrices f64. Without W_Q the queries are q itself, and so on; q, k and v may be one matrix.
struct ExplainInput {
  struct Named {
    std::string name;  // "X", "q", …
    Tensor matrix;     // [L, C]
  };
  std::string title;
  Named q, k, v;
  Tensor w_q, w_k, w_v;  // [C, H·D], [C, H·D], [C, H·Dv]; undefined: no projection
  Tensor w_o;            // [H·Dv, C]; undefined: the heads' outputs side by side
  int64_t heads = 1;
  ScoreRule rule;
  Tensor d_out;  // gradient of the output; undefined: ones
  bool backward = true;
};

/// One matrix of the explanation.
struct ExplainStep {
  std::string name;           // "S_1"
  std::string formula;        // "Q_1 K_1ᵀ / √2"; empty for what was given
  std::string latex_name;     // "S_1"
  std::string latex;          // "Q_1 K_1^\top / \sqrt{2}"
  std::string note;           // one line of description
  Tensor value;               // [rows, columns]; hidden scores are -inf
  std::string rows, columns;  // what they are: "q" labels q1, q2, …; empty: no labels
  bool backward = false;
  bool given = false;
};

struct Explanation {
  std::string title;
  double scale = 1;
  std::string normaliser;
  std::vector<ExplainStep> steps;
  const ExplainStep& step(const std::string& name) const;  // throws ConfigError for an unknown name
};

/// Computes every step with the library's own ops. Throws ShapeError naming the matrices that do not fit.
Explanation explain(const ExplainInput& input);

/// What may be chosen of the tiny Transformer block.
struct BlockInput {
  bool pre_norm = false;  // x + f(norm(x)); otherwise norm(x + f(x)), the original
  bool causal = false;
};
/// Every forward step of the block, from the embedding to its output.
Explanation explain_block(const BlockInput& input);

/// The built-in examples: query, self, heads. Throws ConfigError for another name.
ExplainInput builtin_example(const std::string& name);

std::string explanation_text(const Explanation& e, int digits);
std::string explanation_json(const Explanation& e);
/// A fragment that needs the package amsmath.
std::string explanation_latex(const Explanation& e, int digits);

/// "1,2;3,4" → [2, 2]. `what` opens the message of the ConfigError thrown for anything else.
Tensor parse_matrix(const std::string& text, const std::string& what);

}  // namespace qkv::lab
