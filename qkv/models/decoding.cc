// Greedy and beam search.
#include "qkv/models/decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/core/autograd.h"
#include "qkv/kernels/rowwise.h"

namespace qkv {
namespace {

struct Candidate {
  double log_probability = 0;  // of the whole hypothesis
  int64_t row = 0, token = 0;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.row != b.row ? a.row < b.row : a.token < b.token;
}

// log Σ exp of every row.
std::vector<float> normalisers(const Tensor& scores) {
  const auto rows = static_cast<size_t>(scores.dim(0));
  std::vector<float> lse(rows);
  const std::vector<int64_t> targets(rows, 0);
  kernels::cross_entropy({.rows = scores.dim(0),
                          .V = scores.dim(1),
                          .logits = scores.f32(),
                          .targets = targets.data(),
                          .lse = lse.data()});
  return lse;
}

// The k best next tokens of one row, as hypotheses that so far have log probability `before` - lse.
std::vector<Candidate> best_of_row(const float* scores, int64_t V, int64_t k, int64_t row, double before) {
  std::vector<Candidate> best;
  const auto take = [&](int64_t j) {
    const Candidate c{before + static_cast<double>(scores[j]), row, j};
    if (std::isnan(c.log_probability)) return;
    best.insert(std::upper_bound(best.begin(), best.end(), c, better), c);
    if (static_cast<int64_t>(best.size()) > k) best.pop_back();
  };
  // Most tokens are worse than the k-th best so far, and one comparison tells.
  for (int64_t j = 0; j < V; ++j) {
    if (static_cast<int64_t>(best.size()) < k || scores[j] > scores[best.back().token]) take(j);
  }
  return best;
}

struct Partial {
  std::vector<int64_t> tokens;
  double log_probability = 0;
};

// One source sentence during the search. Its live hypotheses own consecutive rows of the decoder.
struct Sentence {
  std::vector<Partial> live;
  std::vector<Hypothesis> finished;  // best first
  int64_t max_length = 0;
  bool done = false;
};

class Search {
 public:
  Search(StepDecoder& decoder, const SearchOptions& options) : decoder_(decoder), options_(options) {
    const auto n = static_cast<size_t>(decoder.rows());
    if (options.beam < 1 || options.n_best < 1 || options.n_best > options.beam) {
      throw ConfigError("beam must be at least 1 and n_best between 1 and beam, not " + std::to_string(options.beam) +
                        " and " + std::to_string(options.n_best));
    }
    if (options.max_lengths.size() != 1 && options.max_lengths.size() != n) {
      throw ConfigError(std::to_string(options.max_lengths.size()) + " length limits for " + std::to_string(n) +
                        " sentences");
    }
    if (!options.first.empty() && options.first.size() != n) {
      throw ConfigError(std::to_string(options.first.size()) + " first tokens for " + std::to_string(n) + " sentences");
    }
    sentences_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      sentences_[i].live = {Partial{}};
      sentences_[i].max_length = options.max_lengths[options.max_lengths.size() == 1 ? 0 : i];
      if (sentences_[i].max_length < 1) throw ConfigError("the longest output must be at least 1 token");
    }
  }

  std::vector<std::vector<Hypothesis>> run() {
    std::vector<int64_t> tokens = options_.first;
    if (tokens.empty()) tokens.assign(sentences_.size(), options_.begin);
    for (int64_t length = 1; !tokens.empty(); ++length) {
      extend(decoder_.step(tokens), length);
      tokens = keep_live();
    }
    std::vector<std::vector<Hypothesis>> results;
    for (Sentence& s : sentences_) {
      if (s.finished.empty()) finish(s, Partial{}, -std::numeric_limits<double>::infinity(), 1, false);
      if (static_cast<int64_t>(s.finished.size()) > options_.n_best)
        s.finished.resize(static_cast<size_t>(options_.n_best));
      results.push_back(std::move(s.finished));
    }
    return results;
  }

 private:
  double ranked(double log_probability, int64_t length) const {
    return log_probability / std::pow((5.0 + static_cast<double>(length)) / 6.0, options_.length_penalty);
  }

