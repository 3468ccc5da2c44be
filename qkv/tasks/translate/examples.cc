// Choosing sentences worth an alignment diagram.
#include "qkv/tasks/translate/examples.h"

#include <algorithm>
#include <array>

namespace qkv {
namespace {

constexpr double kEnoughTokens = 8;  // shorter sentences are in order without having had a choice

struct Wish {
  const char* why;
  bool (*better)(const LookedAt& a, const LookedAt& b);
};

bool long_enough_first(const LookedAt& a, const LookedAt& b, bool otherwise) {
  const bool enough_a = a.tokens >= kEnoughTokens, enough_b = b.tokens >= kEnoughTokens;
  return enough_a != enough_b ? enough_a : otherwise;
}

// A translation that never ends goes in circles, which says nothing about the order of words.
bool ended_first(const LookedAt& a, const LookedAt& b, bool otherwise) {
  return a.ended != b.ended ? a.ended : otherwise;
}

constexpr std::array kWishes{
    Wish{"nearly in order",
         [](const LookedAt& a, const LookedAt& b) { return long_enough_first(a, b, a.backwards < b.backwards); }},
    Wish{"most out of order",
         [](const LookedAt& a, const LookedAt& b) { return ended_first(a, b, a.backwards > b.backwards); }},
    Wish{"the longest", [](const LookedAt& a, const LookedAt& b) { return a.tokens > b.tokens; }},
    Wish{"the worst translation", [](const LookedAt& a, const LookedAt& b) { return a.bleu < b.bleu; }},
    Wish{"the best translation",
         [](const LookedAt& a, const LookedAt& b) { return long_enough_first(a, b, a.bleu > b.bleu); }},
    Wish{"the longest jump back",
         [](const LookedAt& a, const LookedAt& b) { return ended_first(a, b, a.jump > b.jump); }},
    Wish{"the least certain", [](const LookedAt& a, const LookedAt& b) { return a.sureness < b.sureness; }},
    Wish{"the most certain",
         [](const LookedAt& a, const LookedAt& b) { return long_enough_first(a, b, a.sureness > b.sureness); }},
    Wish{"the shortest", [](const LookedAt& a, const LookedAt& b) { return a.tokens < b.tokens; }},
};

}  // namespace

LookedAt look_at(const AlignmentWeights& weights) {
  LookedAt seen;
  int64_t before = 0;
  for (const std::vector<double>& row : weights) {
    const auto best = std::max_element(row.begin(), row.end());
    const int64_t here = best - row.begin();
    const double back = here < before ? static_cast<double>(before - here) : 0;
    seen.backwards += back;
    seen.jump = std::max(seen.jump, back);
    seen.sureness += row.empty() ? 0 : *best;
    before = here;
  }
  const auto rows = static_cast<double>(std::max<size_t>(weights.size(), 1));
  seen.backwards /= rows;
  seen.sureness /= rows;
  return seen;
}

std::vector<ChosenExample> choose_examples(std::vector<LookedAt> all, int64_t n) {
  std::vector<ChosenExample> chosen;
  const auto wanted = [&] { return static_cast<int64_t>(chosen.size()) < n && !all.empty(); };
  for (const Wish& wish : kWishes) {
    if (!wanted()) break;
    const auto best = std::min_element(all.begin(), all.end(), wish.better);  // the first of equals
    chosen.push_back({best->index, wish.why});
    all.erase(best);
  }
  std::sort(all.begin(), all.end(), [](const LookedAt& a, const LookedAt& b) { return a.index < b.index; });
  for (size_t i = 0; i < all.size() && static_cast<int64_t>(chosen.size()) < n; ++i) {
    chosen.push_back({all[i].index, "the next of the set"});
  }
  return chosen;
}

}  // namespace qkv
