// The steps of a small attention example, each computed by the library's ops in f64.
#include <cmath>
#include <cstdio>
#include <utility>

#include "qkv/app/explain.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/ops/ops.h"

namespace qkv::app {
namespace {

std::string short_number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

// A name of a formula in text and in LaTeX.
struct Symbol {
  std::string text, latex;
};
Symbol plain(const std::string& name) { return {name, name}; }
Symbol symbol(const std::string& letter, const std::string& index) {
  return index.empty() ? plain(letter) : Symbol{letter + "_" + index, letter + "_{" + index + "}"};
}
Symbol gradient(const Symbol& s) { return {"d" + s.text, "\\mathrm{d}" + s.latex}; }

// Queries, keys or values on their way from the source to the heads. Each stage is a leaf of its own, so that
// backward, run stage by stage, leaves every gradient where it can be shown.
struct Role {
  Symbol source, weight, whole;  // X, W_Q, Q
  std::string letter;            // "Q"; heads are Q_1, Q_2, …
  std::string rows;              // "q" or "k"
  std::string as;                // "k" when the source has other roles too: dX_k is its gradient as keys
  Tensor projected;              // [L, H·D], recorded
  Tensor leaf;                   // the same numbers, cut off
};

class Explainer {
 public:
  explicit Explainer(const ExplainInput& input) : in_(input), rule_(input.rule) {}

  Explanation run() {
    out_.title = in_.title;
    check();
    show_given();
    roles_[0] = project("Q", "q", in_.q, w_q_);
    roles_[1] = project("K", "k", in_.k, w_k_);
    roles_[2] = project("V", "k", in_.v, w_v_);
    prepare_rule();
    for (int64_t h = 0; h < in_.heads; ++h) forward_head(h);
    forward_output();
    if (in_.backward) backward();
    return std::move(out_);
  }

 private:
  static constexpr int64_t kMost = 64;

  struct Head {
    std::string index;  // "1", "2", …; empty when there is one head
    Symbol q, k, v, s, p, o;
    Tensor q_in, k_in, v_in, bias;  // leaves, [1, L, D] and [Lq, Lk]
    Tensor out;                     // [1, Lq, Dv], recorded
    Tensor weights;                 // [Lq, Lk]
  };

  [[noreturn]] static void refuse(const std::string& what) { throw ShapeError("[explain] " + what); }

  static Tensor leaf(const Tensor& t) {
    if (!t.defined()) return t;
    Tensor copy = t.detach();
    copy.set_requires_grad(true);
    return copy;
  }

  void check() {
    const std::pair<const char*, const Tensor*> all[] = {
        {"q", &in_.q.matrix}, {"k", &in_.k.matrix}, {"v", &in_.v.matrix}, {"W_Q", &in_.w_q},
        {"W_K", &in_.w_k},    {"W_V", &in_.w_v},    {"W_O", &in_.w_o}};
    for (const auto& [name, t] : all) {
      if (!t->defined()) continue;
      if (t->rank() != 2 || t->numel() == 0) refuse(std::string(name) + " must be a matrix, got " + t->shape().str());
      if (t->dim(0) > kMost || t->dim(1) > kMost) {
        refuse(std::string(name) + "=" + t->shape().str() +
               " is too large to read; at most 64 rows and columns here, "
               "'qkv attend' takes any size");
      }
    }
    q_leaf_ = leaf(in_.q.matrix);
    k_leaf_ = in_.k.matrix.same_as(in_.q.matrix) ? q_leaf_ : leaf(in_.k.matrix);
    v_leaf_ = in_.v.matrix.same_as(in_.q.matrix)   ? q_leaf_
              : in_.v.matrix.same_as(in_.k.matrix) ? k_leaf_
                                                   : leaf(in_.v.matrix);
    w_q_ = leaf(in_.w_q);
    w_k_ = leaf(in_.w_k);
    w_v_ = leaf(in_.w_v);
    w_o_ = leaf(in_.w_o);
  }

  void add(const Symbol& name, const Symbol& formula, const Tensor& value, const std::string& rows,
           const std::string& columns, const std::string& note = "") {
    ExplainStep step;
    step.name = name.text;
    step.latex_name = name.latex;
    step.formula = formula.text;
    step.latex = formula.latex;
    step.note = note;
    step.value = value.clone();
    step.rows = rows;
    step.columns = columns;
    step.backward = in_backward_;
    step.given = formula.text.empty();
    out_.steps.push_back(std::move(step));
  }

