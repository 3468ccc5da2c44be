// safetensors: the Python library's file read right, own files exact, every kind of damage refused by name.
#include "qkv/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "support/paths.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

Bytes make_file(const std::string& header, size_t data_bytes) {
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  file += header + std::string(data_bytes, '\0');
  const auto bytes = bytes_of(file);
  return {bytes.begin(), bytes.end()};
}

std::string refusal(const std::string& header, size_t data_bytes) {
  return message_of<IoError>([&] { SafetensorsFile::parse(make_file(header, data_bytes), "w.safetensors"); });
}

TEST(Safetensors, ReadsThePythonLibrarysFile) {
  const auto file = SafetensorsFile::load(qkv::testing::fixtures() + "/safetensors/python.safetensors");
  EXPECT_EQ(file.tensors().size(), 6u);
  EXPECT_EQ(file.metadata(), (SafetensorsMetadata{{"format", "np"}, {"note", "a \"quoted\" word"}}));
  EXPECT_EQ(file.f32("encoder.weight", {2, 3}), (std::vector<float>{0, 0.25f, 0.5f, 0.75f, 1, 1.25f}));
  EXPECT_EQ(file.f64("moment", {3}), (std::vector<double>{1.5, -2.5, 3.25}));
  EXPECT_EQ(file.f32("scalar", {}), std::vector<float>{7.0f});
  EXPECT_TRUE(file.f32("empty", {0, 4}).empty());
  EXPECT_EQ(file.f32("größe", {1}), std::vector<float>{0.5f});
  EXPECT_EQ(file.at("ids").dtype, "I64");
  EXPECT_EQ(file.bytes(file.at("ids")).size(), 24u);
  EXPECT_FALSE(file.contains("decoder.weight"));
}

TEST(Safetensors, WritesTheExactFormat) {
  const TempFolder folder;
  const std::string path = folder / "w.safetensors";
  const std::vector<float> a{1, 2, 3};
  const std::vector<double> b{0.5, 0.25};
  save_safetensors(path, {safetensor_view("a", {3}, a), safetensor_view("b", {2, 1}, b)}, {{"step", "7"}});
  std::string header = R"({"__metadata__":{"step":"7"},"b":{"dtype":"F64","shape":[2,1],"data_offsets":[0,16]},)"
                       R"("a":{"dtype":"F32","shape":[3],"data_offsets":[16,28]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  Bytes expected = make_file(header, 28);
  std::memcpy(expected.data() + 8 + header.size(), b.data(), 16);
  std::memcpy(expected.data() + 8 + header.size() + 16, a.data(), 12);
  EXPECT_EQ(read_file(path), expected);
  const auto file = SafetensorsFile::load(path);
  EXPECT_EQ(file.f32("a", {3}), a);
  EXPECT_EQ(file.f64("b", {2, 1}), b);
  EXPECT_EQ(file.metadata().at("step"), "7");
  save_safetensors(path, {});
  EXPECT_TRUE(SafetensorsFile::load(path).tensors().empty());
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Safetensors, AsksForWhatIsThere) {
  const auto file = SafetensorsFile::load(qkv::testing::fixtures() + "/safetensors/python.safetensors");
  EXPECT_EQ(message_of<IoError>([&] { file.f32("lost", {1}); }), file.name() + ": no tensor 'lost'");
  EXPECT_EQ(message_of<IoError>([&] {
              file.f32("encoder.weight", {3, 2});
            }),
            file.name() + ": tensor 'encoder.weight' is F32 [2,3], expected F32 [3,2]");
  EXPECT_EQ(message_of<IoError>([&] { file.f32("moment", {3}); }),
            file.name() + ": tensor 'moment' is F64 [3], expected F32 [3]");
}

