// The forward steps of a small attention example, each computed by the library's ops in f64.
#include <cmath>
#include <cstdio>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/lab/explain/steps.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

constexpr int64_t kMost = 64;  // rows and columns a person can still read

std::string short_number(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

std::string described(const Symbol& name, const Tensor& t) { return name.text + "=" + t.shape().str(); }

}  // namespace

void Explainer::refuse(const std::string& what) { throw ShapeError("[explain] " + what); }

Tensor Explainer::leaf(const Tensor& t) {
  if (!t.defined()) return t;
  Tensor copy = t.detach();
  copy.set_requires_grad(true);
  return copy;
}

Tensor Explainer::flat(const Tensor& t) { return reshape(t.detach(), {t.dim(1), t.dim(2)}); }

void Explainer::add(const Symbol& name, const Symbol& formula, const Tensor& value, const Axes& axes,
                    const std::string& note) {
  ExplainStep step;
  step.name = name.text;
  step.latex_name = name.latex;
  step.formula = formula.text;
  step.latex = formula.latex;
  step.note = note;
  step.value = value.clone();
  step.rows = axes.rows;
  step.columns = axes.columns;
  step.backward = in_backward_;
  step.given = formula.text.empty();
  out_.steps.push_back(std::move(step));
}

Explanation Explainer::run() {
  out_.title = in_.title;
  check();
  const Tensor q = leaf(in_.q.matrix);
  const Tensor k = in_.k.matrix.same_as(in_.q.matrix) ? q : leaf(in_.k.matrix);
  const Tensor v = in_.v.matrix.same_as(in_.q.matrix) ? q : in_.v.matrix.same_as(in_.k.matrix) ? k : leaf(in_.v.matrix);
  w_o_ = leaf(in_.w_o);
  roles_[0].from = q;
  roles_[1].from = k;
  roles_[2].from = v;
  show_given();
  roles_[0] = project("Q", in_.q, q, leaf(in_.w_q));
  roles_[1] = project("K", in_.k, k, leaf(in_.w_k));
  roles_[2] = project("V", in_.v, v, leaf(in_.w_v));
  prepare_rule();
  for (int64_t h = 0; h < in_.heads; ++h) forward_head(h);
  forward_output();
  if (in_.backward) backward();
  return std::move(out_);
}

void Explainer::check() {
  const std::pair<const char*, const Tensor*> all[] = {{"q", &in_.q.matrix}, {"k", &in_.k.matrix}, {"v", &in_.v.matrix},
                                                       {"W_Q", &in_.w_q},    {"W_K", &in_.w_k},    {"W_V", &in_.w_v},
                                                       {"W_O", &in_.w_o}};
  for (const auto& [name, t] : all) {
    if (!t->defined()) continue;
    if (t->rank() != 2 || t->numel() == 0) refuse(described(name, *t) + " is not a matrix with numbers");
    if (t->dim(0) > kMost || t->dim(1) > kMost) {
      refuse(described(name, *t) + " is too large to read; at most " + std::to_string(kMost) +
             " rows and columns here, 'qkv attend' takes any size");
    }
  }
}

void Explainer::show_given() {
  const ExplainInput::Named* named[3] = {&in_.q, &in_.k, &in_.v};
  for (int i = 0; i < 3; ++i) {
    bool shown = false;
    for (int j = 0; j < i; ++j) shown = shown || roles_[j].from.same_as(roles_[i].from);
    if (!shown) add(named[i]->name, {}, roles_[i].from, {source_rows(roles_[i].from), ""}, "given");
  }
  const std::pair<const char*, const Tensor*> weights[] = {
      {"Q", &in_.w_q}, {"K", &in_.w_k}, {"V", &in_.w_v}, {"O", &in_.w_o}};
  for (const auto& [name, w] : weights) {
    if (w->defined()) add(indexed("W", name), {}, *w, {}, "given");
  }
}

