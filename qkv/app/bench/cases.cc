// The table of cases.
#include "qkv/app/bench/cases.h"

#include <algorithm>
#include <array>

#include "qkv/base/error.h"
#include "qkv/io/json.h"

namespace qkv::bench {
namespace {

#define QKV_GPT R"("model": "gpt", "vocabulary": 256, "block": 128, "width": 256, "heads": 8, "layers": 4)"
#define QKV_TRANSFORMER \
  R"("model": "transformer", "vocabulary": 8000, "block": 128, "width": 256, "heads": 8, "layers": 3, "inner": 1024)"

constexpr BenchCase kCases[] = {
    {"train", "gpt dropout", "GPT, 4 layers of 256, 128 sequences of 128, dropout 0.1",
     "{" QKV_GPT R"(, "batch": 128, "length": 128, "dropout": 0.1})"},
    {"train", "gpt", "GPT, 4 layers of 256, 128 sequences of 128",
     "{" QKV_GPT R"(, "batch": 128, "length": 128, "dropout": 0.0})"},
    {"train", "lstm", "LSTM that reverses, 64 strings of 20",
     R"({"model": "lstm", "vocabulary": 8, "embedding": 64, "hidden": 128, "batch": 64, "length": 20})"},
    {"train", "gru", "GRU with attention before each step, 128 sentences of 15",
     R"({"model": "gru", "source": 8000, "target": 6000, "embedding": 256, "hidden": 512, "batch": 128, "length": 15})"},
    {"train", "transformer dropout", "Transformer, 3+3 layers of 256, 128 sentences of 20, dropout 0.1",
     "{" QKV_TRANSFORMER R"(, "batch": 128, "length": 20, "dropout": 0.1})"},
    {"train", "transformer", "Transformer, 3+3 layers of 256, 128 sentences of 20",
     "{" QKV_TRANSFORMER R"(, "batch": 128, "length": 20, "dropout": 0.0})"},
    {"train", "vit", "ViT, 6 layers of 128, 128 images of 50 tokens",
     R"({"model": "vit", "patch": 4, "width": 128, "heads": 4, "layers": 6, "classes": 10, "batch": 128})"},
    {"epoch", "translation", "Transformer, dropout 0.1: every eighth batch of 128 sentence pairs, sorted by length",
     "{" QKV_TRANSFORMER R"(, "batch": 128, "dropout": 0.1, "every": 8, "texts": 20000})"},
    {"epoch", "reading", "GPT, dropout 0.1: every fourth batch of 128 documents with a hidden span",
     "{" QKV_GPT R"(, "batch": 128, "dropout": 0.1, "every": 4, "texts": 1000})"},
    {"decode", "gpt", "GPT writes 100 characters after 10, one sequence",
     "{" QKV_GPT R"(, "length": 10, "steps": 100, "dropout": 0.0})"},
    {"decode", "transformer", "Transformer translates 20 tokens into 20, one sentence",
     "{" QKV_TRANSFORMER R"(, "length": 20, "steps": 20, "dropout": 0.0})"},
#define QKV_ATTENTION(name, B, L, D, causal, backward)                                            \
  {                                                                                               \
    "attention", name, "batch " #B ", 8 heads of " #D ", length " #L,                             \
        "{\"batch\": " #B ", \"heads\": 8, \"queries\": " #L ", \"keys\": " #L ", \"width\": " #D \
        ", \"causal\": " #causal ", \"backward\": " #backward "}"                                 \
  }
    QKV_ATTENTION("forward 512", 1, 512, 64, false, false),
    QKV_ATTENTION("forward 2048 causal", 1, 2048, 64, true, false),
    QKV_ATTENTION("forward 32x128 causal", 32, 128, 32, true, false),
    QKV_ATTENTION("both 512", 1, 512, 64, false, true),
    QKV_ATTENTION("both 2048 causal", 1, 2048, 64, true, true),
    QKV_ATTENTION("both 32x128 causal", 32, 128, 32, true, true),
#undef QKV_ATTENTION
#define QKV_GEMM(M, K, N, layout)                                                    \
  {                                                                                  \
    "gemm", #M "," #K "," #N " " #layout, "[" #M "," #K "]·[" #K "," #N "]",         \
        "{\"M\": " #M ", \"K\": " #K ", \"N\": " #N ", \"layout\": \"" #layout "\"}" \
  }
    QKV_GEMM(512, 512, 512, NN),
    QKV_GEMM(2048, 2048, 2048, NN),
    QKV_GEMM(16384, 256, 1024, NT),
    QKV_GEMM(16384, 1024, 256, NT),
    QKV_GEMM(16384, 1024, 256, NN),
    QKV_GEMM(256, 16384, 1024, TN),
    QKV_GEMM(2560, 256, 8000, NT),
    QKV_GEMM(128, 512, 1536, NT),
    QKV_GEMM(64, 128, 512, NT),
    QKV_GEMM(1, 256, 1024, NT),
#undef QKV_GEMM
};
#undef QKV_GPT
#undef QKV_TRANSFORMER

}  // namespace

std::span<const BenchCase> case_table() { return kCases; }

nlohmann::json sizes_of(const BenchCase& c, bool quick) {
  nlohmann::json sizes = parse_json(c.sizes, {.where = c.name});
  sizes["kind"] = c.kind;
  if (!quick) return sizes;
  static constexpr std::array<std::pair<const char*, int64_t>, 14> kMost{{{"batch", 2},
                                                                          {"length", 6},
                                                                          {"steps", 3},
                                                                          {"queries", 32},
                                                                          {"keys", 32},
                                                                          {"vocabulary", 64},
                                                                          {"source", 64},
                                                                          {"target", 64},
                                                                          {"M", 64},
                                                                          {"K", 64},
                                                                          {"N", 64},
                                                                          {"layers", 1},
                                                                          {"hidden", 32},
                                                                          {"texts", 64}}};
  for (const auto& [name, most] : kMost) {
    if (sizes.contains(name)) sizes[name] = std::min<int64_t>(most, sizes[name]);
  }
  return sizes;
}

Work build_work(const nlohmann::json& sizes) {
  const std::string kind = sizes.at("kind");
  if (kind == "train") return build_training(sizes);
  if (kind == "epoch") return build_epoch(sizes);
  if (kind == "decode") return build_decoding(sizes);
  if (kind == "attention") return build_attention(sizes);
  if (kind == "gemm") return build_gemm(sizes);
  throw ConfigError("[bench] unknown kind of case '" + kind + "'");
}

}  // namespace qkv::bench
