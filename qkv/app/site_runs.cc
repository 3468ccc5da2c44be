// Packing the runs of a site.
#include "qkv/app/site_runs.h"

#include <cctype>
#include <filesystem>
#include <set>

#include "qkv/base/base64.h"
#include "qkv/base/error.h"
#include "qkv/data/text_file.h"
#include "qkv/figures/number.h"
#include "qkv/tasks/recordings.h"
#include "qkv/train/run_archive.h"
#include "qkv/train/session.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kCheckpoints = 10, kExamples = 8;
constexpr int64_t kMostWeights = 50'000'000;  // bytes of one checkpoint that a visitor is expected to load

/// The pixels of a picture as an input that needs no data beside it.
std::string pixels_input(const Bitmap& picture) {
  std::string pixels = picture.channels == 1 ? "P5\n" : "P6\n";
  pixels += std::to_string(picture.width) + " " + std::to_string(picture.height) + "\n255\n";
  pixels.append(picture.pixels.begin(), picture.pixels.end());
  return "data:image/x-portable-anymap;base64," + encode_base64(bytes_of(pixels));
}

/// An input as it works where the run's data are not at hand.
std::string portable(OpenedRun& opened, const std::string& input) {
  if (opened.folder.spec().input != InputKind::picture) return input;
  const TracedExample e = opened.task->trace(input);
  return e.picture ? pixels_input(*e.picture) : input;
}

/// Why a tab cannot run the model; empty when it can.
std::string why_recorded(OpenedRun& opened, bool large) {
  std::error_code error;
  for (fs::directory_iterator it(opened.folder.path(), error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".model") return "it has a SentencePiece tokenizer";
  }
  int64_t bytes = 0;
  for (const NamedParameter& p : parameters_of(*opened.task)) bytes += p.value.numel() * int64_t{sizeof(float)};
  if (large || bytes <= kMostWeights) return "";
  return "its weights take " + format_number(static_cast<double>(bytes) / 1e6, 3) + " MB (--large carries them)";
}

struct Inputs {
  std::vector<std::string> given, names;  // as the model takes them here; as the page asks for them
};

/// The run's examples, and the lines of a file.
Inputs inputs_of(OpenedRun& opened, const std::string& file) {
  Inputs all;
  std::set<std::string> seen;
  const auto take = [&](const std::string& input) {
    if (!seen.insert(input).second || input.empty()) return;
    all.names.push_back(portable(opened, input));
    all.given.push_back(input);
  };
  for (const std::string& input : opened.task->examples(kExamples)) take(input);
  if (!file.empty()) {
    for (const std::string& line : read_lines(file)) take(line);
  }
  return all;
}

/// The last part of the path, with what any server takes in a file's name.
std::string site_id(const std::string& run) {
  std::string name = fs::absolute(run + "/").lexically_normal().parent_path().filename().string();
  for (char& c : name) {
    if (std::string_view("._-").find(c) == std::string_view::npos && !std::isalnum(static_cast<unsigned char>(c)))
      c = '-';
  }
  return name;
}

SiteRun packed(const std::string& run, const std::string& id, const SiteRunOptions& options) {
  OpenedRun opened = load_run(run, "");
  const std::string why = why_recorded(opened, options.large);
  if (why.empty()) {
    const std::vector<std::string> examples = inputs_of(opened, "").names;
    return {id, pack_run(run, id, {.checkpoints = kCheckpoints, .optimizer = false, .examples = examples}), ""};
  }
  const Inputs inputs = inputs_of(opened, options.inputs);
  const std::string file = options.work + "/" + id + ".safetensors";
  write_recordings(file, *opened.task, inputs.given, inputs.names, weights_name(opened.weights));
  return {id, pack_run(run, id, {.recordings = file}),
          why + "; " + std::to_string(inputs.names.size()) + " inputs are shown"};
}

}  // namespace

std::vector<SiteRun> pack_for_site(const std::vector<std::string>& runs, const SiteRunOptions& options) {
  std::vector<SiteRun> all;
  std::set<std::string> ids;
  bool recorded = false;
  for (const std::string& run : runs) {
    const std::string name = site_id(run);
    std::string id = name;
    for (int k = 2; !ids.insert(id).second; ++k) id = name + "-" + std::to_string(k);
    all.push_back(packed(run, id, options));
    recorded = recorded || !all.back().recorded.empty();
  }
  if (!options.inputs.empty() && !recorded) {
    throw ConfigError("--inputs is for runs that are recorded, and none of these is: a visitor gives them any input");
  }
  return all;
}

}  // namespace qkv::app
