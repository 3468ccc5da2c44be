// The fuzzers' seeds without libFuzzer, for builds that have none: each as it is, cut short, and with bytes changed.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "qkv/base/rng.h"
#include "qkv/io/file.h"

#define READER(name, seeds) extern "C" int fuzz_##name(const uint8_t* data, size_t size);
#include "fuzz_readers.inc"
#undef READER

namespace {

constexpr size_t kMostBytes = 4096;  // as the fuzzers take
constexpr int kChanged = 200;        // of each seed

using Reader = int (*)(const uint8_t* data, size_t size);
using Input = std::vector<uint8_t>;

Input changed(const Input& seed, qkv::Rng& rng) {
  Input input = seed;
  if (input.empty()) return input;
  for (int64_t n = 1 + rng.below(4); n > 0; --n) {
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(input.size())));
    const int64_t how = rng.below(4);
    if (how == 0) input[at] = static_cast<uint8_t>(rng.below(256));
    if (how == 1) input[at] = static_cast<uint8_t>(input[at] ^ (1 << rng.below(8)));
    if (how == 2)
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), static_cast<uint8_t>('0' + rng.below(10)));
    if (how == 3 && input.size() > 1) input.erase(input.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return input;
}

/// How many inputs it read.
int read_all(Reader reader, const std::string& seeds) {
  int inputs = 0;
  const auto give = [&](const Input& input) {
    reader(input.data(), input.size());
    ++inputs;
  };
  qkv::Rng rng(1);
  for (const auto& entry : std::filesystem::directory_iterator(seeds)) {
    if (!entry.is_regular_file()) continue;
    Input seed;
    for (const std::byte b : qkv::read_file(entry.path().string())) seed.push_back(static_cast<uint8_t>(b));
    give(seed);
    if (seed.size() > kMostBytes) seed.resize(kMostBytes);
    const size_t step = seed.size() / kChanged + 1;
    for (size_t end = 0; end < seed.size(); end += step)
      give({seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(end)});
    for (int i = 0; i < kChanged; ++i) give(changed(seed, rng));
  }
  return inputs;
}

}  // namespace

int main() {
  bool good = true;
  const auto say = [&](const char* name, int inputs) {
    std::printf("%s: %d inputs\n", name, inputs);
    good = good && inputs > 0;
  };
#define READER(name, seeds) say(#name, read_all(fuzz_##name, seeds));
#include "fuzz_readers.inc"
  return good ? 0 : 1;
}
