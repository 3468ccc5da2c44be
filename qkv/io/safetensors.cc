// The safetensors format, checked in full before any tensor is handed out.
#include "qkv/io/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "qkv/base/error.h"
#include "qkv/io/json.h"
#include "qkv/io/npy_header.h"

namespace qkv {
namespace {

// Room for 100,000 tensors. The format allows 100 MB, but numbers in JSON take twenty times their length once parsed.
constexpr uint64_t kMaxHeader = uint64_t{1} << 24;
constexpr uint64_t kLengthBytes = 8;  // the header's length comes first

uint64_t header_length(std::span<const std::byte> start) {
  uint64_t length = 0;
  std::memcpy(&length, start.data(), std::min<size_t>(start.size(), kLengthBytes));
  return length;
}

size_t dtype_size(std::string_view dtype) {
  static constexpr std::pair<std::string_view, size_t> kSizes[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
      {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, size] : kSizes) {
    if (name == dtype) return size;
  }
  return 0;
}

int64_t unsigned_number(const Json& value, const std::string& where, const char* what) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    throw IoError(where + ": " + what + " is not a list of whole numbers");
  }
  return value.get<int64_t>();
}

// One entry of the header. `where` is "FILE: tensor 'NAME'".
Safetensor read_entry(const std::string& name, const Json& entry, const std::string& where) {
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    throw IoError(where + ": expected exactly dtype, shape and data_offsets");
  }
  Safetensor tensor;
  tensor.name = name;
  if (entry["dtype"].is_string()) tensor.dtype = entry["dtype"].get<std::string>();
  const size_t item = dtype_size(tensor.dtype);
  if (item == 0) throw IoError(where + ": unknown dtype " + quoted_name(tensor.dtype));
  const Json& shape = entry["shape"];
  if (!shape.is_array()) throw IoError(where + ": shape is not a list of whole numbers");
  if (shape.size() > Shape::kMaxRank) throw IoError(where + ": more than 8 dimensions");
  for (const Json& size : shape) tensor.shape.push_back(unsigned_number(size, where, "shape"));
  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) throw IoError(where + ": data_offsets is not a pair");
  tensor.begin = static_cast<size_t>(unsigned_number(offsets[0], where, "data_offsets"));
  tensor.end = static_cast<size_t>(unsigned_number(offsets[1], where, "data_offsets"));
  const std::optional<uint64_t> needed = detail::array_bytes(tensor.shape, item);
  if (!needed || tensor.end < tensor.begin || tensor.end - tensor.begin != *needed) {
    throw IoError(where + ": data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) +
                  "] do not fit shape " + tensor.shape.str() + " of " + tensor.dtype);
  }
  return tensor;
}

// The ranges, in order, must tile the data.
void check_tiling(const std::vector<Safetensor>& tensors, uint64_t data_bytes, const std::string& file) {
  size_t at = 0;
  for (const Safetensor& tensor : tensors) {
    const std::string where = file + ": tensor " + quoted_name(tensor.name);
    if (tensor.end > data_bytes) {
      throw IoError(where + ": truncated file: its data end at byte " + std::to_string(tensor.end) +
                    ", the file holds " + std::to_string(data_bytes));
    }
    if (tensor.begin < at) throw IoError(where + ": overlaps the tensor before it");
    if (tensor.begin > at) throw IoError(where + ": gap of " + std::to_string(tensor.begin - at) + " bytes before it");
    at = tensor.end;
  }
  if (at != data_bytes) {
    throw IoError(file + ": " + std::to_string(data_bytes - at) + " bytes after the last tensor");
  }
}

template <class T>
std::vector<T> values(const SafetensorsFile& file, std::string_view name, const Shape& shape, const char* dtype) {
  const Safetensor& tensor = file.at(name);
  if (tensor.dtype != dtype || !(tensor.shape == shape)) {
    throw IoError(file.name() + ": tensor " + quoted_name(name) + " is " + tensor.dtype + " " + tensor.shape.str() +
                  ", expected " + dtype + " " + shape.str());
  }
  const std::span<const std::byte> bytes = file.bytes(tensor);
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

SafetensorView safetensor_view(std::string name, const Shape& shape, std::span<const float> values) {
  return {std::move(name), "F32", shape, std::as_bytes(values)};
}
SafetensorView safetensor_view(std::string name, const Shape& shape, std::span<const double> values) {
  return {std::move(name), "F64", shape, std::as_bytes(values)};
}

void save_safetensors(const std::string& path, const std::vector<SafetensorView>& tensors,
                      const SafetensorsMetadata& metadata) {
  std::vector<const SafetensorView*> order;
  for (const SafetensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const SafetensorView* a, const SafetensorView* b) {
    return dtype_size(a->dtype) > dtype_size(b->dtype);
  });
  Json header = Json::object();
  std::set<std::string_view> names;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t at = 0;
  for (const SafetensorView* tensor : order) {
    const std::string where = "[safetensors] " + path + ": tensor " + quoted_name(tensor->name);
    if (tensor->name == "__metadata__" || !names.insert(tensor->name).second) {
      throw ShapeError(where + ": name used twice");
    }
    const std::optional<uint64_t> needed = detail::array_bytes(tensor->shape, dtype_size(tensor->dtype));
    if (dtype_size(tensor->dtype) == 0 || needed != tensor->bytes.size()) {
      throw ShapeError(where + ": shape " + tensor->shape.str() + " of " + tensor->dtype + " does not fit " +
                       std::to_string(tensor->bytes.size()) + " bytes");
    }
    header[tensor->name] = {{"dtype", tensor->dtype},
                            {"shape", std::vector<int64_t>(tensor->shape.begin(), tensor->shape.end())},
                            {"data_offsets", {at, at + tensor->bytes.size()}}};
    at += tensor->bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw IoError("cannot write " + path + ": a tensor name or metadata value is not valid UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeader) {
    throw IoError("cannot write " + path + ": its header has " + std::to_string(text.size()) + " bytes, at most " +
                  std::to_string(kMaxHeader) + " can be read again");
  }
  const uint64_t length = text.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const SafetensorView* tensor : order) file.write(tensor->bytes);
  file.commit();
}

