// Experiment: self-attention on sums of orthogonal vectors, without and with the matrices K, Q and V.
#include <cmath>

#include "qkv/lab/experiments.h"
#include "qkv/lab/vectors.h"
#include "qkv/ops/ops.h"

namespace qkv::lab {
namespace {

// u_a … u_d of length r, and the three inputs made of them.
struct Inputs {
  Tensor a, b, c, d;  // [1, dim]
  Tensor x;           // [3, dim]: u_d + u_b, u_a, u_c + u_b
};

Inputs make_inputs(const Tensor& basis, double r) {
  Inputs u{row(basis, 0) * r, row(basis, 1) * r, row(basis, 2) * r, row(basis, 3) * r, {}};
  u.x = concat({u.d + u.b, u.a, u.c + u.b}, 0);
  return u;
}

// u vᵀ for rows u, v [1, dim] → [dim, dim], in linear()'s layout [out, in].
Tensor outer(const Tensor& u, const Tensor& v) { return matmul(transpose(u, 0, 1), v); }

struct Matrices {
  Tensor q, v;  // [dim, dim]; K is the identity
};
Matrices make_matrices(const Inputs& u, double length) {
  const double unit = 1 / (length * length);
  return {(outer(u.d, u.a) + outer(u.c, u.d)) * unit, (outer(u.b, u.b) - outer(u.c, u.c)) * unit};
}

Tensor self_attention(const Tensor& q, const Tensor& k, const Tensor& v, double beta) {
  return unbatched(attention(batch_of_one(q), batch_of_one(k), batch_of_one(v), with_scale(beta)));  // [3, dim]
}

// Distances are given in units of r, so that they compare over the sweep.
void without_matrices(Result& r, const std::string& at, const Inputs& u, double beta, double length) {
  const Tensor c2 = row(self_attention(u.x, u.x, u.x, beta), 1);
  const double e = std::exp(-beta * length * length);  // e^{-β r²}: the other two against x2 itself
  const double w = e / (1 + 2 * e);
  // c2 = (1 - 2w) u_a + w(u_d + u_b) + w(u_c + u_b)
  r.exact(at, "no K, Q, V: |c_2 − u_a| / r", w * std::sqrt(4 + 1 + 4 + 1), distance(c2, u.a) / length);
  r.exact(at, "no K, Q, V: |c_2 − u_b| / r",
          std::sqrt((1 - 2 * w) * (1 - 2 * w) + w * w * 2 + (1 - 2 * w) * (1 - 2 * w)), distance(c2, u.b) / length);
  const auto added = [&](const Tensor& extra, int64_t with, const char* name) {
    const Tensor x2 = u.a + extra, x = concat({row(u.x, 0), x2, row(u.x, 2)}, 0);
    const Tensor got = row(self_attention(x, x, x, beta), 1);
    // x2 scores 2r² with itself, r² with the input that shares `extra`, 0 with the third.
    const double z = 1 + e + e * e, self = 1 / z, shared = e / z, third = e * e / z;
    const Tensor want = x2 * self + row(x, with) * shared + row(x, 2 - with) * third;
    r.exact(at, std::string("x_2 = u_a + ") + name + ": |c_2 − u_b| / r", distance(want, u.b) / length,
            distance(got, u.b) / length);
  };
  added(u.d, 0, "u_d");
  added(u.c, 2, "u_c");
}

void with_matrices(Result& r, const std::string& at, const Inputs& u, double beta, double length) {
  const Matrices by = make_matrices(u, length);
  const Tensor c = self_attention(linear(u.x, by.q), u.x, linear(u.x, by.v), beta);  // [3, dim]
  const double e = std::exp(-beta * length * length), z = 1 + 2 * e;
  // q2 = u_d meets only x1: c2 = (v1 + e v2 + e v3)/z with v1 = u_b, v2 = 0, v3 = u_b - u_c.
  r.exact(at, "with K, Q, V: |c_2 − u_b| / r", std::hypot((1 + e) / z - 1, e / z), distance(row(c, 1), u.b) / length);
  // q1 = u_c meets only x3: c1 = (v3 + e v1 + e v2)/z.
  r.exact(at, "with K, Q, V: |c_1 − (u_b − u_c)| / r", std::hypot((1 + e) / z - 1, 1 - 1 / z),
          distance(row(c, 0), u.b - u.c) / length);
}

void draw(Result& r, const Inputs& u, double beta, double length, const std::vector<double>& sweep) {
  const auto line = [&](const std::string& name, const std::string& quantity, int color) {
    return Series{.name = name, .x = sweep, .y = r.measured_of(quantity), .marks = Marks::kLineAndDots, .color = color};
  };
  r.pictures.push_back(
      Plot{.title = "Reaching u_b: only with K, Q and V",
           .caption = "Distances in units of r, measured at five lengths; predictions in the table.",
           .x = Axis{.title = "r, the length of the vectors"},
           .y = Axis{.title = "distance / r", .low = 0.0},
           .series = {line("no K, Q, V: c_2 from u_b", "no K, Q, V: |c_2 − u_b| / r", 1),
                      line("x_2 = u_a + u_d: c_2 from u_b", "x_2 = u_a + u_d: |c_2 − u_b| / r", 2),
                      line("with K, Q, V: c_2 from u_b", "with K, Q, V: |c_2 − u_b| / r", 0),
                      line("with K, Q, V: c_1 from u_b − u_c", "with K, Q, V: |c_1 − (u_b − u_c)| / r", 3)}});
  const std::vector<std::string> inputs = {"x_1", "x_2", "x_3"};
  const auto map = [&](const char* title, const Tensor& q) {
    HeatMap m = weight_map(title, attention_score_array(batch_of_one(q), batch_of_one(u.x), with_scale(beta)));
    m.row_labels = m.column_labels = inputs;
    m.numbers = true;
    return m;
  };
  r.pictures.push_back(Maps{"Who looks at whom",
                            {map("without K, Q, V", u.x), map("with K, Q, V", linear(u.x, make_matrices(u, length).q))},
                            2,
                            "x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b. Without the matrices every input sees "
                            "itself. With them x_2 looks at x_1 and x_1 at x_3; "
                            "x_3's query is zero, so it sees all."});
}

}  // namespace

Settings key_query_value_settings() {
  Settings s;
  s.integer("dim", 8, "dimensions; four orthogonal vectors need at least four", 1, 512)
      .number("r", 5, "length of the vectors; the sweep runs up to it", 0.1, 8)
      .number("beta", 1, "inverse temperature of the softmax", 0, 10)
      .integer("seed", 1, "of the directions");
  return s;
}

Result run_key_query_value(const Settings& set) {
  const int64_t dim = set.get_integer("dim");
  const double beta = set.get_number("beta");
  check_orthogonal(4, dim, "orthogonal vectors u_a, u_b, u_c, u_d");
  Rng rng(static_cast<uint64_t>(set.get_integer("seed")));
  const Tensor basis = orthonormal(4, dim, rng);  // [4, dim]
  Result r;
  r.claim =
      "Self-attention on x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b can only return x_2's own u_a; with the "
      "matrices K, Q and V the same inputs give c_2 ≈ u_b and c_1 ≈ u_b − u_c.";
  r.formula =
      "without:  c_{2} ≈ u_{a}, because x_{2}·x_{2} = r^{2} and x_{2}·x_{1} = x_{2}·x_{3} = 0\n"
      "with:  V = (u_{b} u_{b}^{T} − u_{c} u_{c}^{T})/r^{2},  K = I,  Q = (u_{d} u_{a}^{T} + u_{c} "
      "u_{d}^{T})/r^{2}";
  std::vector<double> sweep;
  for (const double share : {0.1, 0.2, 0.4, 0.6, 1.0}) {
    const double length = share * set.get_number("r");
    sweep.push_back(length);
    const Inputs u = make_inputs(basis, length);
    without_matrices(r, at("r", length), u, beta, length);
    with_matrices(r, at("r", length), u, beta, length);
  }
  draw(r, make_inputs(basis, sweep.back()), beta, sweep.back(), sweep);
  r.note(
      "Adding u_d (or u_c) to x_2 does not make c_2 ≈ u_b: the new x_2 matches itself twice as well as it matches "
      "x_1 (or x_3). A token asks for what it is; Q lets it ask for something else, V lets it answer with "
      "something else.");
  r.note("Q sends u_a to u_d, so x_2 looks for the input that holds u_d, and V keeps that input's u_b alone.");
  return r;
}

}  // namespace qkv::lab
