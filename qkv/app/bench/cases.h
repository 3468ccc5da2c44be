// What 'qkv bench' measures: one table of cases, each described by the sizes that both qkv and PyTorch build it from.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace qkv::bench {

struct BenchCase {
  const char* kind;   // train, epoch, decode, attention, gemm
  const char* name;   // what --only matches
  const char* title;  // one line of description
  const char* sizes;  // JSON
};

/// All cases in the order they run.
std::span<const BenchCase> case_table();
/// A case's sizes with its kind; `quick` makes batch, lengths and vocabularies tiny.
nlohmann::json sizes_of(const BenchCase& c, bool quick);

/// Gives the sizes of an epoch case its text: "batches" of pairs of id sequences, from the folder that has such text
/// (wiki.txt, or Multi30k's layout) or generated. Throws IoError, ConfigError.
void add_text(nlohmann::json& sizes, const std::vector<std::string>& folders);

/// A case ready to run.
struct Work {
  std::function<void()> run;
  double items = 0;                                 // of one run
  const char* unit = "";                            // what is counted: tokens, images, calls
  double flops = 0;                                 // multiplications and additions the formulas need, of one run
  double weights = 0;                               // bytes it must read for every item; 0: the arithmetic is the limit
  int64_t parameters = 0;                           // 0: no model
  std::string text = {};                            // folder an epoch's text is from, or "generated"
  double bytes() const { return weights * items; }  // of one run
};

/// Builds a case. Throws ConfigError on sizes that do not fit.
Work build_work(const nlohmann::json& sizes);
Work build_training(const nlohmann::json& sizes);
Work build_epoch(const nlohmann::json& sizes);
Work build_decoding(const nlohmann::json& sizes);
Work build_attention(const nlohmann::json& sizes);
Work build_gemm(const nlohmann::json& sizes);

}  // namespace qkv::bench
