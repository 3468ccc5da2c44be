// Greedy and beam search.
#include "qkv/models/decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
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

// The k best next tokens of one row into `best`, as hypotheses that so far have log probability `before` - lse.
void best_of_row(std::span<const float> scores, size_t k, int64_t row, double before, std::vector<Candidate>& best) {
  best.clear();
  float least = -std::numeric_limits<float>::infinity();  // from when on there are k: the k-th best
  const auto take = [&](size_t j) {
    const Candidate c{before + static_cast<double>(scores[j]), row, static_cast<int64_t>(j)};
    if (std::isnan(c.log_probability)) return;
    best.insert(std::upper_bound(best.begin(), best.end(), c, better), c);
    if (best.size() > k) best.pop_back();
    if (best.size() == k) least = scores[static_cast<size_t>(best.back().token)];
  };
  // Most tokens are worse than the k-th best so far, and one comparison tells, many at a time.
  constexpr size_t kBlock = 64;
  for (size_t j = 0; j < scores.size(); j += kBlock) {
    const std::span<const float> block = scores.subspan(j, std::min(kBlock, scores.size() - j));
    bool any = best.size() < k;
    for (const float score : block) any |= score > least;
    for (size_t i = 0; any && i < block.size(); ++i) {
      if (best.size() < k || block[i] > least) take(j + i);
    }
  }
}

struct Partial {
  std::vector<int64_t> tokens;
  double log_probability = 0;
};

// One source sentence during the search. Its live hypotheses own consecutive rows of the decoder.
struct Sentence {
  std::vector<Partial> live, next;   // next: room for those to come
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
    tokens_ = options_.first;
    if (tokens_.empty()) tokens_.assign(sentences_.size(), options_.begin);
    for (int64_t length = 1; !tokens_.empty(); ++length) {
      extend(decoder_.step(tokens_), length);
      keep_live();
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
    const int64_t V = scores.dim(1), k = options_.beam == 1 ? 1 : std::min(2 * options_.beam, V);
    const auto rows = static_cast<size_t>(scores.dim(0));
    find_normalisers(scores);
    before_.clear();
    for (const Sentence& s : sentences_) {
      for (const Partial& p : s.live) {
        before_.push_back(p.log_probability - static_cast<double>(normalisers_[before_.size()]));
      }
    }
    if (best_.size() < rows) best_.resize(rows);
    const bool forced = length <= static_cast<int64_t>(options_.forced.size());
    const int64_t token = forced ? options_.forced[static_cast<size_t>(length - 1)] : 0;
    if (token < 0 || token >= V) throw ConfigError("no token " + std::to_string(token) + " to begin an output with");
    parallel_for(scores.dim(0), [&](int64_t row) {
      const auto i = static_cast<size_t>(row);
      const std::span<const float> own(scores.f32() + row * V, static_cast<size_t>(V));
      if (forced) {
        best_[i] = {{before_[i] + static_cast<double>(own[static_cast<size_t>(token)]), row, token}};
      } else {
        best_of_row(own, static_cast<size_t>(k), row, before_[i], best_[i]);
      }
    });
    source_rows_.clear();
    size_t first = 0;
    for (Sentence& s : sentences_) {
      const size_t count = s.live.size();
      all_.clear();
      for (size_t i = first; i < first + count; ++i) all_.insert(all_.end(), best_[i].begin(), best_[i].end());
      std::sort(all_.begin(), all_.end(), better);
      advance(s, static_cast<int64_t>(first), length);
      first += count;
    }
  }

  // log Σ exp of every row.
  void find_normalisers(const Tensor& scores) {
    const auto rows = static_cast<size_t>(scores.dim(0));
    normalisers_.resize(rows);
    any_target_.assign(rows, 0);
    kernels::cross_entropy({.rows = scores.dim(0),
                            .V = scores.dim(1),
                            .logits = scores.f32(),
                            .targets = any_target_.data(),
                            .lse = normalisers_.data()});
  }

  // all_: the candidates of this sentence, whose rows begin at `first`.
  void advance(Sentence& s, int64_t first, int64_t length) {
    chosen_.clear();
    for (const Candidate& c : all_) {
      if (static_cast<int64_t>(chosen_.size()) == options_.beam) break;
      if (!std::isfinite(c.log_probability)) continue;  // impossible, or not a number
      const Partial& from = s.live[static_cast<size_t>(c.row - first)];
      if (c.token == options_.end) {
        finish(s, from, c.log_probability, length, true);
        if (options_.beam == 1) break;
        continue;
      }
      if (length == s.max_length) {
        Partial whole = from;
        whole.tokens.push_back(c.token);
        finish(s, whole, c.log_probability, length, false);
        continue;
      }
      chosen_.push_back(c);
    }
    // Log probabilities only fall, so a live hypothesis can at best keep its own to the longest length.
    const bool full = static_cast<int64_t>(s.finished.size()) >= options_.beam;
    if (!chosen_.empty() && full && ranked(chosen_.front().log_probability, s.max_length) <= s.finished.back().score) {
      chosen_.clear();
    }
    go_on(s, first);
  }

  // The chosen candidates become the live hypotheses: the last that continues a row takes its tokens, others copy.
  void go_on(Sentence& s, int64_t first) {
    s.next.clear();
    for (auto c = chosen_.begin(); c != chosen_.end(); ++c) {
      Partial& from = s.live[static_cast<size_t>(c->row - first)];
      const bool last = std::none_of(c + 1, chosen_.end(), [&](const Candidate& later) { return later.row == c->row; });
      s.next.push_back({last ? std::move(from.tokens) : from.tokens, c->log_probability});
      s.next.back().tokens.push_back(c->token);
      source_rows_.push_back(c->row);
    }
    s.live.swap(s.next);
  }

  // Tells the decoder which rows continue, and notes their newest tokens.
  void keep_live() {
    tokens_.clear();
    for (const Sentence& s : sentences_) {
      for (const Partial& p : s.live) tokens_.push_back(p.tokens.back());
    }
    bool unchanged = static_cast<int64_t>(source_rows_.size()) == decoder_.rows();
    for (size_t i = 0; unchanged && i < source_rows_.size(); ++i) {
      unchanged = source_rows_[i] == static_cast<int64_t>(i);
    }
    if (!unchanged && !tokens_.empty()) decoder_.select(source_rows_);
  }

  StepDecoder& decoder_;
  const SearchOptions& options_;
  std::vector<Sentence> sentences_;
  std::vector<int64_t> tokens_, source_rows_;  // of each live hypothesis: its newest token, the row it continues
  // Of one step, kept so that the next one asks for no memory.
  std::vector<float> normalisers_;
  std::vector<int64_t> any_target_;
  std::vector<double> before_;
  std::vector<std::vector<Candidate>> best_;
  std::vector<Candidate> all_, chosen_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> search(StepDecoder& decoder, const SearchOptions& options) {
  NoGrad guard;
  if (decoder.rows() == 0) return {};
  return Search(decoder, options).run();
}

}  // namespace qkv
