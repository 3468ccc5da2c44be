// The table of experiments, and when a measurement agrees with its prediction.
#include "qkv/lab/experiment.h"

#include <algorithm>
#include <cmath>

#include "qkv/base/error.h"
#include "qkv/lab/experiments.h"

namespace qkv::lab {
namespace {

constexpr double kExact = 1e-5;

constexpr Experiment kExperiments[] = {
    {"copy", "a query along one key copies that key's value", copy_settings, run_copy},
    {"average", "a query along two keys averages their values", average_settings, run_average},
    {"kinds", "self or cross, soft or hard: which of the four copies, which spreads", kinds_settings, run_kinds},
    {"noisy-keys", "with one head the average swings when a key's length is noisy", noisy_keys_settings,
     run_noisy_keys},
    {"two-heads", "with two heads the average stays steady under the same noise", two_heads_settings, run_two_heads},
    {"subspaces", "two heads answer two questions at once, one head only their mixture", subspaces_settings,
     run_subspaces},
    {"beta", "from soft to hard: the entropy over β, and why β = 1/√d", beta_settings, run_beta},
    {"perturbed-key", "how the output moves when one key is moved a little, once or at random", perturbed_key_settings,
     run_perturbed_key},
    {"elongated-key", "a longer key wins weight if it points along the query, else loses it", elongated_key_settings,
     run_elongated_key},
    {"key-query-value", "what the K, Q and V matrices add to self-attention", key_query_value_settings,
     run_key_query_value},
    {"identity", "self-attention as the identity and as any permutation", identity_settings, run_identity},
    {"running-linear", "self-attention as a linear layer run over the positions", running_linear_settings,
     run_running_linear},
    {"convolution", "self-attention as a convolution: one head per offset", convolution_settings, run_convolution},
    {"positions", "without positions no order; sinusoids and relative shifts", positions_settings, run_positions},
    {"cost", "work, steps and path length of self-attention and of an RNN", cost_settings, run_cost},
    {"depth", "gradients through many layers: residuals, layer norm, before and after", depth_settings, run_depth},
    {"masks", "valid lengths, causal, window and boolean masks, drawn", masks_settings, run_masks},
    {"normalisers", "softmax, 1.5-entmax, sparsemax and hard on one slider", normalisers_settings, run_normalisers},
    {"worked", "a small example with every intermediate value", worked_settings, run_worked},
};

}  // namespace

bool Row::agrees() const { return std::abs(difference()) <= tolerance; }

void Result::exact(std::string at, std::string quantity, double predicted, double measured) {
  rows.push_back({std::move(at), std::move(quantity), predicted, measured, Kind::exact, 0,
                  kExact * std::max(1.0, std::abs(predicted))});
}

void Result::sampled(std::string at, std::string quantity, double predicted, double measured, double standard_error) {
  // Draws that never differ have no standard error: then the prediction has to be exact.
  rows.push_back({std::move(at), std::move(quantity), predicted, measured, Kind::sampled, standard_error,
                  std::max(3 * standard_error, kExact)});
}

void Result::first_order(std::string at, std::string quantity, double predicted, double measured, double bound) {
  rows.push_back({std::move(at), std::move(quantity), predicted, measured, Kind::first_order, 0, bound});
}

void Result::timed(std::string at, std::string quantity, double predicted, double measured) {
  rows.push_back({std::move(at), std::move(quantity), predicted, measured, Kind::timed, 0, 0.5});
}

std::vector<double> Result::measured_of(std::string_view quantity) const {
  std::vector<double> values;
  for (const Row& row : rows) {
    if (row.quantity == quantity) values.push_back(row.measured);
  }
  return values;
}

std::vector<double> Result::reach_of(std::string_view quantity) const {
  std::vector<double> values;
  for (const Row& row : rows) {
    if (row.quantity == quantity) values.push_back(3 * row.standard_error);
  }
  return values;
}

int64_t Result::disagreements() const {
  return std::count_if(rows.begin(), rows.end(),
                       [](const Row& row) { return row.kind != Kind::timed && !row.agrees(); });
}

std::string plain_formula(const std::string& formula) {
  std::string out;
  for (size_t i = 0; i < formula.size(); ++i) {
    if (formula[i] != '{') {
      out += formula[i];
      continue;
    }
    size_t close = i + 1;  // of the brace that opened at i
    for (int depth = 1; close < formula.size(); ++close) {
      depth += formula[close] == '{' ? 1 : formula[close] == '}' ? -1 : 0;
      if (depth == 0) break;
    }
    const std::string inside = plain_formula(formula.substr(i + 1, close - i - 1));
    // One character, whatever its number of bytes, needs no parentheses.
    const auto letters = std::count_if(inside.begin(), inside.end(), [](char c) { return (c & 0xC0) != 0x80; });
    if (inside == "2" && !out.empty() && out.back() == '^') {
      out.replace(out.size() - 1, 1, "²");
    } else {
      out += letters == 1 ? inside : "(" + inside + ")";
    }
    i = close;
  }
  return out;
}

std::span<const Experiment> experiment_table() { return kExperiments; }

const Experiment& find_experiment(const std::string& name) {
  std::vector<std::string> names;
  for (const Experiment& e : kExperiments) {
    if (name == e.name) return e;
    names.emplace_back(e.name);
  }
  throw ConfigError(unknown_name("experiment", name, names));
}

}  // namespace qkv::lab
