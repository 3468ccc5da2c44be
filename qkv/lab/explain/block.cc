// A whole Transformer block of a tiny model: embedding, positions, heads, residuals, layer norms, feed-forward.
#include <cmath>

#include "qkv/lab/explain/steps.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

constexpr double kEpsilon = 1e-5;

// Numbers that can be followed by hand. The vocabulary is: attention, is, all, you, need.
struct TinyModel {
  Tensor embedding =
      Tensor::from({1, 0, -1, 0.5, 0, 1, 0.5, -1, -0.5, 1, 1, 0, 0.5, 0.5, 0, 1, 1, -1, 0, 0}, {5, 4}, DType::f64);
  Tensor w_q = Tensor::from({1, 0, 0.5, 0, 0, 1, 0, 0.5, 0.5, 0, 1, 0, 0, -0.5, 0, 1}, {4, 4}, DType::f64);
  Tensor w_k = Tensor::from({0, 1, 1, 0, 1, 0, 0, 1, 0, 0.5, -1, 0, 0.5, 0, 0, -1}, {4, 4}, DType::f64);
  Tensor w_v = Tensor::from({1, 0, 0, 1, 0, 1, 1, 0, -1, 0, 0.5, 0, 0, -1, 0, 0.5}, {4, 4}, DType::f64);
  Tensor w_o = Tensor::from({0.5, 0, 0, 1, 0, 0.5, 1, 0, 0, 1, 0.5, 0, 1, 0, 0, 0.5}, {4, 4}, DType::f64);
  Tensor w_1 = Tensor::from({1, 0, 0, 0.5, -1, 0, 0, 1, 0, -0.5, 0, 1, 0, 0, 1, 0, 0.5, -1, 0.5, -1, 0, 1, 0, 0.5},
                            {4, 6}, DType::f64);
  Tensor b_1 = Tensor::from({0, 0.5, 0, -0.5, 0, 0}, {1, 6}, DType::f64);
  Tensor w_2 = Tensor::from({0.5, 0, 0, 1, 0, 1, 0.5, 0, 1, 0, 0, -0.5, 0, -1, 1, 0, 0.5, 0, 1, 0, 0, 0.5, 0, 1},
                            {6, 4}, DType::f64);
  Tensor b_2 = Tensor::from({0, 0, 0.5, 0}, {1, 4}, DType::f64);
  Tensor gamma_1 = Tensor::from({1, 1, 1, 1}, {4}, DType::f64), beta_1 = Tensor::zeros({4}, DType::f64);
  Tensor gamma_2 = Tensor::from({1, 2, 1, 0.5}, {4}, DType::f64);
  Tensor beta_2 = Tensor::from({0, 0, 0.5, 0}, {4}, DType::f64);
};

// Lists the steps of a block as they are computed.
class BlockExplainer {
 public:
  BlockExplainer(const BlockInput& input, Explanation& out) : in_(input), out_(out) {}

  void run() {
    const Tensor x = embed();
    const Tensor x1 = in_.pre_norm ? add("X_1", "X + Y", x + attend("N_1", normed("1", "X", x)), "residual")
                                   : normed("1", "R_1", add("R_1", "X + Y", x + attend("X", x), "residual"));
    if (in_.pre_norm) {
      add("X_2", "X_1 + F", x1 + feed("N_2", normed("2", "X_1", x1)),
          "residual: the block's output; a stack of such blocks ends with a norm");
    } else {
      normed("2", "R_2", add("R_2", "X_1 + F", x1 + feed("X_1", x1), "residual"));
    }
  }

