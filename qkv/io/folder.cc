// Folders are read by the system's own calls.
#include "qkv/io/folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace qkv {

std::vector<std::string> names_in(const std::string& folder, int& error) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (!entries) {
    error = errno;
    return names;
  }
  for (errno = 0; const dirent* const entry = ::readdir(entries.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  error = errno;
  return names;
}

int for_each_below(const std::string& folder, const std::function<void(const std::string&, mode_t)>& see) {
  int error = 0;
  for (const std::string& name : names_in(folder, error)) {
    const std::string path = folder + "/" + name;
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0) continue;  // gone in the meantime
    if (S_ISDIR(info.st_mode)) {
      if (const int below = for_each_below(path, see)) return below;
    }
    see(path, info.st_mode);
  }
  return error;
}

}  // namespace qkv
