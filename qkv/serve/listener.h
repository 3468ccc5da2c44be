// A socket that listens at an address of this machine.
#pragma once

#include <string>

namespace qkv::serve {

struct Listener {
  int socket = -1;
  int port = 0;
};

/// Port 0 takes any free one. Throws IoError saying what to do.
Listener listen_on(const std::string& host, int port);

}  // namespace qkv::serve