TEST(Safetensors, RefusesToWriteNonsense) {
  const TempFolder folder;
  const std::vector<float> a(3);
  const std::string path = folder / "w";
  EXPECT_NE(message_of<ShapeError>([&] {
              save_safetensors(path, {safetensor_view("a", {3}, a), safetensor_view("a", {3}, a)});
            }).find("tensor 'a': name used twice"),
            std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] { save_safetensors(path, {safetensor_view("a", {4}, a)}); }).find("[4] of F32"),
            std::string::npos);
  EXPECT_NE(message_of<IoError>([&] { save_safetensors(path, {safetensor_view("\xff", {3}, a)}); }).find("UTF-8"),
            std::string::npos);
  EXPECT_EQ(message_of<IoError>([&] { save_safetensors("/dev/full", {safetensor_view("a", {3}, a)}); }),
            "cannot write /dev/full: No space left on device");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Safetensors, AHeaderIsOfBoundedLength) {
  std::string header = R"({"a":[)";
  while (header.size() < (17u << 20)) header += "0,";
  EXPECT_NE(refusal(header + "0]}", 0).find("not a safetensors file (header length "), std::string::npos);
  const TempFolder folder;
  const auto save = [&] { save_safetensors(folder / "w", {}, {{"note", std::string(17u << 20, 'x')}}); };
  EXPECT_NE(message_of<IoError>(save).find("at most 16777216 can be read again"), std::string::npos);
}

// A file of a terabyte takes no room on the disk when nothing was written into it.
TEST(Safetensors, WhatIsNotAsItsHeaderSaysIsNotRead) {
  if (sizeof(size_t) == 4) GTEST_SKIP() << "files there are in memory";
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  const auto error = [&] {
    std::filesystem::resize_file(path, uint64_t{1} << 40);
    return message_of<IoError>([&] { SafetensorsFile::load(path); });
  };
  const std::vector<double> values{1, 2};
  save_safetensors(path, {safetensor_view("a", Shape{2}, std::span<const double>(values))});
  EXPECT_NE(error().find("bytes after the last tensor"), std::string::npos);
  write_file_atomic(path, std::string_view());
  EXPECT_EQ(error(), path + ": not a safetensors file (no JSON header)");
  write_file_atomic(path, std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff"));
  EXPECT_NE(error().find("header length 18446744073709551615"), std::string::npos);
}

TEST(Safetensors, RefusesDamage) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(refusal(good, 8), "");
  EXPECT_EQ(refusal(good, 4), "w.safetensors: tensor 'a': truncated file: its data end at byte 8, the file holds 4");
  EXPECT_EQ(refusal(good, 9), "w.safetensors: 1 bytes after the last tensor");
  const Bytes whole = make_file(good, 8);
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::string message = message_of<IoError>([&] {
      SafetensorsFile::parse(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)), "w.safetensors");
    });
    EXPECT_NE(message.find("truncated"), std::string::npos) << n << message;
  }
  const struct {
    const char* header;
    size_t data;
    const char* part;
  } cases[] = {
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 8, "tensor 'a': data_offsets [0, 4] do not fit"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "shape is not a list of whole numbers"},
      {R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8, "shape is not a list"},
      {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8, "shape is not a list"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", 8, "more than 8 dimensions"},
      {R"({"a":{"dtype":"Q7","shape":[2],"data_offsets":[0,8]}})", 8, "tensor 'a': unknown dtype 'Q7'"},
      {R"({"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})", 8, "unknown dtype"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", 8, "expected exactly dtype"},
      {R"({"a":[]})", 8, "expected exactly dtype"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8, "not a pair"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       8, "has 'a' twice"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12, "tensor 'b': overlaps"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12, "gap of 4 bytes"},
      {R"({"__metadata__":{"x":1}})", 0, "object of strings"},
      {R"({"__metadata__":[]})", 0, "object of strings"},
      {R"({"a")", 0, "not a JSON object"},
      {"[]", 0, "no JSON header"},
      {"", 0, "no JSON header"},
      {R"({"a":[[[[[[[[[[[[1]]]]]]]]]]]]})", 0, "nested too deeply"},
      {"{\"\xff\":1}", 0, "not a JSON object"},
  };
  for (const auto& c : cases) {
    const std::string message = refusal(c.header, c.data);
    EXPECT_EQ(message.find("w.safetensors: "), 0u) << c.header << " gave " << message;
    EXPECT_NE(message.find(c.part), std::string::npos) << c.header << " gave " << message;
  }
  Bytes huge = make_file(good, 8);
  huge[7] = std::byte{0x7f};
  EXPECT_NE(message_of<IoError>([&] { SafetensorsFile::parse(huge, "w"); }).find("not a safetensors file"),
            std::string::npos);
}

}  // namespace
}  // namespace qkv
