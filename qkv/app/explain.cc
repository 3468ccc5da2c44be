// The explain command: every intermediate value of a small attention example.
#include "qkv/lab/explain/explain.h"

#include <cmath>
#include <cstdio>
#include <tuple>

#include "qkv/app/cli.h"
#include "qkv/base/error.h"
#include "qkv/io/npy.h"

namespace qkv::app {
namespace {

using lab::BlockInput;
using lab::ExplainInput;
using lab::Explanation;
using lab::parse_matrix;

const char* const kAbout =
    "Every intermediate value of a small attention example, forward and backward, in double precision.\n"
    "Without matrices it shows a built-in example; --example chooses which.";

const char* const kExamples =
    "Built-in examples:\n"
    "  query   one query on four keys that are also the values\n"
    "  self    self-attention of four tokens, one head with W_Q, W_K, W_V\n"
    "  heads   the same with a second head and W_O\n"
    "\n"
    "A MATRIX is a .npy file or written inline, rows ended by ;  such as \"1,0;0,1\".\n"
    "What is not given: q, k and v are x; v is k; without a projection W the matrix is used itself.\n"
    "\n"
    "Examples:\n"
    "  qkv explain                                        the example 'query'\n"
    "  qkv explain --example self --causal                what a mask changes, also in the gradients\n"
    "  qkv explain --q \"1,0\" --k \"1,0;0,1\" --v \"10;20\" --beta 4\n"
    "  qkv explain --x \"1,0;0,1;1,1\" --normaliser sparsemax --d-out \"1,0;0,0;0,0\"\n"
    "  qkv explain --example heads --latex > heads.tex    needs amsmath\n"
    "  qkv explain block                                  a whole Transformer block; 'qkv explain block --help'";

struct Options {
  std::string example = "query";
  std::string x, q, k, v, w_q, w_k, w_v, w_o, mask, bias, d_out;
  int64_t heads = 1, window_left = -1, window_right = -1;
  Score score = Score::scaled_dot;
  Normaliser normaliser = Normaliser::softmax;
  double scale = 0, beta = 0, softcap = 0;
  bool causal = false, forward_only = false, json = false, latex = false;
  int digits = 6;
};

Tensor load_matrix(const std::string& text, const std::string& option) {
  if (text.empty()) return {};
  if (text.size() < 4 || text.compare(text.size() - 4, 4, ".npy") != 0) return parse_matrix(text, option);
  const NpyArray array = load_npy(text);
  Shape shape = array.shape;
  if (shape.rank() == 1) shape = {1, shape[0]};
  if (shape.rank() != 2 || shape.numel() == 0) {
    throw ShapeError("[explain] " + option + " " + text + " has shape " + array.shape.str() + "; expected a matrix");
  }
  return Tensor::from(array.to_f64(), shape);
}

BoolMask load_mask(const std::string& text) {
  const Tensor m = load_matrix(text, "--mask");
  if (!m.defined()) return {};
  std::vector<uint8_t> values;
  for (const double x : m.to_doubles()) {
    if (x != 0 && x != 1) throw ConfigError("--mask: expected 1 (takes part) and 0 (hidden) only");
    values.push_back(x != 0 ? 1 : 0);
  }
  return bool_mask(std::move(values), m.shape());
}

void add_matrices(Cli& cli, Options& o) {
  const std::tuple<const char*, std::string*, const char*> matrices[] = {
      {"--x", &o.x, "tokens: queries, keys and values unless given"},
      {"--q", &o.q, "queries, one per row"},
      {"--k", &o.k, "keys"},
      {"--v", &o.v, "values"},
      {"--wq", &o.w_q, "projection of the queries"},
      {"--wk", &o.w_k, "projection of the keys"},
      {"--wv", &o.w_v, "projection of the values"},
      {"--wo", &o.w_o, "projection of the output"},
      {"--d-out", &o.d_out, "gradient of the output [ones]"}};
  for (const auto& [name, text, help] : matrices) {
    cli.text(name, *text, "MATRIX", help).in("Own matrices");
  }
  cli.integer("--heads", o.heads, "heads the projections' columns are cut into [1]", 1, 64).in("Own matrices");
}

void add_rule(Cli& cli, Options& o) {
  const char* group = "Rule";
  cli.number("--scale", o.scale, "factor of q·k [1/√D]").in(group);
  cli.number("--beta", o.beta, "the same, inverse temperature").in(group);
  cli.choice("--score", o.score).in(group);
  cli.choice("--normaliser", o.normaliser).in(group);
  cli.number("--softcap", o.softcap, "c·tanh(z/c) on the scores").in(group);
  cli.flag("--causal", o.causal, "query i sees keys up to i only").in(group);
  cli.integer("--window-left", o.window_left, "at most N keys back", -1, 64).in(group);
  cli.integer("--window-right", o.window_right, "at most N keys ahead", -1, 64).in(group);
  cli.text("--mask", o.mask, "MATRIX", "1 = the query sees the key, 0 = hidden; [Lq,Lk]").in(group);
  cli.text("--bias", o.bias, "MATRIX", "added to the scores; [Lq,Lk]").in(group);
}

void add_output(Cli& cli, Options& o) {
  const char* group = "Output";
  cli.integer("--digits", o.digits, "decimals of computed numbers [6]", 0, 15).in(group);
  cli.flag("--json", o.json, "as JSON, all digits; hidden scores are null").in(group);
  cli.flag("--latex", o.latex, "as LaTeX; not with --json").in(group);
}

void print(const Explanation& e, const Options& o) {
  if (o.json && o.latex) throw ConfigError("--latex and --json cannot be combined");
  const std::string text = o.json    ? explanation_json(e)
                           : o.latex ? explanation_latex(e, o.digits)
                                     : explanation_text(e, o.digits);
  std::fputs(text.c_str(), stdout);
}

int run_block(const Arguments& arguments) {
  Cli cli("Every number of a Transformer block of a tiny model, forward, in double precision.", "explain block");
  Options o;
  std::string norm = "post";
  BlockInput block;
  cli.choice("--norm", norm, "WHERE", "layer norm after each sublayer (post) or before it (pre) [post]",
             {"post", "pre"});
  cli.flag("--causal", block.causal, "a token sees itself and those before it only");
  add_output(cli, o);
  if (!cli.parse(arguments)) return 0;
  block.pre_norm = norm == "pre";
  print(explain_block(block), o);
  return 0;
}

void check_usage(const Cli& cli, const Options& o) {
  const auto given = [&](const char* name) { return cli.given(name); };
  bool own = false;
  for (const char* name : {"--x", "--q", "--k", "--v", "--wq", "--wk", "--wv", "--wo", "--heads"})
    own = own || given(name);
  if (own && given("--example")) throw ConfigError("--example cannot be combined with matrices of your own");
  if (own && !given("--x") && !(given("--q") && given("--k"))) {
    throw ConfigError("own matrices need --x, or --q and --k; see 'qkv explain --help'");
  }
  if (given("--scale") && given("--beta"))
    throw ConfigError("--scale and --beta are the same number; give one of them");
  if (!std::isfinite(o.scale)) throw ConfigError("--scale must be a finite number");
  if (!std::isfinite(o.beta)) throw ConfigError("--beta must be a finite number");
  if (!std::isfinite(o.softcap) || o.softcap < 0) throw ConfigError("--softcap must be a number of at least 0");
}

ExplainInput own_input(const Options& o) {
  ExplainInput in;
  in.title = "Attention on your matrices";
  const Tensor x = load_matrix(o.x, "--x");
  const auto or_x = [&](const std::string& text, const char* name) {
    return text.empty() ? ExplainInput::Named{"X", x}
                        : ExplainInput::Named{name, load_matrix(text, std::string("--") + name)};
  };
  in.q = or_x(o.q, "q");
  in.k = or_x(o.k, "k");
  in.v = o.v.empty() ? in.k : or_x(o.v, "v");
  in.w_q = load_matrix(o.w_q, "--wq");
  in.w_k = load_matrix(o.w_k, "--wk");
  in.w_v = load_matrix(o.w_v, "--wv");
  in.w_o = load_matrix(o.w_o, "--wo");
  in.heads = o.heads;
  return in;
}

void set_rule(const Cli& cli, const Options& o, ScoreRule& rule) {
  if (o.score == Score::dot) rule.scale = 1.0;
  if (cli.given("--scale")) rule.scale = o.scale;
  if (cli.given("--beta")) rule.scale = o.beta;
  rule.normaliser = o.normaliser;
  rule.softcap = o.softcap;
  rule.causal = o.causal;
  rule.window_left = o.window_left;
  rule.window_right = o.window_right;
  rule.mask = load_mask(o.mask);
  rule.bias = load_matrix(o.bias, "--bias");
}

}  // namespace

int run_explain(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "block") return run_block({arguments.begin() + 1, arguments.end()});
  Cli cli(kAbout, "explain");
  Options o;
  std::string what;
  cli.choice("WHAT", what, "KIND", "block: every number of a Transformer block instead", {"block"});
  cli.text("--example", o.example, "NAME", "query, self or heads [query]").among({"query", "self", "heads"});
  add_matrices(cli, o);
  add_rule(cli, o);
  add_output(cli, o);
  cli.flag("--forward", o.forward_only, "leave out the backward part").in("Output");
  cli.footer(kExamples);
  if (!cli.parse(arguments)) return 0;
  check_usage(cli, o);
  const bool own = !o.x.empty() || !o.q.empty();
  ExplainInput in = own ? own_input(o) : lab::builtin_example(o.example);
  set_rule(cli, o, in.rule);
  in.d_out = load_matrix(o.d_out, "--d-out");
  in.backward = !o.forward_only;
  print(explain(in), o);
  return 0;
}

}  // namespace qkv::app