  void show_given() {
    add(plain(in_.q.name), {}, q_leaf_, source_rows(q_leaf_), "", "given");
    if (!k_leaf_.same_as(q_leaf_)) add(plain(in_.k.name), {}, k_leaf_, "k", "", "given");
    if (!v_leaf_.same_as(q_leaf_) && !v_leaf_.same_as(k_leaf_)) add(plain(in_.v.name), {}, v_leaf_, "k", "", "given");
    const std::pair<const char*, const Tensor*> weights[] = {{"Q", &w_q_}, {"K", &w_k_}, {"V", &w_v_}, {"O", &w_o_}};
    for (const auto& [name, w] : weights) {
      if (w->defined()) add(symbol("W", name), {}, *w, "", "", "given");
    }
  }

  std::string source_rows(const Tensor& source) const {
    return !source.same_as(q_leaf_) ? "k" : roles_of(source) > 1 ? "x" : "q";
  }
  int roles_of(const Tensor& source) const {
    return (source.same_as(q_leaf_) ? 1 : 0) + (source.same_as(k_leaf_) ? 1 : 0) + (source.same_as(v_leaf_) ? 1 : 0);
  }

  Role project(const std::string& letter, const std::string& rows, const ExplainInput::Named& from, const Tensor& w) {
    const Tensor source = letter == "Q" ? q_leaf_ : letter == "K" ? k_leaf_ : v_leaf_;
    Role role{plain(from.name), symbol("W", letter), plain(letter), letter, rows, "", {}, {}};
    if (w.defined()) {
      if (source.dim(1) != w.dim(0)) {
        refuse(from.name + "=" + source.shape().str() + " does not fit W_" + letter + "=" + w.shape().str());
      }
      role.projected = matmul(source, w);  // [L, H·D]
    } else {
      role.projected = affine(source, 1);
      role.whole = plain(from.name);
      role.letter = from.name;
      if (roles_of(source) > 1) role.as = letter == "Q" ? "q" : letter == "K" ? "k" : "v";
    }
    role.leaf = leaf(role.projected);
    if (role.leaf.dim(1) % in_.heads != 0) {
      refuse(role.whole.text + "=" + role.leaf.shape().str() + " cannot be cut into " + std::to_string(in_.heads) +
             " heads");
    }
    if (w.defined()) {
      const std::string columns = std::to_string(role.leaf.dim(1) / in_.heads);
      add(role.whole, {from.name + " W_" + letter, from.name + " W_" + letter}, role.projected, rows, "",
          in_.heads > 1 ? columns + " columns a head" : "");
    }
    return role;
  }

  void prepare_rule() {
    const int64_t D = roles_[0].leaf.dim(1) / in_.heads;
    if (roles_[1].leaf.dim(1) != roles_[0].leaf.dim(1)) {
      refuse("widths differ: " + roles_[0].whole.text + "=" + roles_[0].leaf.shape().str() + ", " +
             roles_[1].whole.text + "=" + roles_[1].leaf.shape().str());
    }
    if (roles_[1].leaf.dim(0) != roles_[2].leaf.dim(0)) {
      refuse("one value for each key: " + roles_[1].whole.text + "=" + roles_[1].leaf.shape().str() + ", " +
             roles_[2].whole.text + "=" + roles_[2].leaf.shape().str());
    }
    out_.scale = rule_.scale.value_or(1 / std::sqrt(static_cast<double>(D)));
    if (!rule_.scale) {
      scale_ = {" / √" + std::to_string(D), " / \\sqrt{" + std::to_string(D) + "}"};
    } else if (*rule_.scale != 1) {
      scale_ = {" · " + short_number(*rule_.scale), " \\cdot " + short_number(*rule_.scale)};
    }
    switch (rule_.normaliser) {
      case Normaliser::softmax:
        out_.normaliser = "softmax";
        break;
      case Normaliser::sparsemax:
        out_.normaliser = "sparsemax";
        break;
      case Normaliser::entmax15:
        out_.normaliser = "entmax15";
        break;
      case Normaliser::hard:
        out_.normaliser = "hardmax";
        break;
    }
  }

  Tensor scores(const Head& head, ScoreStage stage) const {
    return attention_scores(head.q_in.detach(), head.k_in.detach(), rule_,
                            {.b = 0, .h = 0, .row_begin = 0, .row_end = head.q_in.dim(1), .stage = stage});
  }

