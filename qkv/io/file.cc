// Files through plain system calls, because fsync, rename and errno are the point here.
#include "qkv/io/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "qkv/base/budget.h"
#include "qkv/base/error.h"
#include "qkv/io/devices.h"
#include "qkv/io/fd.h"
#include "qkv/io/folder.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostOfDevice = uint64_t{1} << 28;  // some never end

[[noreturn]] void fail_path(const char* what, const std::string& path, int error) {
  throw IoError(std::string("cannot ") + what + " " + (path.empty() ? "a file without a name" : path) + ": " +
                std::generic_category().message(error));
}

int open_retry(const std::string& path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// 0, or the errno of the failure.
int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

// Some file systems cannot sync a pipe or a folder; that is no failure of ours.
int sync_fd(int fd) {
  if (::fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS) return 0;
  return errno;
}

int sync_path(const std::string& path) {
  const Fd fd(open_retry(path, O_RDONLY));
  return fd.get() < 0 ? errno : sync_fd(fd.get());
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The last part of a path; cut, so that names near the system's limit of 255 bytes get temporary ones too.
std::string name_of(const std::string& path) { return fs::path(path).filename().string().substr(0, 200); }

// Makes what will become `path` under the first free temporary name, and returns that. make(name) says whether it
// could.
template <typename Make>
std::string make_temporary(const std::string& path, const std::string& shown, Make make) {
  remove_leftovers(parent_of(path), name_of(path));
  const std::string start =
      fs::path(path).replace_filename(name_of(path)).string() + ".tmp-" + std::to_string(::getpid()) + "-";
  constexpr int kAttempts = 1000;
  for (int attempt = 0;; ++attempt) {
    std::string name = start + std::to_string(attempt);
    if (make(name)) return name;
    if (errno != EEXIST || attempt == kAttempts) fail_path("write", shown, errno);
  }
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// remove_leftovers() would take such a file away.
void refuse_temporary_name(const std::string& path) {
  const std::string whole = without_trailing_slash(path);
  if (temporary_owner(std::string_view(whole).substr(whole.find_last_of('/') + 1)) == 0) return;
  throw IoError("cannot write " + path + ": names that end in .tmp-NUMBER-NUMBER are temporary; choose another");
}

std::optional<std::vector<std::string>> named_devices;  // nothing: whoever names one means it, but a request

// Where a file should be, a pipe without a writer must not block open(); a device that is meant may.
bool is_device_name(const std::string& path) {
  if (current_budget() != nullptr || !(path.starts_with("/dev/") || path.starts_with("/proc/"))) return false;
  const auto names_it = [&](const std::string& word) { return word.find(path) != std::string::npos; };
  return !named_devices || std::any_of(named_devices->begin(), named_devices->end(), names_it);
}

// An open file and its size; 0 for a device, which can only be read.
Fd open_file(const char* what, const std::string& path, int flags, uint64_t& size) {
  const bool device = flags == O_RDONLY && is_device_name(path);
  Fd fd(open_retry(path, flags | (device ? 0 : O_NONBLOCK), 0666));
  struct stat info;
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) fail_path(what, path, errno);
  if (S_ISDIR(info.st_mode)) fail_path(what, path, EISDIR);
  if (!S_ISREG(info.st_mode) && !device) {
    throw IoError(std::string("cannot ") + what + " " + path + ": it is a pipe or a device, not a file");
  }
  size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  return fd;
}

// Fills `bytes` from the file's position on; returns how many there were.
size_t read_into(int fd, const std::string& path, std::span<std::byte> bytes) {
  size_t used = 0;
  while (used < bytes.size()) {
    check_budget();
    const ssize_t n = ::read(fd, bytes.data() + used, std::min<size_t>(bytes.size() - used, size_t{1} << 24));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_path("read", path, errno);
    if (n == 0) break;
    used += static_cast<size_t>(n);
  }
  return used;
}

}  // namespace

uint64_t limit_within_budget(uint64_t limit, int64_t share) {
  const Budget* const budget = current_budget();
  return budget == nullptr ? limit : std::min(limit, static_cast<uint64_t>(budget->bytes() / share));
}

void read_only_named_devices(std::vector<std::string> words) { named_devices = std::move(words); }

void check_file_size(const std::string& path, uint64_t size, uint64_t limit) {
  if (size <= limit) return;
  throw IoError("cannot read " + path + ": " + std::to_string(size) + " bytes, more than the " + std::to_string(limit) +
                " allowed");
}

Bytes read_file(const std::string& path, uint64_t limit) {
  uint64_t size = 0;
  const Fd fd = open_file("read", path, O_RDONLY, size);
  limit = limit_within_budget(limit, 2);  // another request may compute meanwhile
  check_file_size(path, size, limit);
  if (size == 0) limit = std::min(limit, kMostOfDevice);
  Bytes bytes;
  size_t used = 0;
  do {
    bytes.resize(used + (size > 0 ? size : uint64_t{1} << 16));
    used += read_into(fd.get(), path, std::span(bytes).subspan(used));
    if (used > limit) throw IoError("cannot read " + path + ": larger than " + std::to_string(limit) + " bytes");
  } while (size == 0 && used == bytes.size());
  bytes.resize(used);  // a file may have shrunk since
  return bytes;
}

std::string read_part(const std::string& path, uint64_t offset, size_t bytes) {
  uint64_t size = 0;
  const Fd fd = open_file("read", path, O_RDONLY, size);
  if (::lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) fail_path("read", path, errno);
  std::string text(offset >= size ? 0 : std::min<uint64_t>(bytes, size - offset), '\0');
  text.resize(read_into(fd.get(), path, std::as_writable_bytes(std::span(text))));
  return text;
}

void read_pieces(const std::string& path, const std::function<void(std::span<const std::byte>)>& work) {
  uint64_t size = 0;
  const Fd fd = open_file("read", path, O_RDONLY, size);
  Bytes piece(size_t{1} << 20);
  while (const size_t n = read_into(fd.get(), path, piece)) work(std::span(piece).first(n));
}

std::string read_text(const std::string& path, uint64_t limit) {
  const Bytes bytes = read_file(path, limit_within_budget(limit, 4));  // copies: here, in lines, in tokens
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  if (resolved) target_ = resolved.get();
  struct stat info;
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (path.empty()) fail_path("write", path, ENOENT);
  refuse_temporary_name(path);
  if (path.back() == '/' || (exists && S_ISDIR(info.st_mode))) fail_path("write", path, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    fd_ = open_retry(path, O_WRONLY | O_NONBLOCK);
    if (fd_ < 0 && errno == ENXIO) throw IoError("cannot write " + path + ": it is a pipe that nobody reads");
    if (fd_ < 0) fail_path("write", path, errno);
    ::fcntl(fd_, F_SETFL, O_WRONLY);
    return;
  }
  // rename() would replace a file we may not write to.
  if (exists && ::access(path.c_str(), W_OK) != 0) fail_path("write", path, errno);
  temporary_ = make_temporary(target_, path, [this](const std::string& name) {
    fd_ = open_retry(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
    return fd_ >= 0;
  });
  if (exists) ::fchmod(fd_, info.st_mode & 07777);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (const int fd = std::exchange(fd_, -1); fd >= 0) ::close(fd);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::fail(int error) {
  discard();
  fail_path("write", path_, error);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) fail(EBADF);
  if (const int error = write_all(fd_, bytes)) fail(error);
}

void AtomicFile::finish() {
  if (fd_ < 0) fail(EBADF);
  if (const int error = sync_fd(fd_)) fail(error);
  // Network file systems report a full disk only here.
  if (::close(std::exchange(fd_, -1)) != 0) fail(errno);
}

bool AtomicFile::commit_new() {
  finish();
  if (::link(temporary_.c_str(), target_.c_str()) != 0) {
    if (errno == EEXIST) return false;
    fail(errno);
  }
  discard();
  sync_path(parent_of(target_));
  return true;
}

void AtomicFile::commit() {
  finish();
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  sync_path(parent_of(target_));
}

void write_file_atomic(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_atomic(const std::string& path, std::string_view text) { write_file_atomic(path, bytes_of(text)); }

AtomicFolder::AtomicFolder(const std::string& path) : path_(without_trailing_slash(path)) {
  refuse_temporary_name(path_);
  building_ = make_temporary(path_, path_, [](const std::string& name) { return ::mkdir(name.c_str(), 0777) == 0; });
}

AtomicFolder::~AtomicFolder() {
  if (done_) return;
  try {
    remove_tree(building_);
  } catch (const std::exception&) {
    // Left for remove_leftovers(): a destructor has nobody to tell.
  }
}

void AtomicFolder::write(const std::string& name, std::span<const std::byte> bytes) { put(name, bytes, O_TRUNC); }
void AtomicFolder::append(const std::string& name, std::span<const std::byte> bytes) { put(name, bytes, O_APPEND); }

void AtomicFolder::put(const std::string& name, std::span<const std::byte> bytes, int flag) {
  const Fd fd(open_retry(file(name), O_WRONLY | O_CREAT | flag, 0666));
  if (fd.get() < 0) fail_path("write", path_ + "/" + name, errno);
  if (const int error = write_all(fd.get(), bytes)) fail_path("write", path_ + "/" + name, error);
}

void AtomicFolder::sync() {
  const int error = for_each_below(building_, [this](const std::string& path, mode_t mode) {
    if (S_ISLNK(mode)) return;
    if (const int code = sync_path(path)) fail_path("write", path_, code);
  });
  if (error != 0) fail_path("write", path_, error);
  if (const int code = sync_path(building_)) fail_path("write", path_, code);
}

int AtomicFolder::rename() {
  if (::rename(building_.c_str(), path_.c_str()) != 0) return errno;
  done_ = true;
  sync_path(parent_of(path_));
  return 0;
}

void AtomicFolder::commit() {
  sync();
  const int error = rename();
  if (error == 0) return;
  if (error != ENOTEMPTY && error != EEXIST) fail_path("write", path_, error);
#if defined(RENAME_EXCHANGE)
  const int failed = ::renameat2(AT_FDCWD, building_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE);
  if (failed != 0) fail_path("write", path_, errno);
  // Now the old folder carries the temporary name, and the destructor removes it.
  sync_path(parent_of(path_));
#else
  // WebAssembly: files in memory that one thread sees, so nobody can look in between.
  remove_tree(path_);
  if (const int again = rename()) fail_path("write", path_, again);
#endif
}

bool AtomicFolder::commit_new() {
  sync();
  const int error = rename();
  if (error == ENOTEMPTY || error == EEXIST || error == ENOTDIR) return false;
  if (error != 0) fail_path("write", path_, error);
  return true;
}

int temporary_owner(std::string_view name) {
  const size_t mark = name.rfind(".tmp-");
  if (mark == std::string_view::npos) return 0;
  const char* const first = name.data() + mark + 5;
  const char* const last = name.data() + name.size();
  int pid = 0, attempt = 0;
  const auto [dash, bad_pid] = std::from_chars(first, last, pid);
  if (bad_pid != std::errc() || dash == last || *dash != '-' || pid <= 0) return 0;
  const auto [rest, bad_attempt] = std::from_chars(dash + 1, last, attempt);
  return bad_attempt == std::errc() && rest == last ? pid : 0;
}

void remove_leftovers(const std::string& folder, const std::string& name) {
  int error = 0;
  for (const std::string& found : names_in(folder, error)) {
    const int pid = temporary_owner(found);
    if (pid == 0 || (!name.empty() && found.substr(0, found.rfind(".tmp-")) != name)) continue;
    if (pid == ::getpid() || ::kill(pid, 0) == 0 || errno != ESRCH) continue;
    try {
      remove_tree(folder + "/" + found);
    } catch (const IoError&) {
      // What cannot be removed is in nobody's way.
    }
  }
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(without_trailing_slash(path), error);
  if (!error && !fs::is_directory(path, error)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) fail_path("create folder", path, error.value());
}

void remove_tree(const std::string& path) {
  const auto remove = [&](const std::string& file, mode_t mode) {
    const int failed = S_ISDIR(mode) ? ::rmdir(file.c_str()) : ::unlink(file.c_str());
    if (failed != 0 && errno != ENOENT) fail_path("remove", path, errno);
  };
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) fail_path("remove", path, errno);
    return;
  }
  const int error = S_ISDIR(info.st_mode) ? for_each_below(path, remove) : 0;
  if (error != 0 && error != ENOENT) fail_path("remove", path, error);
  remove(path, info.st_mode);
}

AppendFile::AppendFile(const std::string& path, uint64_t keep) : path_(path), size_(keep) {
  uint64_t size = 0;
  Fd fd = open_file("write", path, O_RDWR | O_CREAT, size);
  if (size < keep) {
    throw IoError("cannot continue " + path + ": it holds " + std::to_string(size) + " bytes, expected " +
                  std::to_string(keep));
  }
  const auto end = static_cast<off_t>(keep);
  if (::ftruncate(fd.get(), end) != 0 || ::lseek(fd.get(), end, SEEK_SET) < 0) fail_path("write", path, errno);
  fd_ = fd.release();
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::append(std::span<const std::byte> bytes) {
  if (const int error = write_all(fd_, bytes)) {
    // Half a record would spoil the log for its readers; if even this fails, the message below still stands.
    if (::ftruncate(fd_, static_cast<off_t>(size_)) == 0) ::lseek(fd_, 0, SEEK_END);
    fail_path("write", path_, error);
  }
  size_ += bytes.size();
}

void AppendFile::sync() {
  if (const int error = sync_fd(fd_)) fail_path("write", path_, error);
}

}  // namespace qkv
