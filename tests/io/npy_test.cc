// .npy: NumPy's own files read right, bad files refused by name, written files equal to NumPy's.
#include "qkv/io/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "io/temp_folder.h"
#include "qkv/base/error.h"
#include "support/paths.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

std::string fixture(const std::string& name) { return qkv::testing::fixtures() + "/npy/" + name; }

// The value npy_fixtures.py gives element (i, j, k).
int value_at(int i, int j, int k) { return 100 * i + 10 * j + k - 5; }

// A file made by hand: magic, version, header text, data.
Bytes make_npy(const std::string& header, size_t data_bytes, char major = 1) {
  std::string file("\x93NUMPY", 6);
  file += major;
  file += '\0';
  for (int b = 0; b < (major == 1 ? 2 : 4); ++b) file += static_cast<char>(header.size() >> (8 * b) & 255);
  file += header + std::string(data_bytes, '\0');
  const auto bytes = bytes_of(file);
  return {bytes.begin(), bytes.end()};
}

std::string refusal(const Bytes& file) {
  return message_of<IoError>([&] { parse_npy(file, "bad.npy"); });
}
std::string refusal(const std::string& header, size_t data_bytes) { return refusal(make_npy(header, data_bytes)); }

TEST(Npy, ReadsEveryDtypeOrderAndVersion) {
  const Shape shape{2, 3, 4};
  for (const char* name : {"c_f2",   "c_f4",   "c_f8",   "c_i1",       "c_i2",           "c_i4",     "c_i8",
                           "big_f2", "big_f4", "big_f8", "big_i2",     "big_i4",         "big_i8",   "c_u1",
                           "c_u2",   "c_u4",   "c_u8",   "fortran_f4", "fortran_big_f8", "version2", "version3"}) {
    const NpyArray array = load_npy(fixture(std::string(name) + ".npy"));
    ASSERT_EQ(array.shape, shape) << name;
    const int shift = std::string(name).find("_u") != std::string::npos ? 5 : 0;
    const std::vector<float> f32 = array.to_f32();
    const std::vector<double> f64 = array.to_f64();
    ASSERT_EQ(f32.size(), 24u) << name;
    for (int i = 0, at = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 4; ++k, ++at) {
          const auto index = static_cast<size_t>(at);
          EXPECT_EQ(f32[index], static_cast<float>(value_at(i, j, k) + shift)) << name;
          EXPECT_EQ(f64[index], value_at(i, j, k) + shift) << name;
          if (!is_float(array.type)) {
            EXPECT_EQ(array.to_i64()[index], value_at(i, j, k) + shift) << name;
          }
        }
      }
    }
  }
}

TEST(Npy, ReadsBooleansInBothOrders) {
  for (const char* name : {"bool.npy", "fortran_bool.npy"}) {
    const NpyArray array = load_npy(fixture(name));
    EXPECT_EQ(array.type, NpyType::kBool);
    const std::vector<uint8_t> values = array.to_bool();
    for (int i = 0, at = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 4; ++k, ++at) {
          EXPECT_EQ(values[static_cast<size_t>(at)], (value_at(i, j, k) % 3 + 3) % 3 == 0) << name << at;
        }
      }
    }
  }
}

TEST(Npy, ReadsScalarsEmptyAndOneDimension) {
  EXPECT_EQ(load_npy(fixture("scalar.npy")).shape.rank(), 0);
  EXPECT_EQ(load_npy(fixture("scalar.npy")).to_f32(), std::vector<float>{2.5f});
  EXPECT_EQ(load_npy(fixture("empty.npy")).shape, (Shape{0, 3}));
  EXPECT_TRUE(load_npy(fixture("empty.npy")).to_f32().empty());
  EXPECT_EQ(load_npy(fixture("one_d.npy")).to_f64(), (std::vector<double>{0, 1, 2, 3, 4}));
}

TEST(Npy, HalvesAreExactAtTheEdges) {
  const std::vector<float> v = load_npy(fixture("half_edges.npy")).to_f32();
  ASSERT_EQ(v.size(), 11u);
  EXPECT_EQ(v[0], 0.0f);
  EXPECT_TRUE(std::signbit(v[1]));
  EXPECT_EQ(v[2], 1.0f);
  EXPECT_EQ(v[3], -2.0f);
  EXPECT_EQ(v[4], 65504.0f);
  EXPECT_EQ(v[5], 0x1p-14f);
  EXPECT_EQ(v[6], 0x1p-24f);
  EXPECT_EQ(v[7], std::numeric_limits<float>::infinity());
  EXPECT_EQ(v[8], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(v[9]));
  EXPECT_EQ(v[10], 0.333251953125f);
}

