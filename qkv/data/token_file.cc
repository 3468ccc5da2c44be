// Token files: the tokens, then what they are of, with checksums.
#include "qkv/data/token_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/data/preparation.h"
#include "qkv/io/checksum.h"
#include "qkv/io/fd.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMagic = 0x31736E656B6F7471;  // "qtokens1"
constexpr size_t kStretchesAtOnce = 64;
constexpr uint64_t kChecked = uint64_t{1} << 20;  // bytes read at a time

void pack_number(std::string& to, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t unpack_number(const char* bytes, int width) {
  uint64_t value = 0;
  for (int i = 0; i < width; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

uint64_t key_of(TextPart part, const Tokenizer& tokenizer) {
  Xxh64 sum;
  sum.add(bytes_of(tokenizer.bytes()));
  sum.add(bytes_of(std::to_string(part.begin) + "-" + std::to_string(part.end)));
  return sum.sum();
}

/// The last bytes of a token file.
struct Footer {
  uint64_t text = 0, key = 0, tokens = 0, width = 0, body = 0;  // text and body: checksums
  static constexpr size_t kBytes = 7 * 8;

  std::string packed() const {
    std::string bytes;
    for (const uint64_t value : {kMagic, text, key, tokens, width, body}) pack_number(bytes, value, 8);
    pack_number(bytes, xxh64(bytes_of(bytes)), 8);
    return bytes;
  }
  /// Nothing when it is damaged.
  static std::optional<Footer> unpacked(const std::string& bytes) {
    if (bytes.size() != kBytes) return std::nullopt;
    std::array<uint64_t, 7> v{};
    for (size_t i = 0; i < v.size(); ++i) v[i] = unpack_number(bytes.data() + 8 * i, 8);
    const Footer footer{v[1], v[2], v[3], v[4], v[5]};
    return footer.packed() == bytes ? std::optional(footer) : std::nullopt;
  }
};

/// Held while a token file is looked for and made, so that of several processes one makes it. A file system without
/// locks does without: then each makes its own, and the last one stays.
class MakersLock {
 public:
  explicit MakersLock(const std::string& text) : fd_(::open(text.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_.get() < 0 || ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    tell_note("waiting for another process, which makes the tokens of " + text);
    while (::flock(fd_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  }

 private:
  Fd fd_;
};

/// What is wrong with a token file; "" when nothing is.
std::string fault_of(const ByteSource& file, const std::string& path, const Footer& wanted, Footer& found) {
  if (file.size() < Footer::kBytes) return "damaged";
  const uint64_t body = file.size() - Footer::kBytes;
  const std::optional<Footer> footer = Footer::unpacked(file.read(body, Footer::kBytes));
  if (!footer || footer->width != wanted.width || footer->tokens * footer->width != body) return "damaged";
  if (footer->key != wanted.key) return "of another tokenizer";
  if (footer->text != wanted.text) return "of a text that has changed since";
  Xxh64 sum;
  for (uint64_t at = 0; at < body; at += kChecked) {
    sum.add(bytes_of(file.read(at, std::min(kChecked, body - at))));
    tell_progress("checking " + path, std::min(at + kChecked, body), body);
  }
  if (sum.sum() != footer->body) return "damaged";
  found = *footer;
  return "";
}

/// Work that writes; its error says what else can be done.
template <class Work>
auto writing(const Work& work) {
  try {
    return work();
  } catch (const IoError& e) {
    throw IoError(std::string(e.what()) + "; --tokens DIR names another folder for the tokens of a large text");
  }
}

/// How many it has.
int64_t write_tokens(const PlainText& text, TextPart part, const Tokenizer& tokenizer, const std::string& path,
                     Footer footer) {
  const auto file = writing([&] {
    if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) make_folders(folder.string());
    return std::make_unique<AtomicFile>(path);
  });
  Xxh64 sum;
  uint64_t bytes = 0;
  make_tokens(text, part, tokenizer, [&](std::string_view more) {
    sum.add(bytes_of(more));
    bytes += more.size();
    writing([&] { file->write(more); });
  });
  footer.tokens = bytes / footer.width;
  footer.body = sum.sum();
  writing([&] {
    file->write(footer.packed());
    file->commit();
  });
  return static_cast<int64_t>(footer.tokens);
}

}  // namespace

std::vector<int64_t> encode_stretch(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int64_t> ids;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::vector<int64_t> line = tokenizer.encode(text.substr(0, end));
    ids.insert(ids.end(), line.begin(), line.end());
    if (end == std::string_view::npos) break;
    ids.push_back(kEndId);
    text.remove_prefix(end + 1);
  }
  return ids;
}

bool last_line_is_open(const PlainText& text, TextPart part) {
  return part.size() > 0 && text.characters({part.end - 1, part.end}) != "\n";
}

int token_width(const Tokenizer& tokenizer) { return tokenizer.size() <= 65536 ? 2 : 4; }

int64_t unpack_token(const char* bytes, int width) { return static_cast<int64_t>(unpack_number(bytes, width)); }

void make_tokens(const PlainText& text, TextPart part, const Tokenizer& tokenizer,
                 const std::function<void(std::string_view)>& sink) {
  const int width = token_width(tokenizer);
  for (TextPart rest = part; rest.size() > 0;) {
    std::vector<std::string> stretches;
    while (rest.size() > 0 && stretches.size() < kStretchesAtOnce) stretches.push_back(text.take_stretch(rest));
    parallel_for(static_cast<int64_t>(stretches.size()), [&](int64_t i) {
      std::string& stretch = stretches[static_cast<size_t>(i)];
      std::string bytes;
      for (const int64_t id : encode_stretch(tokenizer, stretch)) pack_number(bytes, static_cast<uint64_t>(id), width);
      stretch = std::move(bytes);
    });
    check_budget();
    for (const std::string& bytes : stretches) sink(bytes);
    tell_progress("tokens of " + text.name(), static_cast<uint64_t>(rest.begin - part.begin),
                  static_cast<uint64_t>(part.size()));
  }
  if (!last_line_is_open(text, part)) return;
  std::string end;
  pack_number(end, kEndId, width);
  sink(end);
}

std::string token_path(const PlainText& text, TextPart part, const Tokenizer& tokenizer, const TokenOptions& options) {
  const fs::path file = text.name();
  char key[9];
  std::snprintf(key, sizeof key, "%08llx", static_cast<unsigned long long>(key_of(part, tokenizer) >> 32));
  const fs::path folder = options.folder.empty() ? file.parent_path() : fs::path(options.folder);
  return (folder / (file.filename().string() + "." + options.name + "-" + key + ".tokens")).string();
}

TokenFile token_file(const PlainText& text, TextPart part, const Tokenizer& tokenizer, const std::string& path) {
  const auto width = static_cast<uint64_t>(token_width(tokenizer));
  const Footer footer{.text = text.sum(), .key = key_of(part, tokenizer), .width = width};
  const MakersLock lock(text.name());
  std::error_code error;
  if (fs::exists(path, error)) {
    auto file = ByteSource::of_file(path);
    Footer found;
    const std::string fault = fault_of(*file, path, footer, found);
    if (fault.empty()) return {std::move(file), static_cast<int64_t>(found.tokens)};
    tell_note("the token file " + path + " is " + fault + "; it is made again");
  }
  const auto tokens = write_tokens(text, part, tokenizer, path, footer);
  auto file = ByteSource::of_file(path);
  tell_note(std::to_string((file->size() + 999'999) / 1'000'000) + " MB of tokens are in " + path +
            ", for all runs that need them; when none does, it may be deleted");
  return {std::move(file), tokens};
}

}  // namespace qkv
