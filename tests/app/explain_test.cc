// The explain command: known numbers, gradients against differences, and the three ways to print.
#include "qkv/lab/explain/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/run_program.h"
#include "qkv/app/command.h"
#include "qkv/base/error.h"
#include "qkv/io/npy.h"
#include "support/paths.h"

namespace qkv::app {
namespace {

using namespace lab;

using qkv::testing::expect_refused;
using qkv::testing::message_of;
using qkv::testing::TempFolder;
using Json = nlohmann::json;

void expect_values(const Explanation& e, const std::string& step, const std::vector<double>& wanted) {
  const std::vector<double> got = e.step(step).value.to_doubles();
  ASSERT_EQ(got.size(), wanted.size()) << step;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 5.1e-7) << step << " " << i;
}

std::string printed(const Arguments& arguments) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_explain(arguments), 0);
  return ::testing::internal::GetCapturedStdout();
}

TEST(Explain, OneQueryOnFourKeys) {
  const Explanation e = explain(builtin_example("query"));
  expect_values(e, "P", {.465369, .034631, .465369, .034631});
  expect_values(e, "O", {-1.663422, .896106, .034631});
}

TEST(Explain, SelfAttentionWithOneHead) {
  const Explanation e = explain(builtin_example("self"));
  expect_values(e, "P",
                {.000048, .000032, .001719, .998200, .597320, .001283, .401298, .000099,  //
                 .014642, .000487, .237022, .747849, .000000, .001878, .000000, .998122});
  expect_values(e, "O", {-.752201, -1.506687, -2.295649, -6.586861, -1.071414, -2.475955, -.748122, -1.497183});
}

TEST(Explain, SelfAttentionWithTwoHeads) {
  const Explanation e = explain(builtin_example("heads"));
  expect_values(e, "Y",
                {-6.046649, 3.777811, -.757311, 8.287418, .147503, 10.579681,  //
                 -7.390574, 5.099828, -.011581, -8.250454, 4.874288, -1.501403});
}

// Σ d_out ∘ output as a function of one matrix of the example.
double loss(const ExplainInput& in, const std::string& output) {
  ExplainInput forward = in;
  forward.backward = false;
  const std::vector<double> y = explain(forward).step(output).value.to_doubles(), w = in.d_out.to_doubles();
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += y[i] * w[i];
  return sum;
}

void expect_gradient(ExplainInput in, Tensor matrix, const Explanation& e, const std::string& step) {
  const std::string output = in.heads > 1 || in.w_o.defined() ? "Y" : "O";
  const std::vector<double> got = e.step(step).value.to_doubles();
  for (int64_t i = 0; i < matrix.numel(); ++i) {
    const double x = matrix.f64()[i], h = 1e-5;
    matrix.f64()[i] = x + h;
    const double up = loss(in, output);
    matrix.f64()[i] = x - h;
    const double down = loss(in, output);
    matrix.f64()[i] = x;
    EXPECT_NEAR(got[static_cast<size_t>(i)], (up - down) / (2 * h), 1e-6) << step << " " << i;
  }
}

TEST(Explain, GradientsMatchDifferences) {
  ExplainInput in = builtin_example("heads");
  in.rule.causal = true;
  in.rule.softcap = 3;
  in.d_out = Tensor::from({1, -2, .5, .3, .7, -1, 2, 0, .1, -.4, 1, 1}, {4, 3}, DType::f64);
  const Explanation e = explain(in);
  expect_gradient(in, in.q.matrix, e, "dX");
  expect_gradient(in, in.w_q, e, "dW_Q");
  expect_gradient(in, in.w_k, e, "dW_K");
  expect_gradient(in, in.w_v, e, "dW_V");
  expect_gradient(in, in.w_o, e, "dW_O");
}

TEST(Explain, GradientsOfASharedMatrixAddUp) {
  ExplainInput in = builtin_example("query");
  in.rule.normaliser = Normaliser::entmax15;
  in.d_out = Tensor::from({1, -2, .5}, {1, 3}, DType::f64);
  const Explanation e = explain(in);
  expect_gradient(in, in.q.matrix, e, "dq");
  expect_gradient(in, in.k.matrix, e, "dX");
  const std::vector<double> sum = e.step("dX").value.to_doubles(), keys = e.step("dX_k").value.to_doubles(),
                            values = e.step("dX_v").value.to_doubles();
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], keys[i] + values[i], 1e-12);
}

TEST(Explain, MaskedScoresAreShown) {
  const std::string text = printed({"--example", "self", "--causal"});
  EXPECT_NE(text.find("M  [4,4]"), std::string::npos) << text;
  EXPECT_NE(text.find("-inf"), std::string::npos);
  EXPECT_NE(text.find("1.000000  0.000000  0.000000  0.000000"), std::string::npos);
}

using Matrix = std::vector<std::vector<double>>;