 private:
  Tensor embed() {
    const std::vector<int64_t> ids{0, 1, 2};
    given("E", model_.embedding, "given: the vocabulary is attention, is, all, you, need");
    const Tensor tokens = add("T", Symbol("rows 1, 2, 3 of E", "\\text{rows 1, 2, 3 of }E"),
                              embedding(model_.embedding, ids), "the tokens: attention is all");
    Tensor positions = Tensor::zeros({3, 4}, DType::f64);
    for (int64_t i = 0; i < 12; ++i) {
      const int64_t row = i / 4, pair = i % 4 / 2;
      const double angle = double(row) / std::pow(10000.0, double(2 * pair) / 4);
      positions.f64()[i] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
    const Symbol pos("Pos", "\\mathrm{Pos}");
    add(pos, Symbol("sin and cos of i / 10000^(2j/4)", "\\sin, \\cos(i / 10000^{2j/4})"), positions,
        "positions i = 0, 1, 2: sines in even columns, cosines in odd");
    return add("X", "T + " + pos, tokens + positions, "what the block reads");
  }

  // The attention explained as everywhere else, on the matrix `name`.
  Tensor attend(const std::string& name, const Tensor& x) {
    ExplainInput a;
    a.q = a.k = a.v = {name, x};
    a.w_q = model_.w_q;
    a.w_k = model_.w_k;
    a.w_v = model_.w_v;
    a.w_o = model_.w_o;
    a.heads = 2;
    a.rule.causal = in_.causal;
    a.backward = false;
    Explanation e = explain(a);
    out_.scale = e.scale;
    out_.normaliser = e.normaliser;
    for (ExplainStep& step : e.steps) {
      if (step.name != name) out_.steps.push_back(std::move(step));
    }
    return out_.steps.back().value;
  }

  // N(x), with the mean and the variance of every token.
  Tensor normed(const std::string& index, const std::string& name, const Tensor& x) {
    const Tensor &gamma = index == "1" ? model_.gamma_1 : model_.gamma_2,
                 &beta = index == "1" ? model_.beta_1 : model_.beta_2;
    given(indexed("γ", "\\gamma", index), reshape(gamma, {1, 4}), "given");
    given(indexed("β", "\\beta", index), reshape(beta, {1, 4}), "given");
    const Tensor middle = mean(x, 1, true), off = x - middle;
    const Symbol mu = indexed("μ", "\\mu", index), variance = indexed("var", "\\sigma^2", index);
    add(mu, Symbol("mean of each row of ", "\\text{mean of each row of }") + name, middle, "layer norm: one per token");
    add(variance, Symbol("mean of (", "\\text{mean of }(") + name + " - " + mu + Symbol(")²", ")^2"),
        mean(off * off, 1, true), "");
    const Symbol result = in_.pre_norm ? Symbol("N_" + index) : Symbol("X_" + index);
    return add(result,
               indexed("γ", "\\gamma", index) + Symbol(" ∘ (", " \\circ (") + name + " - " + mu +
                   Symbol(") / √(", ") / \\sqrt{") + variance + Symbol(" + 1e-5) + ", " + 10^{-5}} + ") +
                   indexed("β", "\\beta", index),
               layer_norm(x, gamma, beta, kEpsilon),
               in_.pre_norm || index == "1" ? "normed" : "normed: the block's output");
  }

  Tensor feed(const std::string& name, const Tensor& x) {
    given("W_1", model_.w_1, "given");
    given("b_1", model_.b_1, "given");
    given("W_2", model_.w_2, "given");
    given("b_2", model_.b_2, "given");
    const Tensor u = add("U", name + " W_1 + b_1", matmul(x, model_.w_1) + model_.b_1, "feed-forward: 6 units");
    const Tensor g = add("G", "max(0, U)", relu(u), "");
    return add("F", "G W_2 + b_2", matmul(g, model_.w_2) + model_.b_2, "what the feed-forward block adds");
  }

  static Symbol indexed(const std::string& text, const std::string& latex, const std::string& index) {
    return {text + "_" + index, latex + "_{" + index + "}"};
  }

  void given(const Symbol& name, const Tensor& value, const std::string& note) {
    push(name, {}, value, note);
    out_.steps.back().given = true;
    out_.steps.back().rows.clear();
  }
  Tensor add(const Symbol& name, const Symbol& formula, const Tensor& value, const std::string& note) {
    push(name, formula, value, note);
    return value;
  }
  void push(const Symbol& name, const Symbol& formula, const Tensor& value, const std::string& note) {
    ExplainStep step;
    step.name = name.text;
    step.latex_name = name.latex;
    step.formula = formula.text;
    step.latex = formula.latex;
    step.note = note;
    step.value = value.clone();
    step.rows = "x";
    out_.steps.push_back(std::move(step));
  }

  const BlockInput& in_;
  Explanation& out_;
  TinyModel model_;
};

}  // namespace

Explanation explain_block(const BlockInput& input) {
  Explanation out;
  out.title = std::string("A Transformer block on three tokens: width 4, two heads, six feed-forward units, ") +
              (input.pre_norm ? "pre-norm" : "post-norm");
  BlockExplainer(input, out).run();
  return out;
}

}  // namespace qkv::lab
