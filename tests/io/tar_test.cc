// .tar: what is written is read and unpacked by tar; nothing that leads elsewhere is taken.
#include "qkv/io/tar.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "io/temp_folder.h"
#include "qkv/base/error.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

Bytes archive_of(const std::string& name, std::string_view text) {
  TarWriter tar;
  tar.add(name, text);
  return tar.finish();
}

std::string text_of(const TarFile& file) {
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

std::string refusal(const Bytes& archive) {
  return message_of<IoError>([&] { parse_tar(archive, "a.tar"); });
}

// The header of the archive's first file with other bytes at `at`, and the sum that fits them.
Bytes changed(Bytes archive, size_t at, std::string_view text) {
  std::memcpy(archive.data() + at, text.data(), text.size());
  std::memset(archive.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += std::to_integer<unsigned>(archive[i]);
  for (int i = 5; i >= 0; --i, sum /= 8) archive[148 + static_cast<size_t>(i)] = static_cast<std::byte>('0' + sum % 8);
  return archive;
}

TEST(Tar, WhatIsWrittenIsRead) {
  TarWriter tar;
  const std::string block(512, 'x');
  const std::string deep = std::string(80, 'd') + "/" + std::string(60, 'e') + "/" + std::string(90, 'f');
  tar.add("run/empty", std::string_view());
  tar.add("run/block", block);
  tar.add(deep, "more");
  const Bytes archive = tar.finish();
  const std::vector<TarFile> files = parse_tar(archive, "a.tar");
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].name, "run/empty");
  EXPECT_EQ(text_of(files[0]), "");
  EXPECT_EQ(text_of(files[1]), block);
  EXPECT_EQ(files[2].name, deep);
  EXPECT_EQ(text_of(files[2]), "more");
}

#if !defined(__EMSCRIPTEN__)  // which starts no program
TEST(Tar, TarItselfUnpacksAndPacks) {
  const TempFolder folder;
  write_file_atomic(folder / "a.tar", archive_of("run/config.json", "{}\n"));
  ASSERT_EQ(std::system(("cd " + folder.path() + " && tar xf a.tar && tar cf b.tar run").c_str()), 0);
  EXPECT_EQ(read_text(folder / "run/config.json"), "{}\n");
  const Bytes packed = read_file(folder / "b.tar");
  const std::vector<TarFile> files = parse_tar(packed, "b.tar");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "run/config.json");
  EXPECT_EQ(text_of(files[0]), "{}\n");
}
#endif

TEST(Tar, RefusesWhatIsNoPlainFileBelowItself) {
  const Bytes good = archive_of("run/a", "text");
  EXPECT_EQ(refusal(good), "");
  for (const char* name : {"/etc/passwd", "../x", "run/../../x", "a//b", "a\\b"}) {
    Bytes bad = good;
    std::memset(bad.data(), 0, 100);
    std::memset(bad.data() + 345, 0, 155);
    EXPECT_NE(refusal(changed(bad, 0, name)).find("outside itself"), std::string::npos) << name;
  }
  for (const char* type : {"1", "2", "3", "L", "x"}) {
    EXPECT_NE(refusal(changed(good, 156, type)).find("plain files"), std::string::npos) << type;
  }
  EXPECT_NE(refusal(changed(good, 124, "77777777777")).find("cut off"), std::string::npos);
  EXPECT_NE(refusal(Bytes(good.begin(), good.begin() + 1024)).find("cut off"), std::string::npos);
  EXPECT_NE(refusal(Bytes(good.begin(), good.begin() + 300)).find("not an uncompressed .tar"), std::string::npos);
  Bytes damaged = good;
  damaged[3] = std::byte{'?'};
  EXPECT_NE(refusal(damaged).find("sum is wrong"), std::string::npos);
  TarWriter tar;
  EXPECT_THROW(tar.add(std::string(101, 'n'), "text"), IoError);
}

}  // namespace
}  // namespace qkv
