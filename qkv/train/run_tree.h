// Runs below a folder at any depth, alone or as parts of a comparison or a study.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/base/names.h"

namespace qkv {

enum class FolderKind : uint8_t { run, comparison, study, other };
/// The record of a folder of several runs.
inline constexpr const char* kComparisonRecord = "compare.json";
inline constexpr const char* kStudyRecord = "study.json";
/// What shows that a folder is of a kind, and the command that makes and continues it.
struct FolderRow {
  FolderKind value;
  const char* name;
  const char* record = "";
  const char* command = "";
};
template <>
struct Names<FolderKind> {
  static constexpr const char* what = "kind of folder";
  static constexpr FolderRow rows[] = {{FolderKind::run, "run", "config.json", "train"},
                                       {FolderKind::comparison, "comparison", kComparisonRecord, "compare"},
                                       {FolderKind::study, "study", kStudyRecord, "study"},
                                       {FolderKind::other, "folder"}};
};
/// By the record it holds.
FolderKind folder_kind(const std::string& path);

struct FoundRun {
  std::string id;     // where it is below the root: "compare-reverse/dot"
  std::string path;   // root/id
  std::string group;  // the comparison or study it belongs to, by its place below the root; "" for a run alone
};

/// Throws IoError where the folder is there but must not be read: what is in it is not known then.
void require_readable(const std::string& folder);

/// Every run below `root`, by id. A run holds no further runs; links are not followed; what is being set up is left
/// out.
std::vector<FoundRun> find_runs(const std::string& root);

/// Why `path` cannot be opened as a run and what to do instead: "runs/compare-reverse is a comparison; its runs: none,
/// dot", or that there is none, with the run that was probably meant.
std::string not_a_run(const std::string& path);

/// Removes a run, comparison or study. Throws IoError, and removes nothing, for anything else, for one that holds
/// anything which is no part of it, and while it is being trained.
void remove_runs(const std::string& path);
/// Renames a run, comparison or study; `name` is its new name in the same folder, or a whole path. Throws as above, for
/// a run that is part of a comparison or study, and when something of the new name is there. Returns the new path.
std::string rename_runs(const std::string& path, const std::string& name);

}  // namespace qkv
