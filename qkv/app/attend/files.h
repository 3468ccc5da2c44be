// The files of the attend command: arrays read into a request, results written together or not at all.
#pragma once

#include <string>
#include <vector>

#include "qkv/app/attend/attend.h"

namespace qkv::app {

/// File names as given; an empty one was not asked for.
struct AttendPaths {
  std::string q, k, v, mask, valid_lens, kv_lens, past_k, past_v, grad_out;           // read
  std::string out, present_k, present_v, scores, stats, map, grad_q, grad_k, grad_v;  // written
};

/// Throws ConfigError with the command that makes an array of it, for a table of text.
void refuse_table(const std::string& path);

/// Reads every array named in `paths` into `request`. Throws IoError naming the file, ShapeError for an empty mask
/// or list of lengths.
void load_arrays(const AttendPaths& paths, AttendRequest& request);

/// The output files of `paths`, in the order they are written.
std::vector<std::string> output_files(const AttendPaths& paths);

/// Throws IoError when one of the files could not be written, before anything is computed for it.
void check_writable(const std::vector<std::string>& files);

/// What is saved beside the arrays of the result.
struct AttendExtras {
  ScoreStage stage = ScoreStage::raw;
  std::string stats_json;
};

/// Writes all files; they appear after the last one was written without error. Throws IoError.
void save_results(const AttendPaths& paths, const AttendResult& result, const AttendExtras& extras);

}  // namespace qkv::app
