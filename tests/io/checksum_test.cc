// Checksums: the figures of xxhsum itself, and every kind of damage noticed.
#include "qkv/io/checksum.h"

#include <gtest/gtest.h>

#include "io/temp_folder.h"
#include "qkv/base/error.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

TEST(Checksum, IsThatOfXxhsum) {
  EXPECT_EQ(xxh64({}), 0xef46db3751d8e999u);
  EXPECT_EQ(xxh64(bytes_of("a")), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(xxh64(bytes_of("abc")), 0x44bc2cf5ad770999u);
  EXPECT_EQ(xxh64(bytes_of("Nobody inspects the spammish repetition")), 0xfbcea83c8a378bf1u);
  std::string digits;
  for (int i = 0; i < 4; ++i) digits += "0123456789abcdef";
  EXPECT_EQ(xxh64(bytes_of(digits + "01234")), 0xaef32340f135bc67u);
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 7 % 256);
  EXPECT_EQ(xxh64(bytes_of(bytes)), 0x25275608a9cfc168u);
}

TEST(Checksum, AFolderKnowsItsFiles) {
  const TempFolder folder;
  EXPECT_EQ(message_of<IoError>([&] { Checksums::load(folder.path()).check_all(); }), "");
  write_file_atomic(folder / "a b", std::string_view("abc"));
  write_file_atomic(folder / "z", std::string_view(""));
  Checksums::write(folder.path(), {"a b", "z"});
  EXPECT_EQ(read_text(folder / "CHECKSUMS"), "44bc2cf5ad770999  a b\nef46db3751d8e999  z\n");
  Checksums::load(folder.path()).check_all();
  write_file_atomic(folder / "z", std::string_view("x"));
  EXPECT_EQ(message_of<IoError>([&] { Checksums::load(folder.path()).check_all(); }),
            folder / "z" + ": damaged: its bytes are not those that were saved (see CHECKSUMS beside it)");
  if (sizeof(size_t) > 4) {                                          // no larger files in a browser's tab
    std::filesystem::resize_file(folder / "z", uintmax_t{1} << 40);  // a hole: reading it would take minutes
    EXPECT_NE(message_of<IoError>([&] { Checksums::load(folder.path()).check_all(); }).find("more than the 268435456"),
              std::string::npos);
  }
  std::filesystem::remove(folder / "z");
  EXPECT_NE(message_of<IoError>([&] { Checksums::load(folder.path()).check_all(); }), "");
  for (const char* bad : {"", "44bc2cf5ad770999  a b", "44bc2cf5ad770999 a b\n", "44bc2cf5ad77099  a b\n", "x\n",
                          "44bc2cf5ad770999  ../a\n", "44bc2cf5ad770999  a\n44bc2cf5ad770999  a\n"}) {
    write_file_atomic(folder / "CHECKSUMS", std::string_view(bad));
    EXPECT_EQ(message_of<IoError>([&] { Checksums::load(folder.path()); }),
              folder / "CHECKSUMS" + ": damaged: not a list of checksums")
        << bad;
  }
  write_file_atomic(folder / "CHECKSUMS", "44bc2cf5ad770999  " + std::string(256, 'a') + "\n");
  EXPECT_NE(message_of<IoError>([&] { Checksums::load(folder.path()); }), "") << "no file has such a name";
}

}  // namespace
}  // namespace qkv