  void finish(Sentence& s, const Partial& p, double log_probability, int64_t length, bool complete) const {
    Hypothesis h{p.tokens, log_probability, ranked(log_probability, length), complete};
    const auto at = std::upper_bound(s.finished.begin(), s.finished.end(), h,
                                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    s.finished.insert(at, std::move(h));
    if (static_cast<int64_t>(s.finished.size()) > options_.beam) s.finished.pop_back();
  }

  // Replaces each sentence's live hypotheses by the best of their continuations.
  void extend(const Tensor& scores_in, int64_t length) {
    const bool ready = scores_in.dtype() == DType::f32 && scores_in.is_contiguous();
    const Tensor scores = ready ? scores_in : scores_in.to(DType::f32);
    const int64_t V = scores.dim(1), k = std::min(2 * options_.beam, V);
    std::vector<double> before;
    const std::vector<float> lse = normalisers(scores);
    for (const Sentence& s : sentences_) {
      for (const Partial& p : s.live) {
        before.push_back(p.log_probability - static_cast<double>(lse[before.size()]));
      }
    }
    std::vector<std::vector<Candidate>> best(before.size());
    const bool forced = length <= static_cast<int64_t>(options_.forced.size());
    const int64_t token = forced ? options_.forced[static_cast<size_t>(length - 1)] : 0;
    if (token < 0 || token >= V) throw ConfigError("no token " + std::to_string(token) + " to begin an output with");
    parallel_for(scores.dim(0), [&](int64_t row) {
      const auto i = static_cast<size_t>(row);
      if (forced) {
        best[i] = {{before[i] + static_cast<double>(scores.f32()[row * V + token]), row, token}};
        return;
      }
      best[i] = best_of_row(scores.f32() + row * V, V, options_.beam == 1 ? 1 : k, row, before[i]);
    });
    source_rows_.clear();
    size_t first = 0;
    for (Sentence& s : sentences_) {
      const size_t count = s.live.size();
      std::vector<Candidate> all;
      for (size_t i = first; i < first + count; ++i) all.insert(all.end(), best[i].begin(), best[i].end());
      std::sort(all.begin(), all.end(), better);
      advance(s, all, static_cast<int64_t>(first), length);
      first += count;
    }
  }

  void advance(Sentence& s, const std::vector<Candidate>& candidates, int64_t first, int64_t length) {
    std::vector<Partial> next;
    for (const Candidate& c : candidates) {
      if (static_cast<int64_t>(next.size()) == options_.beam) break;
      if (!std::isfinite(c.log_probability)) continue;  // impossible, or not a number
      const Partial& from = s.live[static_cast<size_t>(c.row - first)];
      if (c.token == options_.end) {
        finish(s, from, c.log_probability, length, true);
        if (options_.beam == 1) break;
        continue;
      }
      Partial p{from.tokens, c.log_probability};
      p.tokens.push_back(c.token);
      if (length == s.max_length) {
        finish(s, p, c.log_probability, length, false);
        continue;
      }
      next.push_back(std::move(p));
      source_rows_.push_back(c.row);
    }
    // Log probabilities only fall, so a live hypothesis can at best keep its own to the longest length.
    const bool full = static_cast<int64_t>(s.finished.size()) >= options_.beam;
    if (!next.empty() && full && ranked(next.front().log_probability, s.max_length) <= s.finished.back().score) {
      source_rows_.resize(source_rows_.size() - next.size());
      next.clear();
    }
    s.live = std::move(next);
  }

  // Tells the decoder which rows continue and gives their newest tokens.
  std::vector<int64_t> keep_live() {
    std::vector<int64_t> tokens;
    for (const Sentence& s : sentences_) {
      for (const Partial& p : s.live) tokens.push_back(p.tokens.back());
    }
    bool unchanged = static_cast<int64_t>(source_rows_.size()) == decoder_.rows();
    for (size_t i = 0; unchanged && i < source_rows_.size(); ++i) {
      unchanged = source_rows_[i] == static_cast<int64_t>(i);
    }
    if (!unchanged && !tokens.empty()) decoder_.select(source_rows_);
    return tokens;
  }

  StepDecoder& decoder_;
  const SearchOptions& options_;
  std::vector<Sentence> sentences_;
  std::vector<int64_t> source_rows_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> search(StepDecoder& decoder, const SearchOptions& options) {
  NoGrad guard;
  if (decoder.rows() == 0) return {};
  return Search(decoder, options).run();
}

}  // namespace qkv
