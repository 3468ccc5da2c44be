// Which devices a program reads.
#pragma once

#include <string>
#include <vector>

namespace qkv {

/// From now on, of /dev/ and /proc/ only what one of these words names is read as the device it is: the user's own
/// words, and not what the files of a run name. Before any other thread reads.
void read_only_named_devices(std::vector<std::string> words);

}  // namespace qkv
