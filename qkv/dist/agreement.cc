// Errors gathered with the results, so that nobody waits for one who gave up.
#include "qkv/dist/agreement.h"

#include <algorithm>
#include <new>

#include "qkv/dist/host.h"

namespace qkv {
namespace {

enum class Outcome : uint8_t { fine, config, io, other };

template <class E>
struct Agreed final : E, AgreedError {
  using E::E;
};

[[noreturn]] void throw_agreed(Outcome kind, const std::string& what) {
  if (kind == Outcome::config) throw Agreed<ConfigError>(what);
  if (kind == Outcome::io) throw Agreed<IoError>(what);
  throw Agreed<Error>(what);
}

}  // namespace

std::vector<std::string> gather_agreed(Processes& processes, const std::function<std::string()>& work) {
  if (processes.size() == 1) return {work()};
  using Message = std::tuple<Outcome, std::string, std::string>;
  Message mine{Outcome::fine, "", ""};
  auto& [kind, where, text] = mine;
  try {
    text = work();
  } catch (const ConfigError& e) {
    kind = Outcome::config, text = e.what();
  } catch (const IoError& e) {
    kind = Outcome::io, text = e.what();
  } catch (const std::bad_alloc&) {
    kind = Outcome::other, text = kOutOfMemory;
  } catch (const std::exception& e) {
    kind = Outcome::other, text = e.what();
  }
  if (kind != Outcome::fine) where = process_name(processes.rank());
  const std::vector<std::string> all = processes.gather(packed(mine));
  std::vector<std::string> results;
  for (size_t r = 0; r < all.size(); ++r) {
    auto [outcome, from, given] = unpacked<Message>(all[r]);
    if (outcome != Outcome::fine) throw_agreed(outcome, r == 0 ? given : from + ": " + given);
    results.push_back(std::move(given));
  }
  return results;
}

void agree(Processes& processes, const std::function<void()>& work) {
  gather_agreed(processes, [&] {
    work();
    return std::string();
  });
}

void agree_on_first(Processes& processes, const std::function<void()>& work) {
  agree(processes, [&] {
    if (processes.rank() == 0) work();
  });
}

bool any_of(Processes& processes, bool here) {
  const std::vector<std::string> all = processes.gather(here ? "yes" : "");
  return std::any_of(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
}

}  // namespace qkv
