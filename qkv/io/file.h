// Reading whole files, and writing files and folders so that they appear complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// The contents of a file.
using Bytes = std::vector<std::byte>;

/// The bytes of a string, without copying.
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

/// The least of `limit` and this share (one in `share`) of the memory of the request at hand: it reads no larger file.
uint64_t limit_within_budget(uint64_t limit, int64_t share);
/// Throws IoError when a file of `size` bytes is larger than `limit`.
void check_file_size(const std::string& path, uint64_t size, uint64_t limit);
/// A file larger than `limit` bytes is refused before anything is allocated. A pipe or device is read only when it is
/// named as one (/dev/stdin, /dev/fd/63), and up to 256 MiB of it: one found in place of a file would keep its reader
/// waiting. Throws IoError "cannot read PATH: REASON".
Bytes read_file(const std::string& path, uint64_t limit = std::numeric_limits<uint64_t>::max());
/// The same as text.
std::string read_text(const std::string& path, uint64_t limit = std::numeric_limits<uint64_t>::max());
/// Up to `bytes` bytes from `offset` on; fewer where the file ends.
std::string read_part(const std::string& path, uint64_t offset, size_t bytes);
/// The whole file, piece after piece.
void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& work);

/// Writes beside the target under a temporary name; commit() syncs and renames it into place, so a reader sees
/// the old file or the whole new one. Destroyed without commit(), nothing is left behind; what killed processes left of
/// the same file goes. A symbolic link keeps pointing where it pointed; a device (/dev/stdout) or a pipe that somebody
/// reads is written directly. Every failure throws IoError "cannot write PATH: REASON" and removes the temporary.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends to what will be the file.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(bytes_of(text)); }
  /// Makes the file appear.
  void commit();
  /// The same unless there is a file already: then false, and that stays.
  bool commit_new();

 private:
  void finish();
  [[noreturn]] void fail(int error);
  void discard() noexcept;

  std::string path_;       // as given, for messages
  std::string target_;     // links resolved
  std::string temporary_;  // empty when written directly
  int fd_ = -1;
};

/// AtomicFile in one call.
void write_file_atomic(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomic(const std::string& path, std::string_view text);

/// A folder built as NAME.tmp-PID-K beside its final place and made visible by one rename after everything in it
/// has reached the disk. Destroyed without commit(), it is removed; what killed processes left of it goes. Throws
/// IoError.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::string& path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// Where the folder is until commit().
  const std::string& path() const { return building_; }
  /// Where a file of it is until then.
  std::string file(const std::string& name) const { return building_ + "/" + name; }
  /// Writes one file of the folder.
  void write(const std::string& name, std::span<const std::byte> bytes);
  void write(const std::string& name, std::string_view text) { write(name, bytes_of(text)); }
  /// Adds to the end of one.
  void append(const std::string& name, std::span<const std::byte> bytes);
  /// Syncs and renames. A folder already there is swapped out in the same step, then removed.
  void commit();
  /// Syncs and renames unless something else than an empty folder is there already: then false, and it stays.
  bool commit_new();

 private:
  void put(const std::string& name, std::span<const std::byte> bytes, int flag);
  void sync();
  /// 0, or the errno of the failure.
  int rename();

  std::string path_, building_;
  bool done_ = false;
};

/// The process that is building what has this name (*.tmp-PID-K), or 0 for any other name.
int temporary_owner(std::string_view name);
/// Removes what killed processes left in `folder`: entries named NAME.tmp-PID-K whose process is gone, of one NAME or
/// (empty) of any.
void remove_leftovers(const std::string& folder, const std::string& name = "");
/// Creates a folder and its parents. Throws IoError "cannot create folder PATH: REASON".
void make_folders(const std::string& path);
/// Removes a file or a whole folder; one that is not there is no error, a link goes and what it names stays. Throws
/// IoError.
void remove_tree(const std::string& path);

/// A log that grows at its end and can be cut back to where a checkpoint left it.
class AppendFile {
 public:
  /// Opens or creates the file, keeps its first `keep` bytes and drops the rest.
  /// Throws IoError when the file is shorter than `keep`.
  explicit AppendFile(const std::string& path, uint64_t keep = 0);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;

  /// Writes at the end. Throws IoError.
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(bytes_of(text)); }
  /// Waits until everything appended is on the disk.
  void sync();
  uint64_t size() const { return size_; }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace qkv
