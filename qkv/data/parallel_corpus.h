// Parallel text: pairs of lines from two files, in the folder layout of Multi30k or named file by file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/data/text_file.h"

namespace qkv {

/// The two files of one set: "test_2016_flickr" is test_2016_flickr.de.gz and test_2016_flickr.en.gz.
struct ParallelFiles {
  std::string name;
  std::string source, target;  // paths
};

/// Pairs of lines: source[i] means the same as target[i].
struct ParallelSet {
  std::string name = {};
  std::vector<std::string> source = {}, target = {};
  std::string file = {};              // the source file; empty when the text was not read from one
  std::vector<int64_t> numbers = {};  // line of each pair there, from 1

  int64_t size() const { return static_cast<int64_t>(source.size()); }
};

struct ParallelCorpus {
  ParallelSet train, val;
  std::vector<ParallelSet> tests;  // by name
  LineReport report;               // what was left out of all of them
};

struct ParallelOptions {
  std::string source = "de", target = "en";  // the languages as file names end in them
  int64_t max_bytes = 2000;                  // longer lines are left out of training; 0: none is
};

/// Reads two files line by line; a pair is left out, and reported, when either line is empty, not UTF-8 or longer
/// than max_bytes (0: any length). Throws IoError: a file cannot be read, the files have different numbers of lines
/// (both are named with their counts), no pair is left.
ParallelSet read_parallel(const ParallelFiles& files, int64_t max_bytes, LineReport& report);

/// The sets train, val and test* of a folder: NAME.SRC[.gz] beside NAME.TGT[.gz], sorted by name. Throws IoError when
/// the folder cannot be read, has no such set, or one of the two files of a set is missing.
std::vector<ParallelFiles> find_parallel_sets(const std::string& folder, const ParallelOptions& options);

/// Reads train, val and every test set of a folder. Validation and test lines of any length are kept.
/// Throws IoError as above, and when train or val is missing.
ParallelCorpus read_parallel_folder(const std::string& folder, const ParallelOptions& options);
/// The same from files named one by one; `tests` may be empty.
ParallelCorpus read_parallel_files(const ParallelFiles& train, const ParallelFiles& val,
                                   const std::vector<ParallelFiles>& tests, const ParallelOptions& options);

}  // namespace qkv