  // Columns of head h as [1, L, D], a leaf.
  Tensor head_of(const Role& role, int64_t h) const {
    const int64_t width = role.leaf.dim(1) / in_.heads;
    const Tensor columns = slice(role.leaf.detach(), 1, h * width, (h + 1) * width).clone();
    return leaf(reshape(columns, {1, columns.dim(0), width}));
  }

  void forward_head(int64_t h) {
    const std::string index = in_.heads > 1 ? std::to_string(h + 1) : "";
    const auto of = [&](const Role& role) { return index.empty() ? role.whole : symbol(role.letter, index); };
    Head head;
    head.index = index;
    head.q = of(roles_[0]);
    head.k = of(roles_[1]);
    head.v = of(roles_[2]);
    head.s = symbol("S", index);
    head.p = symbol("P", index);
    head.o = symbol("O", index);
    head.q_in = head_of(roles_[0], h);
    head.k_in = head_of(roles_[1], h);
    head.v_in = head_of(roles_[2], h);
    const int64_t Lq = head.q_in.dim(1), Lk = head.k_in.dim(1);
    Symbol last = show_scores(head, index);
    head.bias = leaf(rule_.bias.defined() ? contiguous(expand(rule_.bias.detach(), {Lq, Lk}))
                                          : Tensor::zeros({Lq, Lk}, DType::f64));
    ScoreRule rule = rule_;
    rule.bias = head.bias;
    head.weights = scores(head, ScoreStage::weights);
    add(head.p,
        {out_.normaliser + "(" + last.text + ") by rows", "\\mathrm{" + out_.normaliser + "}(" + last.latex + ")"},
        head.weights, "q", "k", "weights");
    head.out = attention(head.q_in, head.k_in, head.v_in, rule);  // [1, Lq, Dv]
    add(head.o, {head.p.text + " " + head.v.text, head.p.latex + " " + head.v.latex}, flat(head.out), "q", "",
        in_.heads > 1    ? "output of head " + index
        : w_o_.defined() ? ""
                         : "output");
    heads_.push_back(std::move(head));
  }

  // Scores up to the normaliser; returns the name of the last matrix.
  Symbol show_scores(const Head& head, const std::string& index) {
    add(head.s,
        {head.q.text + " " + head.k.text + "ᵀ" + scale_.text,
         head.q.latex + " " + head.k.latex + "^\\top" + scale_.latex},
        scores(head, ScoreStage::raw), "q", "k", "scores");
    Symbol last = head.s;
    if (rule_.softcap > 0) {
      const std::string c = short_number(rule_.softcap);
      const Symbol capped = symbol("C", index);
      add(capped, {c + " tanh(" + last.text + " / " + c + ")", c + " \\tanh(" + last.latex + " / " + c + ")"},
          scores(head, ScoreStage::capped), "q", "k", "capped scores");
      last = capped;
    }
    const Tensor biased = scores(head, ScoreStage::biased);
    Tensor mask = Tensor::zeros(biased.shape(), DType::f64);
    bool hides = false;
    for (int64_t i = 0; i < biased.numel(); ++i) {
      const bool hidden = biased.f64()[i] == -HUGE_VAL;
      mask.f64()[i] = hidden ? 0 : 1;
      hides = hides || hidden;
    }
    if (!hides && !rule_.bias.defined()) return last;
    if (hides) {
      add(symbol("M", index), {}, mask, "q", "k", "mask: 1 = the query sees the key, 0 = hidden");
    }
    const Symbol masked = symbol("Z", index);
    const std::string bias = rule_.bias.defined() ? " + bias" : "";
    add(masked,
        {last.text + bias + (hides ? ", -inf where hidden" : ""),
         last.latex + (bias.empty() ? "" : " + \\mathrm{bias}") + (hides ? " \\text{ where } M = 1" : "")},
        biased, "q", "k", "scores that the weights are made of");
    return masked;
  }

  static Tensor flat(const Tensor& t) { return reshape(t.detach(), {t.dim(1), t.dim(2)}); }

