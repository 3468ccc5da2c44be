// Ragged batches: sequences of different lengths packed one after the other, and their order in time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace qkv {

/// The rows of a packed batch as a recurrent layer walks them: longest sequences first, so that step t works on the
/// first count(t) of them and nothing is computed for padding. Time-major row begin[t] + r is step t of sequence
/// order[r]; a backward layer uses the same order and reads each sequence from its end.
struct TimeOrder {
  std::vector<int64_t> order;          // [B] sequences, longest first, ties in batch order
  std::vector<int64_t> begin;          // [longest+1]
  std::vector<int64_t> forward_rows;   // [T] packed row of each time-major row
  std::vector<int64_t> backward_rows;  // [T] the same for a layer that runs from the end to the start
  bool same_lengths = true;            // every step works on all sequences

  int64_t steps() const { return static_cast<int64_t>(begin.size()) - 1; }
  /// Sequences that reach step t.
  int64_t count(int64_t t) const { return begin[static_cast<size_t>(t) + 1] - begin[static_cast<size_t>(t)]; }
  /// The order of one direction.
  const std::vector<int64_t>& rows(bool backward) const { return backward ? backward_rows : forward_rows; }
};

/// A batch of B sequences with T tokens in all: sequence b owns rows offsets[b] … offsets[b+1]-1 of a [T, C] matrix.
/// Copies share one index, built once.
class Ragged {
 public:
  /// No sequences.
  Ragged() : Ragged(std::span<const int64_t>()) {}
  /// Throws ShapeError on a negative length. Lengths of 0 are allowed.
  explicit Ragged(std::span<const int64_t> lengths);
  Ragged(std::initializer_list<int64_t> lengths) : Ragged(std::span<const int64_t>(lengths.begin(), lengths.size())) {}
  /// B sequences of one length.
  static Ragged equal(int64_t B, int64_t length);

  int64_t sequences() const { return static_cast<int64_t>(index_->offsets.size()) - 1; }
  int64_t rows() const { return index_->offsets.back(); }
  int64_t longest() const { return index_->time.steps(); }
  /// First row of sequence b.
  int64_t begin(int64_t b) const { return index_->offsets[static_cast<size_t>(b)]; }
  /// Rows of sequence b.
  int64_t length(int64_t b) const { return begin(b + 1) - begin(b); }
  const std::vector<int64_t>& offsets() const { return index_->offsets; }  // [B+1]
  const TimeOrder& time() const { return index_->time; }
  /// Position of each row within its sequence, [T].
  std::vector<int64_t> positions() const;

 private:
  struct Index {
    std::vector<int64_t> offsets;
    TimeOrder time;
  };
  std::shared_ptr<const Index> index_;
};

}  // namespace qkv
