// Packing a run, and unpacking one without trust.
#include "qkv/train/run_archive.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "qkv/base/error.h"
#include "qkv/io/folder.h"
#include "qkv/io/json.h"
#include "qkv/io/tar.h"
#include "qkv/tasks/recordings.h"
#include "qkv/train/run_folder.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples = "examples.json";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kModel = "model.safetensors";
constexpr const char* kState = "state.json";
constexpr uint64_t kExamplesLimit = uint64_t{1} << 24;
constexpr uint64_t kPiece = uint64_t{1} << 20;  // of a file that is unpacked

bool is_plain(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), good);
}

/// Configuration, assets (.json, .model, a text of its own), logs, reports and recordings.
bool is_run_file(std::string_view name) {
  if (!is_plain(name)) return false;
  return name == "CHECKSUMS" || name == kRecordings || name == "data.txt" || name == "metrics.jsonl" ||
         name == "report.html" || name.ends_with(".json") || name.ends_with(".model") ||
         name.starts_with("events.out.tfevents");
}

bool is_checkpoint_file(std::string_view name) {
  return name == "CHECKSUMS" || name == kState || name == kModel || name == kOptimizer;
}

bool is_checkpoint_folder(std::string_view name) {
  return name == "average" || (!name.empty() && name.size() < 20 &&
                               std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }));
}

/// The newest, the best, and others evenly between, `most` of them.
std::vector<int64_t> chosen_checkpoints(const RunFolder& run, int64_t most) {
  const std::vector<int64_t> all = run.checkpoints();
  if (all.empty() || most <= 0 || static_cast<int64_t>(all.size()) <= most) return all;
  std::set<int64_t> kept{all.back()};
  if (const int64_t best = run.load_state(all.back()).best_step;
      most > 1 && std::binary_search(all.begin(), all.end(), best))
    kept.insert(best);
  const auto last = static_cast<int64_t>(all.size()) - 1;
  for (int64_t i = 0; i < most && static_cast<int64_t>(kept.size()) < most; ++i) {
    kept.insert(all[static_cast<size_t>(last * i / std::max<int64_t>(most - 1, 1))]);
  }
  return {kept.begin(), kept.end()};
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error)) names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A list of checksums without the line of one file.
std::string without_line(const std::string& text, const std::string& name) {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    if (!line.ends_with("  " + name + "\n")) out += line;
    begin = end;
  }
  return out;
}

void add_checkpoint(TarWriter& tar, const std::string& folder, const std::string& inside, bool optimizer) {
  for (const std::string& name : files_in(folder)) {
    if (!is_checkpoint_file(name) || (name == kOptimizer && !optimizer)) continue;
    if (name == "CHECKSUMS" && !(optimizer && fs::exists(folder + "/" + kOptimizer))) {
      tar.add(inside + name, without_line(read_text(folder + "/" + name, kExamplesLimit), kOptimizer));
    } else {
      tar.add(inside + name, read_file(folder + "/" + name));
    }
  }
}

/// What says how the run was trained, and the recordings in place of its model.
Bytes pack_recorded(const RunFolder& run, const std::string& name, const std::string& recordings) {
  TarWriter tar;
  for (const char* file : {"config.json", "metrics.jsonl", "result.json"}) {
    if (fs::exists(run.path() + "/" + file)) tar.add(name + "/" + file, read_file(run.path() + "/" + file));
  }
  tar.add(name + "/" + kRecordings, read_file(recordings));
  const std::vector<int64_t> steps = run.checkpoints();
  if (steps.empty()) return tar.finish();
  const std::string folder = run.checkpoint_path(steps.back());
  const std::string inside = name + "/checkpoints/" + fs::path(folder).filename().string() + "/";
  tar.add(inside + kState, read_file(folder + "/" + kState));
  return tar.finish();
}

}  // namespace

