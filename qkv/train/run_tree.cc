// Finding, removing and renaming runs.
#include "qkv/train/run_tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "qkv/base/error.h"
#include "qkv/base/names.h"
#include "qkv/base/utf8.h"
#include "qkv/base/wording.h"
#include "qkv/io/file.h"
#include "qkv/io/folder.h"
#include "qkv/io/json.h"
#include "qkv/train/run_archive.h"
#include "qkv/train/run_folder.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;  // folders below the root that are looked into

/// Folders directly below, by name: no links, nothing that is being set up.
std::vector<std::string> folders_in(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code unreadable;
    const bool link = fs::is_symlink(it->symlink_status(unreadable));
    if (!link && it->is_directory(unreadable) && temporary_owner(name) == 0) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void find_below(const std::string& root, const std::string& below, const std::string& group, int depth,
                std::vector<FoundRun>& found) {
  for (const std::string& name : folders_in(fs::path(root) / below)) {
    const std::string id = below.empty() ? name : below + "/" + name, path = (fs::path(root) / id).string();
    const FolderKind kind = folder_kind(path);
    if (kind == FolderKind::run) {
      found.push_back({id, path, group});
    } else if (depth < kDeepest) {
      find_below(root, id, kind == FolderKind::other ? group : id, depth + 1, found);
    }
  }
}

std::string without_slash(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  return last == std::string::npos ? path : path.substr(0, last + 1);
}

/// Throws unless the record in a folder is one of ours: many a program keeps a config.json.
void check_record(const std::string& path, FolderKind kind) {
  const std::string file = path + "/" + row_of(kind).record;
  const char* const member = kind == FolderKind::run ? "settings" : "arguments";
  bool ours = false;
  try {
    const Json record = read_json(file, "a record");
    ours = record.is_object() && record.contains(member);
  } catch (const Error&) {  // not JSON, or not readable
  }
  if (!ours) throw IoError(file + " is not of a " + name_of(kind) + " that qkv made: " + path + " is left alone");
}

/// Throws unless everything in a run's, comparison's or study's folder belongs to it, and locks its runs.
std::vector<std::shared_ptr<void>> claimed(const std::string& path) {
  const FolderKind kind = folder_kind(path);
  std::error_code error;
  if (kind == FolderKind::other || fs::is_symlink(fs::symlink_status(path, error))) {
    throw IoError(path + " is no run, comparison or study" + (kind == FolderKind::other ? "" : " but a link to one") +
                  ": it is left alone; 'qkv runs' lists what there is");
  }
  check_record(path, kind);
  const std::vector<FoundRun> runs = kind == FolderKind::run ? std::vector<FoundRun>{{"", path, ""}} : find_runs(path);
  std::vector<std::shared_ptr<void>> locked;
  for (const FoundRun& run : runs) {
    check_record(run.path, FolderKind::run);
    locked.push_back(lock_folder(run.path));
  }
  for_each_below(path, [&](const std::string& file, mode_t mode) {
    if (S_ISDIR(mode)) return;
    const auto holds = [&](const FoundRun& run) { return file.starts_with(run.path + "/"); };
    const auto run = std::find_if(runs.begin(), runs.end(), holds);
    const fs::path place = file.substr((run == runs.end() ? path : run->path).size() + 1);
    const bool left =
        std::any_of(place.begin(), place.end(), [](const auto& p) { return temporary_owner(p.string()); });
    if (left || place == "curves.svg" || belongs_to_run(place.string())) return;
    throw IoError(path + " also holds " + file.substr(path.size() + 1) + ", which is no part of it: it is left alone");
  });
  return locked;
}

/// The comparison or study that a run belongs to; "" for one alone.
std::string group_around(const std::string& path) {
  fs::path above = fs::path(path).parent_path();
  for (int up = 0; up < kDeepest && !above.empty(); ++up, above = above.parent_path()) {
    const FolderKind kind = folder_kind(above.string());
    if (kind == FolderKind::comparison || kind == FolderKind::study) return above.string();
    if (above == above.parent_path()) break;
  }
  return "";
}

/// The run whose name is nearest to that of `path`, beside it or anywhere below runs/; "" when none is near.
std::string run_meant_by(const fs::path& path) {
  const fs::path parent = path.parent_path();
  std::vector<std::string> paths, names;
  for (const std::string& name : folders_in(parent.empty() ? "." : parent)) {
    if (folder_kind((parent / name).string()) != FolderKind::other) paths.push_back((parent / name).string());
  }
  for (const FoundRun& run : find_runs("runs")) paths.push_back(run.path);
  for (const std::string& run : paths) names.push_back(fs::path(run).filename().string());
  const std::string nearest = nearest_name(path.filename().string(), names);
  const auto found = std::find(names.begin(), names.end(), nearest);
  return found == names.end() ? "" : paths[static_cast<size_t>(found - names.begin())];
}

}  // namespace

