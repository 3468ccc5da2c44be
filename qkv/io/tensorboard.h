// TensorBoard event files: TFRecord framing with masked CRC-32C around hand-encoded protobuf events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/io/file.h"

namespace qkv {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78).
uint32_t crc32c(std::span<const std::byte> bytes);
/// The rotated and shifted form that TFRecord stores.
uint32_t masked_crc32c(std::span<const std::byte> bytes);

/// One point of one curve.
struct EventScalar {
  std::string tag;
  float value = 0;
};

/// One TFRecord: length, masked CRC of the length, data, masked CRC of the data.
std::string tfrecord(std::string_view data);
/// The Event message that opens every file: file_version "brain.Event:2".
std::string encode_version_event(double wall_time);
/// An Event message with one Summary of scalars.
std::string encode_scalar_event(double wall_time, int64_t step, const std::vector<EventScalar>& scalars);

/// Appends events to one file. TensorBoard reads any file whose name contains "tfevents".
class EventFile {
 public:
  /// keep = 0 starts a new file with the version event; otherwise the first `keep` bytes (a former size()) stay and
  /// what a killed run wrote after them is dropped. Throws IoError.
  EventFile(const std::string& path, double wall_time, uint64_t keep = 0);

  /// Appends one event. Throws IoError.
  void scalars(double wall_time, int64_t step, const std::vector<EventScalar>& scalars);
  /// Waits until everything appended is on the disk.
  void sync() { file_.sync(); }
  uint64_t size() const { return file_.size(); }

 private:
  AppendFile file_;
};

}  // namespace qkv
