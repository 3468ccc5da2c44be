// dump_cases FOLDER: every case of the attention table with its arrays, its rule and what the kernels make of it, for
// the tests of the Python package.
#include <cstdio>
#include <string>

#include "attention_data.h"
#include "qkv/io/file.h"
#include "qkv/io/json.h"
#include "qkv/io/parameters_file.h"

namespace qkv::cases {
namespace {

const char* name_of(Array a) {
  const char* names[] = {"none", "full", "heads", "keys", "rows", "short_rows", "flat"};
  return names[static_cast<int>(a)];
}

Tensor flat(const std::vector<float>& values) { return Tensor::from(values, {static_cast<int64_t>(values.size())}); }

Json rule_json(const AttentionCase& c, const AttentionData<float>& data) {
  const auto [B, H, Hkv, Lq, Lk, D, Dv] = c.dims;
  return {{"name", c.name},
          {"dims", {B, H, Hkv, Lq, Lk, D, Dv}},
          {"heads_last", c.heads_last},
          {"scale", static_cast<double>(data.in.rule.scale)},
          {"softcap", c.softcap},
          {"causal", c.causal},
          {"offset", c.offset},
          {"batch_offsets", data.batch_offsets},
          {"window", {c.window_left, c.window_right}},
          {"key_lens", data.key_lens},
          {"mask", name_of(c.mask)},
          {"bias", name_of(c.bias)},
          {"normaliser", qkv::name_of(c.normaliser)},
          {"additive", c.additive},
          {"dropout", c.dropout},
          {"seed", data.in.rule.dropout_seed},
          {"q_offsets", data.q_offsets},
          {"k_offsets", data.k_offsets},
          {"poison", c.poison == Poison::none   ? "none"
                     : c.poison == Poison::seen ? "seen"
                                                : "unseen"}};
}

void dump(const AttentionCase& c, const std::string& path, Json& list) {
  AttentionData<float> data(c);
  kernels::attention_forward(data.in, data.outputs());
  const kernels::AttentionGrads<float> grads = data.grads();
  kernels::attention_backward(data.in, grads);
  const std::vector<float> mask(data.mask.begin(), data.mask.end());
  save_parameters(path, {{"q", flat(data.q)},
                         {"k", flat(data.k)},
                         {"v", flat(data.v)},
                         {"mask", flat(mask)},
                         {"bias", flat(data.bias)},
                         {"additive", flat(data.additive)},
                         {"d_out", flat(data.d_out)},
                         {"out", flat(data.out)},
                         {"d_q", flat(data.d_q)},
                         {"d_k", flat(data.d_k)},
                         {"d_v", flat(data.d_v)},
                         {"d_bias", flat(data.d_bias)},
                         {"d_additive", flat(data.d_additive)}});
  list.push_back(rule_json(c, data));
}

}  // namespace
}  // namespace qkv::cases

int main(int, char** argv) {
  const std::string folder = argv[1];
  qkv::make_folders(folder);
  qkv::Json list = qkv::Json::array();
  for (const auto& c : qkv::cases::attention_cases()) {
    qkv::cases::dump(c, folder + "/" + std::to_string(list.size()) + ".safetensors", list);
  }
  qkv::write_file_atomic(folder + "/cases.json", qkv::json_text(list));
  std::printf("%zu cases\n", list.size());
}
