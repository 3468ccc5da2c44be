// The backward steps: gradients as the library's autograd leaves them, stage by stage.
#include "qkv/core/autograd.h"
#include "qkv/lab/explain/steps.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

Tensor grad_or_zeros(const Tensor& leaf) {
  return leaf.grad().defined() ? leaf.grad() : Tensor::zeros(leaf.shape(), DType::f64);
}

// dK of the whole or dK_1 of a head; dX_k where X has other roles too.
Symbol role_gradient(const std::string& letter, const std::string& as, const std::string& index) {
  const std::string at = as + index;
  const Symbol d = gradient(letter);
  return at.empty() ? d : d + Symbol("_" + at, "_{" + at + "}");
}

}  // namespace

void Explainer::backward() {
  in_backward_ = true;
  const Tensor d_out = in_.d_out.defined() ? in_.d_out : Tensor::full(result_.shape(), 1, DType::f64);
  if (!(d_out.shape() == result_.shape())) {
    refuse("d-out=" + d_out.shape().str() + " is not the gradient of the output " + result_.shape().str());
  }
  add(gradient(y_), {}, d_out, {"q", ""}, in_.d_out.defined() ? "given" : "ones: the loss is the sum of the output");
  result_.backward(d_out);
  if (w_o_.defined()) {
    const Symbol o = many() ? Symbol("O") : heads_.front().o;
    add(gradient(indexed("W", "O")), transposed(o) + " " + gradient(y_), w_o_.grad(), {},
        many() ? "O: the heads' outputs side by side" : "");
  }
  int64_t column = 0;
  for (Head& head : heads_) {
    const int64_t width = head.out.dim(2);
    backward_head(head, slice(concat_.grad(), 1, column, column + width).clone());
    column += width;
  }
  backward_projections();
}

void Explainer::backward_head(Head& head, const Tensor& d_o) {
  const Axes cells = {"q", "k"}, queries = {"q", ""}, keys = {"k", ""};
  const Symbol d_head = gradient(head.o), part = many() ? Symbol("columns of ", "\\text{columns of }") : Symbol();
  if (w_o_.defined() || many()) {
    add(d_head, part + gradient(y_) + (w_o_.defined() ? " " + transposed("W_O") : Symbol()), d_o, queries,
        many() ? "those of this head" : "");
  }
  head.out.backward(reshape(d_o, head.out.shape()));
  const auto of = [&](int i) { return role_gradient(roles_[i].letter, roles_[i].as, head.index); };
  add(of(2), transposed(head.p) + " " + d_head, flat(grad_or_zeros(head.v_in)), keys);
  add(gradient(head.p), d_head + " " + transposed(head.v), matmul(d_o, transpose(flat(head.v_in), 0, 1)), cells);
  const Symbol d_s = gradient(head.s);
  add(d_s, normaliser_gradient(head), grad_or_zeros(head.bias), cells,
      rule_.softcap > 0 ? "gradient of the capped scores" : "");
  Symbol inner = d_s;
  if (rule_.softcap > 0) {
    inner = "(" + d_s + Symbol(" ∘ (1 - (", " \\circ (1 - (") + indexed("C", head.index) + Symbol("/c)²))", "/c)^2))");
  }
  add(of(0), inner + " " + head.k + scale_, flat(grad_or_zeros(head.q_in)), queries);
  add(of(1), transposed(inner) + " " + head.q + scale_, flat(grad_or_zeros(head.k_in)), keys);
}

Symbol Explainer::normaliser_gradient(const Head& head) const {
  const Symbol &p = head.p, dp = gradient(head.p), times(" ∘ ", " \\circ ");
  const Symbol root = Symbol("√", "\\sqrt{") + p + Symbol("", "}"), sum("Σ", "\\textstyle\\sum ");
  switch (rule_.normaliser) {
    case Normaliser::softmax:
      return p + times + "(" + dp + " - " + Symbol("rowsum", "\\mathrm{rowsum}") + "(" + p + times + dp + "))";
    case Normaliser::sparsemax:
      return dp + " - " + Symbol("its mean over the keys with weight, 0 elsewhere", "\\text{mean over the support}");
    case Normaliser::entmax15:
      return root + times + "(" + dp + " - " + sum + "(" + root + times + dp + ") / " + sum + root + ")";
    case Normaliser::hard:
      return {"0: the choice is a constant to the gradient", "0"};
  }
  return {};
}

// The heads' gradients side by side, [L, H·D].
Tensor Explainer::joined(Tensor Head::*part) const {
  std::vector<Tensor> parts;
  for (const Head& head : heads_) parts.push_back(flat(grad_or_zeros(head.*part)));
  return many() ? concat(parts, 1) : parts.front();
}

void Explainer::backward_projections() {
  const Tensor d[3] = {joined(&Head::q_in), joined(&Head::k_in), joined(&Head::v_in)};
  for (int i = 0; i < 3; ++i) {
    const Role& role = roles_[i];
    role.projected.backward(d[i]);
    if (!role.w.defined()) continue;
    add(gradient(role.weight), transposed(role.source) + " " + gradient(role.whole), role.w.grad(), {},
        many() ? "the heads' gradients side by side" : "");
  }
  for (int i = 0; i < 3; ++i) {
    bool shown = false;
    for (int j = 0; j < i; ++j) shown = shown || roles_[j].from.same_as(roles_[i].from);
    if (!shown) show_source_gradient(roles_[i]);
  }
}

void Explainer::show_source_gradient(const Role& role) {
  Symbol sum;
  bool projected = false;
  for (const Role& other : roles_) {
    if (!other.from.same_as(role.from)) continue;
    Symbol term = role_gradient(other.letter, other.as, "");
    if (other.w.defined()) term = term + Symbol(" ", "\\, ") + transposed("W_" + other.letter);
    projected = projected || other.w.defined();
    sum = sum.text.empty() ? term : sum + " + " + term;
  }
  if (roles_of(role.from) == 1 && !projected && !many()) return;  // already shown
  add(gradient(role.source), sum, role.from.grad(), {source_rows(role.from), ""});
}

}  // namespace qkv::lab
