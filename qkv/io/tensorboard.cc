// Encoding of TensorBoard events; only the four protobuf fields a scalar needs.
#include "qkv/io/tensorboard.h"

#include <array>
#include <bit>
#include <cstring>

namespace qkv {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

// Protobuf wire types.
enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_key(std::string& out, uint32_t field, Wire wire) { put_varint(out, field << 3 | wire); }
template <class T>
void put_raw(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
std::string event_head(double wall_time, int64_t step) {
  std::string event;
  put_key(event, 1, kFixed64);
  put_raw(event, wall_time);
  if (step != 0) {
    put_key(event, 2, kVarint);
    put_varint(event, static_cast<uint64_t>(step));
  }
  return event;
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  uint32_t crc = ~0u;
  for (const std::byte b : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint32_t>(b)) & 255];
  return ~crc;
}

uint32_t masked_crc32c(std::span<const std::byte> bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

std::string tfrecord(std::string_view data) {
  std::string record;
  put_raw(record, static_cast<uint64_t>(data.size()));
  put_raw(record, masked_crc32c(bytes_of(record)));
  record += data;
  put_raw(record, masked_crc32c(bytes_of(data)));
  return record;
}

std::string encode_version_event(double wall_time) {
  std::string event = event_head(wall_time, 0);
  put_bytes(event, 3, "brain.Event:2");
  return event;
}

std::string encode_scalar_event(double wall_time, int64_t step, const std::vector<EventScalar>& scalars) {
  std::string summary;
  for (const EventScalar& scalar : scalars) {
    std::string value;  // Summary.Value { string tag = 1; float simple_value = 2; }
    put_bytes(value, 1, scalar.tag);
    put_key(value, 2, kFixed32);
    put_raw(value, scalar.value);
    put_bytes(summary, 1, value);
  }
  std::string event = event_head(wall_time, step);
  put_bytes(event, 5, summary);
  return event;
}

EventFile::EventFile(const std::string& path, double wall_time, uint64_t keep) : file_(path, keep) {
  if (keep == 0) file_.append(tfrecord(encode_version_event(wall_time)));
}

void EventFile::scalars(double wall_time, int64_t step, const std::vector<EventScalar>& scalars) {
  file_.append(tfrecord(encode_scalar_event(wall_time, step, scalars)));
}

}  // namespace qkv
