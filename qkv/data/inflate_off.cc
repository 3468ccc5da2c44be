// What stands in for zlib in a build without it (QKV_GZIP=OFF).
#include "qkv/base/error.h"
#include "qkv/data/inflate.h"

namespace qkv {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error("this build unpacks nothing (QKV_GZIP=OFF): " + what); }

}  // namespace

std::string unpack_gzip(std::string_view, const std::string& name, uint64_t) {
  refuse("unpack " + name + " first, for example with gunzip");
}
bool unpack_zlib(std::span<const std::byte>, std::span<uint8_t>) { refuse("it reads no PNG files"); }
uint32_t crc32_of(std::span<const std::byte>) { refuse("it reads no PNG files"); }

}  // namespace qkv