SafetensorsFile SafetensorsFile::load(const std::string& path) {
  constexpr uint64_t kSmall = uint64_t{1} << 20;
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  if (const uint64_t size = regular ? std::filesystem::file_size(path, error) : 0; !error && size > kSmall) {
    // A file that is not what its header says is not read.
    const uint64_t length = header_length(bytes_of(read_part(path, 0, kLengthBytes)));
    const std::string start = read_part(path, 0, static_cast<size_t>(kLengthBytes + std::min(length, kMaxHeader)));
    SafetensorsFile().read_header(bytes_of(start), size, path);
  }
  return parse(read_file(path), path);
}

SafetensorsFile SafetensorsFile::parse(Bytes bytes, const std::string& name) {
  SafetensorsFile file;
  file.read_header(bytes, bytes.size(), name);
  file.file_ = std::move(bytes);
  return file;
}

void SafetensorsFile::read_header(std::span<const std::byte> start, uint64_t whole, const std::string& name) {
  name_ = name;
  if (whole < kLengthBytes || start.size() < kLengthBytes) {
    throw IoError(name + ": truncated safetensors file (" + std::to_string(whole) + " bytes)");
  }
  const uint64_t length = header_length(start), left = whole - kLengthBytes;
  if (length > kMaxHeader)
    throw IoError(name + ": not a safetensors file (header length " + std::to_string(length) + ", at most " +
                  std::to_string(kMaxHeader) + ")");
  if (length > left || length > start.size() - kLengthBytes) {
    throw IoError(name + ": truncated safetensors file: its header should be " + std::to_string(length) + " bytes, " +
                  std::to_string(left) + " are left");
  }
  const std::string_view rest(reinterpret_cast<const char*>(start.data()) + kLengthBytes, static_cast<size_t>(length));
  if (length == 0 || rest[0] != '{') throw IoError(name + ": not a safetensors file (no JSON header)");
  const Json header = parse_json(
      rest,
      {.where = name + ": the safetensors header", .what = "a JSON object", .most_bytes = kMaxHeader, .most_depth = 8});
  data_offset_ = static_cast<size_t>(kLengthBytes + length);
  for (const auto& [key, entry] : header.items()) {
    if (key != "__metadata__") {
      tensors_.push_back(read_entry(key, entry, name + ": tensor " + quoted_name(key)));
      continue;
    }
    if (!entry.is_object()) throw IoError(name + ": __metadata__ is not an object of strings");
    for (const auto& [tag, text] : entry.items()) {
      if (!text.is_string()) throw IoError(name + ": __metadata__ is not an object of strings");
      metadata_[tag] = text.get<std::string>();
    }
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const Safetensor& a, const Safetensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_tiling(tensors_, whole - data_offset_, name);
}

const Safetensor* SafetensorsFile::find(std::string_view tensor) const {
  const auto it = std::find_if(tensors_.begin(), tensors_.end(), [&](const Safetensor& t) { return t.name == tensor; });
  return it == tensors_.end() ? nullptr : &*it;
}

const Safetensor& SafetensorsFile::at(std::string_view tensor) const {
  if (const Safetensor* found = find(tensor)) return *found;
  throw IoError(name_ + ": no tensor " + quoted_name(tensor));
}

std::span<const std::byte> SafetensorsFile::bytes(const Safetensor& tensor) const {
  return std::span(file_).subspan(data_offset_ + tensor.begin, tensor.end - tensor.begin);
}

std::vector<float> SafetensorsFile::f32(std::string_view tensor, const Shape& shape) const {
  return values<float>(*this, tensor, shape, "F32");
}
std::vector<double> SafetensorsFile::f64(std::string_view tensor, const Shape& shape) const {
  return values<double>(*this, tensor, shape, "F64");
}

}  // namespace qkv
