// Parallel text: pairs of lines from two files, in the folder layout of Multi30k or named file by file.
#include "qkv/data/parallel_corpus.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "qkv/base/error.h"

namespace qkv {
namespace {

// "train" of "train.de.gz"; "" when the name does not end in the language.
std::string set_name(std::string file, const std::string& language) {
  if (file.ends_with(".gz")) file.resize(file.size() - 3);
  const std::string ending = "." + language;
  if (!file.ends_with(ending)) return "";
  file.resize(file.size() - ending.size());
  return file == "train" || file == "val" || file.starts_with("test") ? file : "";
}

std::set<std::string> names_in(const std::string& folder, const ParallelOptions& options) {
  std::error_code error;
  std::set<std::string> names;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    for (const std::string& language : {options.source, options.target}) {
      const std::string name = set_name(it->path().filename().string(), language);
      if (!name.empty()) names.insert(name);
    }
  }
  if (error) throw IoError("cannot read folder " + folder + ": " + error.message());
  return names;
}

std::string expected_file(const std::string& folder, const std::string& name, const std::string& language) {
  const std::string stem = (std::filesystem::path(folder) / (name + "." + language)).string();
  const std::string path = find_plain_or_gz(stem);
  if (path.empty()) throw IoError("missing file " + stem + " (or " + stem + ".gz)");
  return path;
}

}  // namespace

ParallelSet read_parallel(const ParallelFiles& files, int64_t max_bytes, LineReport& report) {
  std::vector<std::string> source = read_lines(files.source), target = read_lines(files.target);
  if (source.size() != target.size()) {
    throw IoError("the files of a pair differ in length: " + files.source + " has " + std::to_string(source.size()) +
                  " lines, " + files.target + " has " + std::to_string(target.size()) + "; expected the same number");
  }
  ParallelSet set{.name = files.name, .file = files.source};
  for (size_t i = 0; i < source.size(); ++i) {
    const LineFault in_source = check_line(source[i], max_bytes), in_target = check_line(target[i], max_bytes);
    const bool source_is_odd = in_source != LineFault::none;
    if (source_is_odd || in_target != LineFault::none) {
      report.add(source_is_odd ? files.source : files.target, static_cast<int64_t>(i) + 1,
                 source_is_odd ? in_source : in_target);
      continue;
    }
    set.source.push_back(std::move(source[i]));
    set.target.push_back(std::move(target[i]));
    set.numbers.push_back(static_cast<int64_t>(i) + 1);
  }
  if (set.source.empty()) throw IoError("no pair of lines to use in " + files.source + " and " + files.target);
  return set;
}

std::vector<ParallelFiles> find_parallel_sets(const std::string& folder, const ParallelOptions& options) {
  std::vector<ParallelFiles> sets;
  for (const std::string& name : names_in(folder, options)) {
    sets.push_back({name, expected_file(folder, name, options.source), expected_file(folder, name, options.target)});
  }
  if (sets.empty()) {
    throw IoError("no parallel text in " + folder + ": expected files like train." + options.source + " and train." +
                  options.target + ", plain or .gz");
  }
  return sets;
}

ParallelCorpus read_parallel_folder(const std::string& folder, const ParallelOptions& options) {
  const std::vector<ParallelFiles> sets = find_parallel_sets(folder, options);
  const auto named = [&](const std::string& name) {
    const auto it = std::find_if(sets.begin(), sets.end(), [&](const auto& set) { return set.name == name; });
    if (it == sets.end()) expected_file(folder, name, options.source);  // throws: it is missing
    return *it;
  };
  const ParallelFiles train = named("train"), val = named("val");
  std::vector<ParallelFiles> tests;
  for (const ParallelFiles& set : sets) {
    if (set.name.starts_with("test")) tests.push_back(set);
  }
  return read_parallel_files(train, val, tests, options);
}

ParallelCorpus read_parallel_files(const ParallelFiles& train, const ParallelFiles& val,
                                   const std::vector<ParallelFiles>& tests, const ParallelOptions& options) {
  ParallelCorpus corpus;
  corpus.train = read_parallel(train, options.max_bytes, corpus.report);
  corpus.val = read_parallel(val, 0, corpus.report);
  for (const ParallelFiles& test : tests) corpus.tests.push_back(read_parallel(test, 0, corpus.report));
  return corpus;
}

}  // namespace qkv