bool belongs_to_run(const std::string& place) {
  constexpr std::string_view kFolder = "checkpoints/";
  if (!place.starts_with(kFolder)) return is_run_file(place);
  const std::string_view rest = std::string_view(place).substr(kFolder.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  return slash < rest.size() && is_checkpoint_folder(rest.substr(0, slash)) &&
         is_checkpoint_file(rest.substr(slash + 1));
}

Bytes pack_run(const std::string& path, const std::string& name, const ArchiveOptions& options) {
  refuse_links(path, "pack");  // a run from elsewhere would bring along any file of ours
  const RunFolder run = RunFolder::open(path);
  if (!options.recordings.empty()) return pack_recorded(run, name, options.recordings);
  TarWriter tar;
  for (const std::string& file : files_in(path)) {
    // Events and the report say again what the metrics say: they stay with runs that continue.
    const bool wanted = options.optimizer || !(file == "report.html" || file.starts_with("events."));
    if (wanted && is_run_file(file) && file != kExamples) tar.add(name + "/" + file, read_file(path + "/" + file));
  }
  std::vector<std::string> examples = options.examples;
  if (examples.empty()) examples = packed_examples(path);
  if (!examples.empty()) tar.add(name + "/" + kExamples, Json{{"examples", examples}}.dump() + "\n");
  for (const int64_t step : chosen_checkpoints(run, options.checkpoints)) {
    const std::string folder = run.checkpoint_path(step);
    add_checkpoint(tar, folder, name + "/checkpoints/" + fs::path(folder).filename().string() + "/", options.optimizer);
  }
  add_checkpoint(tar, path + "/checkpoints/average", name + "/checkpoints/average/", options.optimizer);
  return tar.finish();
}

std::string unpack_run(std::span<const std::byte> archive, const std::string& file, const std::string& root) {
  return unpack_run(*ByteSource::of_bytes(archive), file, root);
}

std::string unpack_run(const ByteSource& archive, const std::string& file, const std::string& root) {
  const std::vector<TarEntry> files = list_tar(archive, file);
  std::string name;
  for (const TarEntry& f : files) {
    const size_t slash = f.name.find('/');
    const std::string first = f.name.substr(0, slash == std::string::npos ? 0 : slash);
    if (name.empty()) name = first;
    if (first.empty() || first != name || !belongs_to_run(f.name.substr(slash + 1))) {
      throw IoError(file + ": " + quoted_name(f.name) +
                    " is no file of a run; expected one run's folder, as 'tar cf' packs it");
    }
  }
  if (!is_plain(name)) throw IoError(file + ": it holds no run");
  make_folders(root);
  const std::string path = free_folder(root + "/" + name);
  AtomicFolder folder(path);
  make_folders(folder.file("checkpoints"));
  for (const TarEntry& f : files) {
    const std::string place = f.name.substr(name.size() + 1);
    if (const size_t slash = place.rfind('/'); slash != std::string::npos)
      make_folders(folder.file(place.substr(0, slash)));
    folder.write(place, std::string_view());
    for (uint64_t at = 0; at < f.bytes; at += kPiece) {
      const uint64_t wanted = std::min(kPiece, f.bytes - at);
      const std::string piece = archive.read(f.begin + at, wanted);
      if (piece.size() < wanted) throw IoError(file + ": a .tar archive that is cut off");
      folder.append(place, bytes_of(piece));
    }
  }
  try {
    const RunFolder run = RunFolder::open(folder.path());
    if (fs::exists(folder.file(kRecordings))) {
      Recordings::load(folder.file(kRecordings));
    } else {
      run.make_task();
    }
  } catch (const Error& e) {
    std::string what = e.what();
    if (const size_t at = what.find(folder.path()); at != std::string::npos)
      what.replace(at, folder.path().size(), name);
    throw IoError(file + ": " + what);
  }
  if (!folder.commit_new()) throw IoError("cannot write " + path + ": something of that name is there now");
  return path;
}

std::vector<std::string> run_files(const std::string& path) {
  std::vector<std::string> names;
  const int error = for_each_below(path, [&](const std::string& file, mode_t mode) {
    const std::string place = file.substr(path.size() + 1);
    if (S_ISREG(mode) && belongs_to_run(place)) names.push_back(place);
  });
  if (error != 0) throw IoError("cannot read " + path + ": " + std::generic_category().message(error));
  std::sort(names.begin(), names.end());
  return names;
}

void put_run_file(const std::string& path, const std::string& name, std::optional<std::span<const std::byte>> bytes) {
  if (!belongs_to_run(name)) throw IoError(quoted_name(name) + " is no file of a run");
  const std::string file = path + "/" + name;
  const std::string folder = fs::path(file).parent_path().string();
  if (bytes) {
    make_folders(folder);
    make_folders(path + "/checkpoints");
    write_file_atomic(file, *bytes);
    return;
  }
  std::error_code error;
  fs::remove(file, error);
  if (folder != path && fs::is_empty(folder, error) && !error) fs::remove(folder, error);
}

std::vector<std::string> packed_examples(const std::string& path) {
  const std::string file = path + "/" + kExamples;
  std::error_code error;
  if (!fs::exists(file, error)) return {};
  const Json json = read_json(file, "the examples of a run", kExamplesLimit);
  std::vector<std::string> out;
  const Json* const list = json.is_object() && json.contains("examples") ? &json["examples"] : nullptr;
  if (list == nullptr || !list->is_array()) throw IoError(file + ": expected a list of examples");
  for (const Json& one : *list) {
    if (!one.is_string()) throw IoError(file + ": an example is not text");
    out.push_back(one);
  }
  return out;
}

}  // namespace qkv
