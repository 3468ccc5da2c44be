// Reading arrays and writing results, each file complete or absent.
#include "qkv/app/attend/files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "qkv/app/attend/map.h"
#include "qkv/base/error.h"
#include "qkv/io/npy.h"
#include "qkv/ops/ops.h"

namespace qkv::app {
namespace {

constexpr int64_t kScoresAtOnce = int64_t{1} << 20;  // 4 MiB: scores pass through memory in pieces

Tensor tensor_of(const NpyArray& array) {
  if (!is_float(array.type)) {
    throw IoError(array.name + ": " + type_name(array.type) + " array; expected float16, float32 or float64");
  }
  if (array.type != NpyType::kF32) return Tensor::from(array.to_f32(), array.shape);
  Tensor t = Tensor::empty(array.shape);  // one copy less: these arrays may be large
  if (!array.data.empty()) std::memcpy(t.f32(), array.data.data(), array.data.size());
  return t;
}

}  // namespace

void refuse_table(const std::string& path) {
  for (const char* ending : {".csv", ".tsv", ".txt"}) {
    if (!path.ends_with(ending)) continue;
    const char* comma = path.ends_with(".csv") ? ", delimiter=','" : "";
    throw ConfigError(path +
                      " is text; arrays are .npy files, which NumPy writes: python3 -c \"import numpy as np; "
                      "np.save('" +
                      path.substr(0, path.size() - 4) + ".npy', np.loadtxt('" + path + "'" + comma +
                      ")[None, None])\" ([B,H,L,D])");
  }
}

namespace {

NpyArray load_array(const std::string& path) {
  refuse_table(path);
  return load_npy(path);
}

Tensor load_tensor(const std::string& path) { return path.empty() ? Tensor() : tensor_of(load_array(path)); }

Lengths load_lengths(const std::string& path) {
  if (path.empty()) return {};
  const NpyArray array = load_array(path);
  if (is_float(array.type) || array.type == NpyType::kBool) {
    throw IoError(path + ": " + type_name(array.type) + " array; lengths must be integers");
  }
  Lengths lens{array.shape, array.to_i64()};
  if (lens.values.empty()) throw ShapeError("[attend] " + path + " is empty: " + array.shape.str());
  return lens;
}

void load_mask(const std::string& path, AttendRequest& request) {
  if (path.empty()) return;
  const NpyArray array = load_array(path);
  if (array.shape.numel() == 0) throw ShapeError("[attend] " + path + " is empty: " + array.shape.str());
  if (array.type == NpyType::kBool) {
    request.mask = bool_mask(array.to_bool(), array.shape);
  } else if (is_float(array.type)) {
    request.bias = tensor_of(array);
  } else {
    throw IoError(path + ": " + type_name(array.type) +
                  " mask; expected bool (True = takes part) or float (added to the scores)");
  }
}

void write_array(AtomicFile& file, const Tensor& t) {
  const Tensor dense = contiguous(t.detach());
  file.write(npy_header(dense.shape(), NpyType::kF32));
  file.write(std::as_bytes(std::span<const float>(dense.f32(), static_cast<size_t>(dense.numel()))));
}

void write_scores(AtomicFile& file, const AttendResult& r, ScoreStage stage) {
  const int64_t B = r.q.dim(0), H = r.q.dim(1), Lq = r.q.dim(2), Lk = r.k.dim(2);
  const int64_t rows = std::clamp<int64_t>(kScoresAtOnce / Lk, 1, Lq);
  file.write(npy_header({B, H, Lq, Lk}, NpyType::kF32));
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t i = 0; i < Lq; i += rows) {
        const ScoreWindow window{b, h, i, std::min(Lq, i + rows), stage};
        const Tensor part = attention_scores(r.q, r.k, r.rule, window);  // [rows, Lk]
        file.write(std::as_bytes(std::span<const float>(part.f32(), static_cast<size_t>(part.numel()))));
      }
    }
  }
}

}  // namespace

void load_arrays(const AttendPaths& paths, AttendRequest& request) {
  request.q = load_tensor(paths.q);
  request.k = load_tensor(paths.k);
  request.v = load_tensor(paths.v);
  request.past_k = load_tensor(paths.past_k);
  request.past_v = load_tensor(paths.past_v);
  request.d_out = load_tensor(paths.grad_out);
  request.valid_lens = load_lengths(paths.valid_lens);
  request.kv_lens = load_lengths(paths.kv_lens);
  load_mask(paths.mask, request);
}

std::vector<std::string> output_files(const AttendPaths& paths) {
  std::vector<std::string> files;
  for (const std::string* path : {&paths.out, &paths.present_k, &paths.present_v, &paths.scores, &paths.stats,
                                  &paths.map, &paths.grad_q, &paths.grad_k, &paths.grad_v}) {
    if (!path->empty()) files.push_back(*path);
  }
  return files;
}

void check_writable(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    // Opening and closing a pipe would end what its reader sees.
    if (std::filesystem::exists(status) && std::filesystem::is_other(status)) continue;
    const AtomicFile probe(path);  // leaves nothing behind
  }
}

void save_results(const AttendPaths& paths, const AttendResult& result, const AttendExtras& extras) {
  std::vector<std::unique_ptr<AtomicFile>> files;
  const auto write = [&](const std::string& path, auto&& content) {
    if (path.empty()) return;
    files.push_back(std::make_unique<AtomicFile>(path));
    content(*files.back());
  };
  const auto write_tensor = [&](const std::string& path, const Tensor& t) {
    write(path, [&](AtomicFile& file) { write_array(file, t); });
  };
  write_tensor(paths.out, result.out);
  write_tensor(paths.present_k, result.k);
  write_tensor(paths.present_v, result.v);
  write_tensor(paths.grad_q, result.d_q);
  write_tensor(paths.grad_k, result.d_k);
  write_tensor(paths.grad_v, result.d_v);
  write(paths.scores, [&](AtomicFile& file) { write_scores(file, result, extras.stage); });
  write(paths.stats, [&](AtomicFile& file) { file.write(extras.stats_json); });
  write(paths.map, [&](AtomicFile& file) { file.write(draw_map(result, paths.map)); });
  for (const auto& file : files) file->commit();
}

}  // namespace qkv::app
