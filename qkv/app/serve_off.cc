// qkv serve in a build without a server (QKV_SERVE=OFF).
#include "qkv/app/command.h"
#include "qkv/base/error.h"

namespace qkv::app {

int run_serve(const Arguments&) {
  throw Error("this build has no server (QKV_SERVE=OFF); 'qkv map RUN --input TEXT' shows attention in the terminal");
}

}  // namespace qkv::app
