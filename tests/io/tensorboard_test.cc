// Event files equal, byte for byte, to those of Google's protobuf library (fixtures_scripts/tensorboard_fixture.py).
#include "qkv/io/tensorboard.h"

#include <gtest/gtest.h>

#include <limits>

#include "io/temp_folder.h"
#include "qkv/base/error.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

constexpr const char* kExpected =
    "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe93e00000000000000d9d2"
    "40e70900006040fc54d94110ac022a300a110a0a6c6f73732f747261696e150000003e0a1b0a1467656e617569676b656974"
    "2f7072c3bc66756e6715bd3786b42afc1e733200000000000000241956ec0900008040fc54d941108080808080202a200a11"
    "0a0a6c6f73732f747261696e150000807f0a0b0a047a65726f15000000001d36067f";

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);  // the catalogue's check value
  EXPECT_EQ(crc32c(bytes_of("")), 0u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8A9136AAu);  // RFC 3720, B.4
}

TEST(EventFile, EqualsProtobufAndContinues) {
  const TempFolder folder;
  const std::string path = folder / "events.out.tfevents.1";
  uint64_t kept = 0;
  {
    EventFile file(path, 1700000000.25);
    file.scalars(1700000001.5, 300, {{"loss/train", 0.125f}, {"genauigkeit/prüfung", -2.5e-7f}});
    kept = file.size();
    file.scalars(1.0, 301, {{"lost", 1.0f}});
  }
  {
    EventFile file(path, 5.0, kept);
    file.scalars(1700000002.0, int64_t{1} << 40,
                 {{"loss/train", std::numeric_limits<float>::infinity()}, {"zero", 0.0f}});
    file.sync();
    EXPECT_EQ(file.size(), std::string(kExpected).size() / 2);
  }
  EXPECT_EQ(hex(read_text(path)), kExpected);
  EXPECT_NE(message_of<IoError>([&] { EventFile(path, 0.0, 1'000'000); }), "");
}

}  // namespace
}  // namespace qkv