TEST(Npy, RefusesOtherDtypesByName) {
  const struct {
    const char* file;
    const char* part;
  } cases[] = {{"object.npy", "object dtype"},   {"record.npy", "structured dtype"},
               {"complex.npy", "dtype '<c8'"},   {"text.npy", "dtype '<U2'"},
               {"dates.npy", "dtype '<M8[D]'"},  {"nine_d.npy", "more than 8 dimensions"},
               {"archive.npz", "a .npz archive"}};
  for (const auto& c : cases) {
    const std::string message = message_of<IoError>([&] { load_npy(fixture(c.file)); });
    EXPECT_EQ(message.find(fixture(c.file) + ": "), 0u) << message;
    EXPECT_NE(message.find(c.part), std::string::npos) << message;
  }
  EXPECT_EQ(message_of<IoError>([] { load_npy("/no/q.npy"); }), "cannot read /no/q.npy: No such file or directory");
}

TEST(Npy, RefusesDamagedFiles) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  EXPECT_EQ(refusal(good, 24), "");
  EXPECT_EQ(refusal(good, 20), "bad.npy: truncated: shape [2,3] of float32 takes 24 bytes, the file holds 20");
  EXPECT_EQ(refusal(good, 28),
            "bad.npy: bytes after the array: shape [2,3] of float32 takes 24 bytes, the file holds 28");
  EXPECT_EQ(refusal(Bytes{}), "bad.npy: the file is empty, expected a .npy array");
  EXPECT_EQ(refusal(Bytes(100, std::byte{'x'})), "bad.npy: not a .npy file");
  const Bytes whole = make_npy(good, 24);
  for (size_t n = 1; n < whole.size(); ++n) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_NE(refusal(cut).find("truncated"), std::string::npos) << n << refusal(cut);
  }
  EXPECT_NE(refusal(make_npy(good, 24, 4)).find("version 4.0"), std::string::npos);
  Bytes oversized = make_npy(good, 24, 2);
  oversized[11] = std::byte{0xff};
  EXPECT_NE(refusal(oversized).find("truncated .npy file: its header should be"), std::string::npos);
  EXPECT_NE(refusal(good + std::string(20000, ' '), 24).find("more than the 10000 allowed"), std::string::npos);
}

TEST(Npy, RefusesHostileHeadersWithoutAllocating) {
  const auto with_shape = [](const std::string& shape) {
    return refusal("{'descr': '<f8', 'fortran_order': True, 'shape': " + shape + ", }", 8);
  };
  EXPECT_NE(with_shape("(1000000000000,)").find(sizeof(size_t) == 4 ? "too large" : "truncated"), std::string::npos);
  EXPECT_NE(with_shape("(1073741824,)"), "");  // 2³² bytes, which 32 bits would take for none
  EXPECT_NE(with_shape("(4294967296, 4294967296)").find("too large"), std::string::npos);
  EXPECT_NE(with_shape("(0, 9223372036854775807, 9223372036854775807)").find("too large"), std::string::npos);
  EXPECT_NE(with_shape("(99999999999999999999,)").find("too large"), std::string::npos);
  EXPECT_NE(with_shape("(-1,)").find("negative"), std::string::npos);
  EXPECT_NE(with_shape("(3)").find("not a tuple"), std::string::npos);
  EXPECT_NE(with_shape("(1,,)").find("expected a size"), std::string::npos);
  EXPECT_NE(with_shape("(1.5,)").find("not a tuple"), std::string::npos);
  EXPECT_NE(with_shape("'1'").find("expected '('"), std::string::npos);
  EXPECT_EQ(with_shape("(1L,)"), "");
}

// A file of a terabyte takes no room on the disk when nothing was written into it.
TEST(Npy, WhatIsNotAsItsHeaderSaysIsNotRead) {
  if (sizeof(size_t) == 4) GTEST_SKIP() << "files there are in memory";
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  const auto error = [&] {
    std::filesystem::resize_file(path, uint64_t{1} << 40);
    return message_of<IoError>([&] { load_npy(path); });
  };
  save_npy(path, Shape{2}, std::vector<float>{1, 2});
  EXPECT_NE(error().find("a.npy: bytes after the array: shape [2] of float32 takes 8 bytes"), std::string::npos);
  write_file_atomic(path, std::string_view("text"));
  EXPECT_EQ(error(), path + ": not a .npy file");
}