Matrix matrix_of(const Explanation& e, const std::string& name) {
  const Tensor& t = e.step(name).value;
  Matrix m(static_cast<size_t>(t.dim(0)));
  for (int64_t i = 0; i < t.dim(0); ++i) {
    for (int64_t j = 0; j < t.dim(1); ++j) m[static_cast<size_t>(i)].push_back(t.at({i, j}));
  }
  return m;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size(), 0.0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b[0].size(); ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Matrix plus(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) a[i][j] += b[i % b.size()][j];
  }
  return a;
}

Matrix normed(Matrix x, const Matrix& gamma, const Matrix& beta) {
  for (auto& row : x) {
    double mean = 0, variance = 0;
    for (const double v : row) mean += v / double(row.size());
    for (const double v : row) variance += (v - mean) * (v - mean) / double(row.size());
    for (size_t j = 0; j < row.size(); ++j) {
      row[j] = gamma[0][j] * (row[j] - mean) / std::sqrt(variance + 1e-5) + beta[0][j];
    }
  }
  return x;
}

// Two heads of width 2 by school-book loops.
Matrix two_heads(const Explanation& e, const Matrix& x, bool causal) {
  const Matrix q = product(x, matrix_of(e, "W_Q")), k = product(x, matrix_of(e, "W_K")),
               v = product(x, matrix_of(e, "W_V"));
  Matrix out(x.size(), std::vector<double>(4, 0.0));
  for (size_t h = 0; h < 2; ++h) {
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t last = causal ? i + 1 : x.size();
      double total = 0;
      std::vector<double> w;
      for (size_t j = 0; j < last; ++j) {
        w.push_back(std::exp((q[i][2 * h] * k[j][2 * h] + q[i][2 * h + 1] * k[j][2 * h + 1]) / std::sqrt(2.0)));
        total += w.back();
      }
      for (size_t j = 0; j < last; ++j) {
        for (size_t c = 0; c < 2; ++c) out[i][2 * h + c] += w[j] / total * v[j][2 * h + c];
      }
    }
  }
  return product(out, matrix_of(e, "W_O"));
}

Matrix feed_forward(const Explanation& e, const Matrix& x) {
  Matrix u = plus(product(x, matrix_of(e, "W_1")), matrix_of(e, "b_1"));
  for (auto& row : u) {
    for (double& v : row) v = std::max(0.0, v);
  }
  return plus(product(u, matrix_of(e, "W_2")), matrix_of(e, "b_2"));
}

TEST(Explain, ABlockIsWhatPlainLoopsGive) {
  for (const bool pre : {false, true}) {
    for (const bool causal : {false, true}) {
      const Explanation e = explain_block({pre, causal});
      const auto norm = [&](const Matrix& x, const std::string& i) {
        return normed(x, matrix_of(e, "γ_" + i), matrix_of(e, "β_" + i));
      };
      const Matrix x = matrix_of(e, "X");
      EXPECT_NEAR(x[1][0], 0 + std::sin(1.0), 1e-6);  // token 2 is "is", at position 1
      EXPECT_NEAR(x[2][3], 0 + std::cos(2.0 / 100), 1e-6);
      const Matrix x1 = pre ? plus(x, two_heads(e, norm(x, "1"), causal)) : norm(plus(x, two_heads(e, x, causal)), "1");
      const Matrix x2 = pre ? plus(x1, feed_forward(e, norm(x1, "2"))) : norm(plus(x1, feed_forward(e, x1)), "2");
      const Matrix shown = matrix_of(e, "X_2");
      EXPECT_EQ(e.steps.back().name, "X_2");
      for (size_t i = 0; i < 3; ++i) {
        for (size_t j = 0; j < 4; ++j) EXPECT_NEAR(shown[i][j], x2[i][j], 1e-9) << pre << causal << i << j;
      }
    }
  }
}

