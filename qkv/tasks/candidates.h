// What a model might have written instead: the likeliest tokens of each step, for traces.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "qkv/tasks/task.h"

namespace qkv {

constexpr int64_t kCandidates = 10;  // of each step in a trace

/// The `most` likeliest tokens of every row of logits [T, V], best first (ties: the smaller id), with their share of
/// softmax over all V.
std::vector<std::vector<TracedCandidate>> likeliest(const Tensor& logits, int64_t most,
                                                    const std::function<std::string(int64_t)>& name);

}  // namespace qkv