  void forward_output() {
    std::vector<Tensor> parts;
    std::string names;
    for (const Head& head : heads_) {
      parts.push_back(flat(head.out));
      names += (names.empty() ? "" : ", ") + head.o.latex;
    }
    concat_ = leaf(parts.size() == 1 ? parts.front() : concat(parts, 1));  // [Lq, H·Dv]
    const std::string side = heads_.size() > 1 ? "[" + names + "]" : heads_.front().o.latex;
    std::string text = side;
    for (const char c : {'{', '}'}) std::erase(text, c);
    if (w_o_.defined()) {
      if (w_o_.dim(0) != concat_.dim(1)) {
        refuse("W_O=" + w_o_.shape().str() + " does not fit the heads' outputs " + concat_.shape().str());
      }
      result_ = matmul(concat_, w_o_);  // [Lq, C]
      add(plain("Y"), {text + " W_O", side + " W_O"}, result_, "q", "", "output");
      y_ = plain("Y");
    } else {
      result_ = affine(concat_, 1);
      if (heads_.size() > 1) add(plain("Y"), {text, side}, result_, "q", "", "output: heads side by side");
      y_ = heads_.size() > 1 ? plain("Y") : heads_.front().o;
    }
  }

  void backward() {
    in_backward_ = true;
    Tensor d_out = in_.d_out.defined() ? in_.d_out : Tensor::full(result_.shape(), 1, DType::f64);
    if (!(d_out.shape() == result_.shape())) {
      refuse("d-out=" + d_out.shape().str() + " is not the gradient of the output " + result_.shape().str());
    }
    add(gradient(y_), {}, d_out, "q", "", in_.d_out.defined() ? "given" : "ones: the loss is the sum of the output");
    result_.backward(d_out);
    if (w_o_.defined()) {
      const std::string o = heads_.size() > 1 ? "O" : heads_.front().o.text;
      add(gradient(symbol("W", "O")), {o + "ᵀ dY", o + "^\\top \\mathrm{d}Y"}, w_o_.grad(), "", "",
          heads_.size() > 1 ? "O: the heads' outputs side by side" : "");
    }
    int64_t column = 0;
    for (Head& head : heads_) {
      const int64_t width = head.out.dim(2);
      backward_head(head, slice(concat_.grad(), 1, column, column + width).clone());
      column += width;
    }
    backward_projections();
  }

  // dK of the whole or dK_1 of a head; dX_k where X has other roles too.
  static Symbol gradient_of(const Role& role, const std::string& index) {
    const std::string at = role.as + index;
    const Symbol d = gradient(plain(role.letter));
    return at.empty() ? d : Symbol{d.text + "_" + at, d.latex + "_{" + at + "}"};
  }

  void backward_head(Head& head, const Tensor& d_o) {
    const Symbol dO = gradient(head.o), dP = gradient(head.p), dS = gradient(head.s);
    if (w_o_.defined() || heads_.size() > 1) {
      const bool projected = w_o_.defined();
      add(dO,
          projected ? Symbol{"dY W_Oᵀ", "\\mathrm{d}Y\\, W_O^\\top"}
                    : Symbol{"columns of dY", "\\text{columns of }\\mathrm{d}Y"},
          d_o, "q", "", heads_.size() > 1 ? "columns of this head" : "");
    }
    head.out.backward(reshape(d_o, head.out.shape()));
    add(gradient_of(roles_[2], head.index), {head.p.text + "ᵀ " + dO.text, head.p.latex + "^\\top " + dO.latex},
        flat_grad(head.v_in), "k", "");
    add(dP, {dO.text + " " + head.v.text + "ᵀ", dO.latex + " " + head.v.latex + "^\\top"},
        matmul(d_o, transpose(flat(head.v_in), 0, 1)), "q", "k");
    add(dS, normaliser_gradient(head, dP), grad_or_zeros(head.bias), "q", "k",
        rule_.softcap > 0 ? "gradient of the capped scores" : "");
    const Symbol inner =
        rule_.softcap > 0 ? Symbol{"(" + dS.text + " ∘ (1 - (C/c)²))", "(" + dS.latex + " \\circ (1 - (C/c)^2))"} : dS;
    const Symbol inner_t = {inner.text + "ᵀ", inner.latex + "^\\top"};
    const auto product = [&](const Symbol& a, const Symbol& b) {
      return Symbol{a.text + " " + b.text + scale_.text, a.latex + " " + b.latex + scale_.latex};
    };
    add(gradient_of(roles_[0], head.index), product(inner, head.k), flat_grad(head.q_in), "q", "");
    add(gradient_of(roles_[1], head.index), product(inner_t, head.q), flat_grad(head.k_in), "k", "");
  }

