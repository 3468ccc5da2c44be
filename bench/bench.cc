// Reads the command line of a benchmark.
#include "bench/bench.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "qkv/base/parallel.h"
#include "qkv/kernels/simd_target.h"

namespace qkv::bench {
namespace {

[[noreturn]] void usage_error(const std::string& message) {
  std::fprintf(stderr, "%s; see --help\n", message.c_str());
  std::exit(2);
}

int positive(const std::string& text) {
  char* end = nullptr;
  const long n = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || n < 1 || n > 1024) usage_error("'" + text + "' is not a number from 1 to 1024");
  return static_cast<int>(n);
}

}  // namespace

Options parse_options(int argc, char** argv, const std::string& what) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] {
      if (i + 1 >= argc) usage_error(arg + " needs a value");
      return std::string(argv[++i]);
    };
    if (arg == "--json") {
      o.json = true;
    } else if (arg == "--only") {
      o.only = value();
    } else if (arg == "--rounds") {
      o.rounds = positive(value());
    } else if (arg == "--target") {
      o.target = value();
    } else if (arg == "--threads") {
      std::stringstream list(value());
      o.threads.clear();  // the last one counts
      for (std::string n; std::getline(list, n, ',');) o.threads.push_back(positive(n));
    } else if (arg == "--help") {
      std::printf(
          "%s\n  --json           one JSON object per line instead of the table\n  --threads 1,2    thread counts "
          "(default: 1 and all)\n  --only TEXT      cases whose name contains TEXT\n  --rounds N       timing rounds "
          "(default 9)\n  --target NAME    SIMD target, one of:",
          what.c_str());
      for (const auto& t : kernels::simd_targets()) std::printf(" %s", t.c_str());
      std::printf("\n");
      std::exit(0);
    } else {
      usage_error("unknown option " + arg);
    }
  }
  if (!o.target.empty() && !kernels::force_simd_target(o.target))
    usage_error("this processor or build has no SIMD target " + o.target);
  if (o.threads.empty()) {
    o.threads = {1};
    if (num_threads() > 1) o.threads.push_back(num_threads());
  }
  return o;
}

}  // namespace qkv::bench