int Explainer::roles_of(const Tensor& source) const {
  int n = 0;
  for (const Role& role : roles_) n += role.from.same_as(source) ? 1 : 0;
  return n;
}

std::string Explainer::source_rows(const Tensor& source) const {
  return !source.same_as(roles_[0].from) ? "k" : roles_of(source) > 1 ? "x" : "q";
}

Explainer::Role Explainer::project(const std::string& letter, const ExplainInput::Named& named, const Tensor& from,
                                   const Tensor& w) {
  Role role{named.name, indexed("W", letter), letter, letter, "", from, w, {}};
  if (w.defined()) {
    if (from.dim(1) != w.dim(0)) refuse(described(named.name, from) + " does not fit " + described(role.weight, w));
    role.projected = matmul(from, w);  // [L, H·D]
  } else {
    role.projected = affine(from, 1);
    role.whole = role.letter = named.name;
    if (roles_of(from) > 1) role.as = letter == "Q" ? "q" : letter == "K" ? "k" : "v";
  }
  if (role.projected.dim(1) % in_.heads != 0) {
    refuse(described(role.whole, role.projected) + " cannot be cut into " + std::to_string(in_.heads) + " heads");
  }
  if (w.defined()) {
    const std::string columns = std::to_string(role.projected.dim(1) / in_.heads) + " columns per head";
    add(role.whole, role.source + " W_" + letter, role.projected, {letter == "Q" ? "q" : "k", ""},
        in_.heads > 1 ? columns : "");
  }
  return role;
}

void Explainer::prepare_rule() {
  const Tensor &q = roles_[0].projected, &k = roles_[1].projected, &v = roles_[2].projected;
  if (k.dim(1) != q.dim(1)) {
    refuse("widths differ: " + described(roles_[0].whole, q) + ", " + described(roles_[1].whole, k));
  }
  if (k.dim(0) != v.dim(0)) {
    refuse("one value for each key: " + described(roles_[1].whole, k) + ", " + described(roles_[2].whole, v));
  }
  const int64_t D = q.dim(1) / in_.heads;
  out_.scale = rule_.scale.value_or(1 / std::sqrt(static_cast<double>(D)));
  if (!rule_.scale) {
    scale_ = {" / √" + std::to_string(D), " / \\sqrt{" + std::to_string(D) + "}"};
  } else if (*rule_.scale != 1) {
    scale_ = Symbol(" · ", " \\cdot ") + short_number(*rule_.scale);
  }
  out_.normaliser = name_of(rule_.normaliser);
}

Tensor Explainer::scores(const Head& head, ScoreStage stage) const {
  return attention_scores(head.q_in.detach(), head.k_in.detach(), rule_,
                          {.b = 0, .h = 0, .row_begin = 0, .row_end = head.q_in.dim(1), .stage = stage});
}

// Columns of head h as [1, L, D].
Tensor Explainer::head_of(const Role& role, int64_t h) const {
  const int64_t width = role.projected.dim(1) / in_.heads;
  const Tensor columns = slice(role.projected.detach(), 1, h * width, (h + 1) * width).clone();
  return leaf(reshape(columns, {1, columns.dim(0), width}));
}

