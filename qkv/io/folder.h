// What a folder holds. Not by std::filesystem, whose iterators end the program where they get no memory.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace qkv {

/// The names in a folder, in no order; `error` becomes 0, or the errno that kept some from being read.
std::vector<std::string> names_in(const std::string& folder, int& error);
/// Calls see(path, mode) for everything below a folder, a folder after what it holds; links are seen, not followed.
/// Returns 0, or the errno of a folder that could not be read.
int for_each_below(const std::string& folder, const std::function<void(const std::string&, mode_t)>& see);

}  // namespace qkv