TEST(Explain, ABlockInTheTerminalAndAsJson) {
  const std::string text = printed({"block"});
  for (const char* part : {"Pos = sin", "P_2 = softmax", "R_1 = X + Y", "μ_1 = mean", "G = max(0, U)", "X_2 = "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  const nlohmann::json json = nlohmann::json::parse(printed({"block", "--norm", "pre", "--json"}));
  EXPECT_EQ(json.at("steps").back().at("name"), "X_2");
  EXPECT_EQ(json.at("steps").back().at("shape"), nlohmann::json({3, 4}));
  const std::string latex = printed({"block", "--latex"});
  for (const char* part : {"\\sigma^2_{1}", "T = \\text{rows 1, 2, 3 of }E", "X = T + \\mathrm{Pos}"}) {
    EXPECT_NE(latex.find(part), std::string::npos) << part;
  }
  // Of two heads each gets its own columns of the gradient: the product itself is as wide as both.
  const std::string heads = printed({"--example", "heads", "--latex"});
  EXPECT_NE(heads.find("\\mathrm{d}O_{1} = \\text{columns of }\\mathrm{d}Y W_O^\\top"), std::string::npos);
}

TEST(Explain, TextIsAligned) {
  const std::string text = printed({});
  EXPECT_NE(text.find("              k1        k2        k3        k4\n"
                      "    q1  0.465369  0.034631  0.465369  0.034631\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Backward"), std::string::npos);
  EXPECT_EQ(text.find("-0.000000"), std::string::npos);
  EXPECT_EQ(printed({"--forward"}).find("Backward"), std::string::npos);
  EXPECT_NE(printed({"--digits", "2"}).find("0.47"), std::string::npos);
}

TEST(Explain, JsonHasEveryStep) {
  const Json json = Json::parse(printed({"--example", "self", "--causal", "--json"}));
  std::vector<std::string> names;
  for (const Json& step : json["steps"]) names.push_back(step["name"]);
  const std::vector<std::string> wanted = {"X", "W_Q", "W_K", "W_V", "Q",  "K",  "V",  "S",    "M",    "Z",    "P",
                                           "O", "dO",  "dV",  "dP",  "dS", "dQ", "dK", "dW_Q", "dW_K", "dW_V", "dX"};
  EXPECT_EQ(names, wanted);
  EXPECT_NEAR(json["scale"].get<double>(), 0.7071067811865475, 1e-15);
  EXPECT_TRUE(json["steps"][9]["values"][0][1].is_null());
  EXPECT_EQ(json["steps"][9]["shape"], Json({4, 4}));
}

TEST(Explain, LatexHasMatrices) {
  const std::string text = printed({"--latex", "--example", "heads"});
  EXPECT_NE(text.find("\\begin{bmatrix}"), std::string::npos);
  EXPECT_NE(text.find("S_{1} = Q_{1} K_{1}^\\top / \\sqrt{2}"), std::string::npos) << text;
  EXPECT_EQ(text.find("√"), std::string::npos);
  EXPECT_EQ(text.find("ᵀ"), std::string::npos);
}

TEST(Explain, OwnMatricesFromFilesAndInline) {
  const TempFolder folder;
  const std::vector<double> values = {1, 0, 0, 1};
  save_npy(folder / "k.npy", {2, 2}, values);
  const Json json = Json::parse(
      printed({"--q", "-2,1", "--k", folder / "k.npy", "--v", "10;20", "--beta", "1", "--json", "--forward"}));
  const double a = std::exp(-2.0), b = std::exp(1.0);
  EXPECT_NEAR(json["steps"].back()["values"][0][0].get<double>(), (10 * a + 20 * b) / (a + b), 1e-12);
}

TEST(Explain, AFullDiskIsNotSilent) {
  EXPECT_EQ(WEXITSTATUS(std::system(
                (qkv::testing::shell_quoted(qkv::testing::program()) + " explain >/dev/full 2>&1").c_str())),
            1);
}

TEST(Explain, ParsesMatrices) {
  const Tensor m = parse_matrix(" 1, -2.5 ; 3 4e1;", "--x");
  EXPECT_EQ(m.shape(), (Shape{2, 2}));
  EXPECT_EQ(m.to_doubles(), (std::vector<double>{1, -2.5, 3, 40}));
  for (const char* bad : {"", ";", "1;;2", "1,", ",1", "1,,2", "1;2,3", "one", "1x", "1,2;", "0x1"}) {
    if (std::string(bad) == "1,2;") continue;  // a closing ; is fine
    EXPECT_NE(message_of<ConfigError>([&] { parse_matrix(bad, "--x"); }), "") << bad;
  }
}

TEST(Explain, RefusesWithOneLine) {
  expect_refused({"explain", "--example", "none"}, 2, "query, self, heads");
  expect_refused({"explain", "--q", "1,2"}, 2, "need --x");
  expect_refused({"explain", "--x", "1,2;3"}, 2, "differ in length");
  expect_refused({"explain", "--x", "1,2", "--example", "self"}, 2, "cannot be combined");
  expect_refused({"explain", "--x", "1,2", "--wq", "1,2"}, 1, "does not fit W_Q");
  expect_refused({"explain", "--q", "1,2", "--k", "1,2,3"}, 1, "widths differ");
  expect_refused({"explain", "--q", "1,2", "--k", "1,2", "--v", "1;2"}, 1, "one value for each key");
  expect_refused({"explain", "--x", "1,2,3", "--heads", "2"}, 1, "cannot be cut");
  expect_refused({"explain", "--d-out", "1,2"}, 1, "not the gradient");
  expect_refused({"explain", "--mask", "1,2"}, 2, "takes part");
  expect_refused({"explain", "--mask", "1,1,1,1,1"}, 1, "does not broadcast");
  expect_refused({"explain", "--bias", "1,1;2,2"}, 1, "broadcast");
  expect_refused({"explain", "--x", "/missing.npy"}, 1, "No such file");
  expect_refused({"explain", "--json", "--latex"}, 2, "cannot be combined");
  expect_refused({"explain", "block", "--norm", "both"}, 2, "--norm");
  expect_refused({"explain", "block", "--x", "1,2"}, 2, "--x");
  expect_refused({"explain", "--heads", "2"}, 2, "need --x");
  expect_refused({"explain", "--x", "/no\nsuch.npy"}, 1, "/no?such.npy");
}

}  // namespace
}  // namespace qkv::app