TEST(Npy, RefusesOddDictionaries) {
  EXPECT_NE(refusal("{'descr': '<f4', 'fortran_order': False}", 4).find("lacks 'shape'"), std::string::npos);
  EXPECT_NE(refusal("{'shape': (1,), 'fortran_order': False}", 4).find("lacks 'descr'"), std::string::npos);
  EXPECT_NE(refusal("{'descr': '<f4', 'descr': '<f4'}", 4).find("repeated key 'descr'"), std::string::npos);
  EXPECT_NE(refusal("{'evil\n': 1}", 4).find("'evil?'"), std::string::npos);
  EXPECT_NE(refusal("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4).find("neither True"), std::string::npos);
  EXPECT_NE(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4).find("after its closing"),
            std::string::npos);
  EXPECT_NE(refusal("{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", 4).find("no byte order"),
            std::string::npos);
  EXPECT_NE(refusal("{'descr': '<f4", 4).find("unfinished string"), std::string::npos);
  EXPECT_NE(refusal("", 4).find("expected '{'"), std::string::npos);
  EXPECT_EQ(refusal("{\"shape\":(1,),\"descr\":\"=f4\",\"fortran_order\":False}", 4), "");
}

TEST(Npy, AccessorsRefuseWhatTheyCannotMean) {
  EXPECT_NE(message_of<IoError>([] { load_npy(fixture("c_f4.npy")).to_i64(); }).find("expected integers"),
            std::string::npos);
  EXPECT_NE(message_of<IoError>([] { load_npy(fixture("u8_big.npy")).to_i64(); }).find("9223372036854775808"),
            std::string::npos);
  EXPECT_EQ(load_npy(fixture("u8_big.npy")).to_f64(), std::vector<double>{0x1p63});
  EXPECT_NE(message_of<IoError>([] { load_npy(fixture("c_i4.npy")).to_bool(); }).find("other than 0 and 1"),
            std::string::npos);
  EXPECT_NE(message_of<IoError>([] { load_npy(fixture("c_f4.npy")).to_bool(); }).find("expected booleans"),
            std::string::npos);
}

TEST(Npy, WritesTheBytesNumPyWrites) {
  const TempFolder folder;
  const std::string path = folder / "x.npy";
  const auto same_as = [&](const char* name) { EXPECT_EQ(read_text(path), read_text(fixture(name))) << name; };
  std::vector<float> f32;
  for (int at = 0; at < 24; ++at) f32.push_back(static_cast<float>(value_at(at / 12, at / 4 % 3, at % 4)));
  const std::vector<double> f64(f32.begin(), f32.end());
  const std::vector<int64_t> i64(f32.begin(), f32.end());
  save_npy(path, {2, 3, 4}, f32);
  same_as("c_f4.npy");
  save_npy(path, {2, 3, 4}, f64);
  same_as("c_f8.npy");
  save_npy(path, {2, 3, 4}, i64);
  same_as("c_i8.npy");
  save_npy_bool(path, {2, 3, 4}, load_npy(fixture("bool.npy")).to_bool());
  same_as("bool.npy");
  save_npy(path, Shape{}, std::vector<float>{2.5f});
  same_as("scalar.npy");
  save_npy(path, {0, 3}, std::span<const float>());
  same_as("empty.npy");
  save_npy(path, {5}, std::vector<double>{0, 1, 2, 3, 4});
  same_as("one_d.npy");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Npy, HeaderIsAlignedForEveryShape) {
  Shape shape;
  for (int rank = 0; rank <= Shape::kMaxRank; ++rank) {
    EXPECT_EQ(npy_header(shape, NpyType::kF32).size() % 64, 0u);
    if (rank < Shape::kMaxRank) shape.push_back(1234567890123);
  }
}

TEST(Npy, RefusesCountsThatDoNotFit) {
  const TempFolder folder;
  EXPECT_EQ(message_of<ShapeError>([&] {
              save_npy(folder / "x.npy", {2, 2}, std::vector<float>(3));
            }),
            "[npy] " + (folder / "x.npy") + ": shape [2,2] of float32 does not fit 3 values");
  EXPECT_EQ(folder.entries(), 0);
  EXPECT_EQ(message_of<IoError>([&] { save_npy("/dev/full", {2}, std::vector<float>(2)); }),
            "cannot write /dev/full: No space left on device");
}

}  // namespace
}  // namespace qkv
