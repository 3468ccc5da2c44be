// Lists of files with their checksums, and the files themselves where they are missing.
#include "qkv/train/shared_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "qkv/base/error.h"
#include "qkv/io/checksum.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPiece = uint64_t{1} << 24;  // bytes of a file sent at a time
constexpr const char* kAssets = "";             // stands for the name of a setting

using NamedSum = std::tuple<std::string, uint64_t, uint64_t>;              // name below the root, bytes, XXH64
using Tree = std::tuple<std::string, std::string, std::vector<NamedSum>>;  // setting, root, files; a file's name is ""
using Values = std::vector<std::tuple<std::string, std::string>>;
using Announced = std::tuple<std::string, std::string, Values, std::vector<Tree>>;  // path, task, settings, trees

NamedSum sum_of(const std::string& root, const std::string& name) {
  const FileSum file = sum_of_file(name.empty() ? root : root + "/" + name);
  return {name, file.bytes, file.sum};
}

Tree tree_of(const std::string& setting, const std::string& path) {
  const std::string root = fs::absolute(path).lexically_normal().string();
  std::vector<NamedSum> files;
  std::error_code error;
  if (!fs::is_directory(root, error)) return {setting, root, {sum_of(root, "")}};
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back(sum_of(root, fs::relative(entry.path(), root).string()));
  }
  std::sort(files.begin(), files.end());
  return {setting, root, std::move(files)};
}

/// What the task was made of: the files in its folder that are no results, and its data.
std::vector<Tree> trees_of(const RunFolder& run, const Task& task) {
  Tree assets{kAssets, run.path(), {}};
  for (const auto& entry : fs::directory_iterator(run.path())) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && Checksums::load(run.path()).has(name)) {
      std::get<2>(assets).push_back(sum_of(run.path(), name));
    }
  }
  std::vector<Tree> trees{std::move(assets)};
  for (const Setting& s : run.settings().all()) {
    // What is no file names generated data, or is missed when it is read.
    std::error_code error;
    const bool other = s.name == "from" || s.name == "tokens";
    const bool data = s.kind == SettingKind::path && !other && fs::exists(s.value, error);
    if (data) trees.push_back(tree_of(s.name, s.value));
  }
  const bool named = run.settings().has("data") && !run.settings().get_text("data").empty();
  if (!named && !task.unnamed_data().empty()) trees.push_back(tree_of("data", task.unnamed_data()));
  return trees;
}

/// Whether this process's own disk has the same files.
bool has_same(const Tree& tree) {
  const auto& [setting, root, files] = tree;
  if (setting == kAssets) return false;
  return std::all_of(files.begin(), files.end(), [&, &folder = root](const NamedSum& wanted) {
    const auto& [name, bytes, sum] = wanted;
    const std::string path = name.empty() ? folder : folder + "/" + name;
    std::error_code error;
    return fs::is_regular_file(path, error) && fs::file_size(path, error) == bytes && sum_of(folder, name) == wanted;
  });
}

/// Sends one file of process 0 to all, which write it to `to` unless that is empty.
void pass_on(Processes& processes, const std::string& from, uint64_t bytes, const std::string& to) {
  std::optional<AppendFile> file;
  agree(processes, [&] {
    if (!to.empty()) make_folders(fs::path(to).parent_path().string()), file.emplace(to);
  });
  for (uint64_t at = 0; at < bytes; at += kPiece) {
    std::string piece;
    agree_on_first(processes, [&] { piece = read_part(from, at, std::min(kPiece, bytes - at)); });
    piece = broadcast_text(processes, std::move(piece));
    agree(processes, [&] {
      if (file) file->append(piece);
    });
  }
}

/// Passes on the trees that some process lacks; gives where each is on this process.
std::vector<std::string> exchange_files(Processes& processes, const std::vector<Tree>& trees,
                                        const AtomicFolder* received) {
  const std::vector<std::string> answers = gather_agreed(processes, [&] {
    std::string lacks;
    for (const Tree& tree : trees) lacks += received != nullptr && !has_same(tree) ? '1' : '0';
    return lacks;
  });
  std::vector<std::string> places;
  for (size_t i = 0; i < trees.size(); ++i) {
    const auto& [setting, root, files] = trees[i];
    const bool lacking = answers[static_cast<size_t>(processes.rank())][i] == '1';
    places.push_back(lacking ? received->file(std::to_string(i)) : root);
    if (std::none_of(answers.begin(), answers.end(), [&](const std::string& a) { return a[i] == '1'; })) continue;
    for (const auto& [name, bytes, sum] : files) {
      const std::string tail = name.empty() ? "" : "/" + name;
      pass_on(processes, root + tail, bytes, lacking ? places.back() + tail : "");
    }
    if (lacking && files.empty()) make_folders(places.back());
  }
  return places;
}

}  // namespace

void share_run(Processes& processes, const RunFolder& run, const Task& task) {
  if (processes.size() == 1) return;
  Announced announced;
  agree(processes, [&] {
    Values values;
    for (const Setting& s : run.settings().all()) values.emplace_back(s.name, s.value);
    announced = {run.path(), run.spec().name, std::move(values), trees_of(run, task)};
  });
  broadcast_text(processes, packed(announced));
  agree(processes, [] {});
  exchange_files(processes, std::get<3>(announced), nullptr);
  agree(processes, [] {});
}

SharedRun receive_run(Processes& processes) {
  agree(processes, [] {});
  const auto [path, task, values, trees] = unpacked<Announced>(broadcast_text(processes, ""));
  // Never committed: removed with this object or, if this process is killed, when the next one is made.
  std::shared_ptr<AtomicFolder> received;
  agree(processes, [&] {
    received = std::make_shared<AtomicFolder>(fs::temp_directory_path().string() + "/qkv-data");
    fs::permissions(received->path(), fs::perms::owner_all);  // data may be nobody else's business
  });
  const std::vector<std::string> places = exchange_files(processes, trees, received.get());
  SharedRun run{path, {}, nullptr, received};
  agree(processes, [&, &name = task, &settings = values, &list = trees] {
    const TaskSpec& spec = find_task(name);
    run.settings = spec.settings();
    for (const auto& [setting, value] : settings) run.settings.set(setting, value);
    for (size_t i = 1; i < list.size(); ++i) run.settings.set(std::get<0>(list[i]), places[i]);
    run.task = spec.make(run.settings, places[0]);
  });
  return run;
}

}  // namespace qkv