void Explainer::forward_head(int64_t h) {
  const std::string index = in_.heads > 1 ? std::to_string(h + 1) : "";
  const auto of = [&](const Role& role) { return index.empty() ? role.whole : indexed(role.letter, index); };
  Head head;
  head.index = index;
  head.q = of(roles_[0]);
  head.k = of(roles_[1]);
  head.v = of(roles_[2]);
  head.s = indexed("S", index);
  head.p = indexed("P", index);
  head.o = indexed("O", index);
  head.q_in = head_of(roles_[0], h);
  head.k_in = head_of(roles_[1], h);
  head.v_in = head_of(roles_[2], h);
  const Symbol last = show_scores(head);
  add(head.p, Symbol(out_.normaliser, "\\mathrm{" + out_.normaliser + "}") + "(" + last + ")" + Symbol(" by rows", ""),
      scores(head, ScoreStage::weights), {"q", "k"}, "weights");
  // A bias of zeros changes nothing, and its gradient is that of the scores.
  const Shape cells = {head.q_in.dim(1), head.k_in.dim(1)};
  head.bias = leaf(rule_.bias.defined() ? contiguous(expand(rule_.bias.detach(), cells))
                                        : Tensor::zeros(cells, DType::f64));  // [Lq, Lk]
  ScoreRule rule = rule_;
  rule.bias = head.bias;
  head.out = attention(head.q_in, head.k_in, head.v_in, rule);  // [1, Lq, Dv]
  const std::string note = in_.heads > 1 ? "output of head " + index : w_o_.defined() ? "" : "output";
  add(head.o, head.p + " " + head.v, flat(head.out), {"q", ""}, note);
  heads_.push_back(std::move(head));
}

// Scores up to the normaliser; returns the name of the last matrix.
Symbol Explainer::show_scores(const Head& head) {
  const Axes cells = {"q", "k"};
  add(head.s, head.q + " " + transposed(head.k) + scale_, scores(head, ScoreStage::raw), cells, "scores");
  Symbol last = head.s;
  if (rule_.softcap > 0) {
    const std::string c = short_number(rule_.softcap);
    const Symbol capped = indexed("C", head.index);
    add(capped, c + Symbol(" tanh(", " \\tanh(") + last + " / " + c + ")", scores(head, ScoreStage::capped), cells,
        "capped scores");
    last = capped;
  }
  const Tensor biased = scores(head, ScoreStage::biased);
  Tensor mask = Tensor::full(biased.shape(), 1, DType::f64);
  bool hides = false;
  for (int64_t i = 0; i < biased.numel(); ++i) {
    if (biased.f64()[i] != -HUGE_VAL) continue;
    mask.f64()[i] = 0;
    hides = true;
  }
  if (!hides && !rule_.bias.defined()) return last;
  if (hides) add(indexed("M", head.index), {}, mask, cells, "mask: 1 = the query sees the key, 0 = hidden");
  const Symbol masked = indexed("Z", head.index);
  Symbol formula = last;
  if (rule_.bias.defined()) formula = formula + Symbol(" + bias", " + \\mathrm{bias}");
  if (hides) formula = formula + Symbol(", -inf where hidden", " \\text{, } -\\infty \\text{ where hidden}");
  add(masked, formula, biased, cells, "scores that the weights are made of");
  return masked;
}

void Explainer::forward_output() {
  std::vector<Tensor> parts;
  Symbol names;
  for (const Head& head : heads_) {
    names = parts.empty() ? head.o : names + ", " + head.o;
    parts.push_back(flat(head.out));
  }
  concat_ = leaf(many() ? concat(parts, 1) : parts.front());  // [Lq, H·Dv]
  const Symbol side = many() ? "[" + names + "]" : names;
  y_ = w_o_.defined() || many() ? Symbol("Y") : names;
  if (w_o_.defined()) {
    if (w_o_.dim(0) != concat_.dim(1)) {
      refuse(described("W_O", w_o_) + " does not fit the heads' outputs " + concat_.shape().str());
    }
    result_ = matmul(concat_, w_o_);  // [Lq, C]
    add(y_, side + " W_O", result_, {"q", ""}, "output");
  } else {
    result_ = affine(concat_, 1);
    if (many()) add(y_, side, result_, {"q", ""}, "output: heads side by side");
  }
}

const ExplainStep& Explanation::step(const std::string& name) const {
  for (const ExplainStep& s : steps) {
    if (s.name == name) return s;
  }
  throw ConfigError("no step '" + name + "' in this explanation");
}

Explanation explain(const ExplainInput& input) { return Explainer(input).run(); }

}  // namespace qkv::lab