  Symbol normaliser_gradient(const Head& head, const Symbol& dP) const {
    const std::string p = head.p.text, lp = head.p.latex;
    switch (rule_.normaliser) {
      case Normaliser::sparsemax:
        return {dP.text + " - its mean over the keys with weight, 0 elsewhere",
                dP.latex + " - \\text{mean over the support}"};
      case Normaliser::entmax15:
        return {"√" + p + " ∘ (" + dP.text + " - Σ(√" + p + " ∘ " + dP.text + ") / Σ√" + p + ")",
                "\\sqrt{" + lp + "} \\circ (" + dP.latex + " - \\textstyle\\sum \\sqrt{" + lp + "} \\circ " + dP.latex +
                    " / \\sum \\sqrt{" + lp + "})"};
      case Normaliser::hard:
        return {"0: the choice is a constant to the gradient", "0"};
      default:
        return {p + " ∘ (" + dP.text + " - rowsum(" + p + " ∘ " + dP.text + "))",
                lp + " \\circ (" + dP.latex + " - \\mathrm{rowsum}(" + lp + " \\circ " + dP.latex + "))"};
    }
  }

  static Tensor grad_or_zeros(const Tensor& leaf) {
    return leaf.grad().defined() ? leaf.grad() : Tensor::zeros(leaf.shape(), DType::f64);
  }
  static Tensor flat_grad(const Tensor& leaf) { return flat(grad_or_zeros(leaf)); }

  // The heads' gradients side by side, [L, H·D].
  Tensor joined(Tensor Head::*part) const {
    std::vector<Tensor> parts;
    for (const Head& head : heads_) parts.push_back(flat_grad(head.*part));
    return parts.size() == 1 ? parts.front() : concat(parts, 1);
  }

  void backward_projections() {
    const Tensor d[3] = {joined(&Head::q_in), joined(&Head::k_in), joined(&Head::v_in)};
    const Tensor* weights[3] = {&w_q_, &w_k_, &w_v_};
    for (int i = 0; i < 3; ++i) {
      const Role& role = roles_[i];
      role.projected.backward(d[i]);
      if (!weights[i]->defined()) continue;
      const Symbol dR = gradient_of(role, "");
      add(gradient(role.weight), {role.source.text + "ᵀ " + dR.text, role.source.latex + "^\\top " + dR.latex},
          weights[i]->grad(), "", "", heads_.size() > 1 ? "the heads' gradients side by side" : "");
    }
    show_source_gradients();
  }

  void show_source_gradients() {
    const Tensor* sources[3] = {&q_leaf_, &k_leaf_, &v_leaf_};
    const Tensor* weights[3] = {&w_q_, &w_k_, &w_v_};
    for (int i = 0; i < 3; ++i) {
      bool seen = false;
      for (int j = 0; j < i; ++j) seen = seen || sources[j]->same_as(*sources[i]);
      if (seen) continue;
      Symbol sum;
      int terms = 0;
      bool projected = false;
      for (int j = 0; j < 3; ++j) {
        if (!sources[j]->same_as(*sources[i])) continue;
        Symbol term = gradient_of(roles_[j], "");
        if (weights[j]->defined()) {
          projected = true;
          term = {term.text + " W_" + roles_[j].letter + "ᵀ", term.latex + "\\, W_" + roles_[j].letter + "^\\top"};
        }
        sum = {sum.text + (terms > 0 ? " + " : "") + term.text, sum.latex + (terms > 0 ? " + " : "") + term.latex};
        ++terms;
      }
      if (terms == 1 && !projected && heads_.size() == 1) continue;  // already shown
      add(gradient(roles_[i].source), sum, sources[i]->grad(), source_rows(*sources[i]), "");
    }
  }

  const ExplainInput& in_;
  ScoreRule rule_;
  Explanation out_;
  Tensor q_leaf_, k_leaf_, v_leaf_, w_q_, w_k_, w_v_, w_o_;
  Role roles_[3];
  Symbol scale_, y_;
  std::vector<Head> heads_;
  Tensor concat_, result_;
  bool in_backward_ = false;
};

}  // namespace

const ExplainStep& Explanation::step(const std::string& name) const {
  for (const ExplainStep& s : steps) {
    if (s.name == name) return s;
  }
  throw ConfigError("no step '" + name + "' in this explanation");
}

Explanation explain(const ExplainInput& input) { return Explainer(input).run(); }

}  // namespace qkv::app