FolderKind folder_kind(const std::string& path) {
  std::error_code error;
  for (const FolderRow& row : Names<FolderKind>::rows) {
    if (*row.record != '\0' && fs::exists(path + "/" + row.record, error)) return row.value;
  }
  return FolderKind::other;
}

std::vector<FoundRun> find_runs(const std::string& root) {
  std::vector<FoundRun> found;
  const FolderKind kind = folder_kind(root);
  if (kind == FolderKind::run) return found;
  find_below(root, "", "", 0, found);
  std::sort(found.begin(), found.end(),
            [](const FoundRun& a, const FoundRun& b) { return fs::path(a.id) < fs::path(b.id); });
  return found;
}

void require_readable(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator(folder, error);
  if (error == std::errc::permission_denied) throw IoError("cannot read folder " + folder + ": " + error.message());
}

std::string not_a_run(const std::string& path) {
  require_readable(path);
  const FolderKind kind = folder_kind(path);
  if (kind == FolderKind::comparison || kind == FolderKind::study) {
    std::vector<std::string> ids;
    for (const FoundRun& run : find_runs(path)) ids.push_back(run.id);
    const std::string is = without_slash(path) + " is a " + name_of(kind);
    if (ids.empty()) return is + " that has no run yet";
    return is + "; its runs: " + listed(ids) + ": give one, as in " + without_slash(path) + "/" + ids.back();
  }
  const std::string meant = run_meant_by(without_slash(path));
  std::error_code error;
  return "no run in " + path + (fs::exists(path, error) ? ": there is no config.json" : "") +
         (meant.empty() ? "" : " (did you mean '" + meant + "'?)") +
         "; 'qkv runs' lists the runs there are, 'qkv train TASK' makes one";
}

void remove_runs(const std::string& path) {
  const std::string folder = without_slash(path);
  const std::vector<std::shared_ptr<void>> locked = claimed(folder);
  remove_tree(folder);
}

std::string rename_runs(const std::string& path, const std::string& name) {
  const std::string folder = without_slash(path);
  const std::vector<std::shared_ptr<void>> locked = claimed(folder);
  if (const std::string group = group_around(folder); !group.empty()) {
    throw IoError(folder + " is part of " + group + ", which knows it by its name; rename that instead");
  }
  const fs::path target = name.find('/') == std::string::npos ? fs::path(folder).parent_path() / name : fs::path(name);
  if (name.empty() || target.filename().empty() || target.filename() == "." || target.filename() == ".." ||
      first_invalid_utf8(name) >= 0 || temporary_owner(target.filename().string()) != 0) {
    throw ConfigError("'" + name + "' cannot be the name of a run");
  }
  std::error_code error;
  if (fs::exists(fs::symlink_status(target, error))) throw IoError(target.string() + " is there already");
  fs::rename(folder, target, error);
  if (error) throw IoError("cannot rename " + folder + " to " + target.string() + ": " + error.message());
  return target.string();
}

}  // namespace qkv
