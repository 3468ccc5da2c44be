// Epochs over text: sentence pairs sorted by length, documents with a hidden span; sequences as long as they are.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "qkv/app/bench/cases.h"
#include "qkv/app/bench/model_sizes.h"
#include "qkv/data/generated_knowledge.h"
#include "qkv/data/generated_translation.h"
#include "qkv/data/knowledge.h"
#include "qkv/data/tokenizer.h"
#include "qkv/tasks/language_model.h"

namespace qkv::bench {
namespace {

using Ids = std::vector<int64_t>;
// Source and target (with its begin and end marks), or input and target of a language model.
using Sequences = std::pair<Ids, Ids>;

constexpr const char* kDocuments = "wiki.txt";

// The folder among `folders` that has documents, or the first that has none; "" when there is no such folder.
std::string folder_with(const std::vector<std::string>& folders, bool documents) {
  for (const std::string& folder : folders) {
    if (std::filesystem::exists(std::filesystem::path(folder) / kDocuments) == documents) return folder;
  }
  return "";
}

std::vector<Sequences> sentence_pairs(const nlohmann::json& sizes, const std::string& folder) {
  const int64_t vocabulary = sizes.at("vocabulary"), longest = sizes.at("block");
  const ParallelSet text = folder.empty()
                               ? generate_parallel_corpus({.train = sizes.at("texts"), .val = 1, .test = 1}).train
                               : read_parallel_folder(folder, {}).train;
  TokenizerOptions how;
  // A vocabulary of a hundred has no room for the pieces that SentencePiece begins with.
  how.kind = vocabulary < 500 ? "word" : "unigram";
  how.vocabulary = vocabulary;
  const TokenizerPair tokenizers = train_tokenizers(text.source, text.target, false, how);
  const RaggedIds source = encode_lines(*tokenizers.source, text.source);
  const RaggedIds target = encode_lines(*tokenizers.target, text.target, {.begin = true, .end = true});
  std::vector<Sequences> pairs;
  for (int64_t i = 0; i < source.size(); ++i) {
    if (source.length(i) > longest || target.length(i) > longest) continue;
    pairs.emplace_back(Ids(source[i].begin(), source[i].end()), Ids(target[i].begin(), target[i].end()));
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Sequences& a, const Sequences& b) {
    return std::pair(a.first.size(), a.second.size()) < std::pair(b.first.size(), b.second.size());
  });
  return pairs;
}

Documents invented_documents(int64_t people) {
  std::vector<std::string> lines = generate_knowledge({.people = people}).documents;
  const std::string all = std::accumulate(lines.begin(), lines.end(), std::string());
  return {.lines = std::move(lines), .vocabulary = CharVocabulary::of_text(all)};
}

std::vector<Sequences> documents(nlohmann::json& sizes, const std::string& folder) {
  const Documents text = folder.empty() ? invented_documents(sizes.at("texts"))
                                        : read_documents((std::filesystem::path(folder) / kDocuments).string());
  sizes["vocabulary"] = std::max(sizes.at("vocabulary").get<int64_t>(), text.vocabulary.size());
  const SpanOptions how{.block = sizes.at("block")};
  Rng rng(1);
  std::vector<Sequences> examples;
  for (const std::string& line : text.lines) {
    LanguageExample e = language_example(corrupt_span(text.vocabulary.encode(line, kDocuments), how, rng));
    examples.emplace_back(std::move(e.input), std::move(e.target));
  }
  return examples;
}

Training translation_epoch(const nlohmann::json& sizes, const std::vector<std::vector<Sequences>>& batches, Rng& rng) {
  const TransformerConfig c = transformer_config(sizes);
  auto model = std::make_shared<Transformer>(c, rng);
  Training epoch{.parameters = parameters(*model)};
  const auto C = static_cast<double>(c.width), inner = static_cast<double>(c.inner);
  const auto layers = static_cast<double>(c.encoder_layers), V = static_cast<double>(c.target_vocabulary);
  for (const auto& batch : batches) {
    std::vector<Ids> source, input;
    Ids target;
    for (const auto& [from, to] : batch) {
      source.push_back(from);
      input.emplace_back(to.begin(), to.end() - 1);
      target.insert(target.end(), to.begin() + 1, to.end());
      const auto S = static_cast<double>(from.size()), T = static_cast<double>(to.size() - 1);
      epoch.tokens += S + T;
      epoch.flops += layers * (S * layer_flops(C, inner, S) + T * layer_flops(C, inner, (T + 1) / 2) +
                               4 * C * C * (S + T) + 4 * S * T * C) +
                     2 * C * V * T;
    }
    epoch.losses.emplace_back([model, from = TokenBatch(source), to = TokenBatch(input), target](Context& ctx) {
      return cross_entropy(model->forward(from, to, ctx), target);
    });
  }
  return epoch;
}

Training reading_epoch(const nlohmann::json& sizes, const std::vector<std::vector<Sequences>>& batches, Rng& rng) {
  const GptConfig c = gpt_config(sizes);
  auto model = std::make_shared<Gpt>(c, rng);
  Training epoch{.parameters = parameters(*model)};
  const auto C = static_cast<double>(c.width), layers = static_cast<double>(c.layers);
  for (const auto& batch : batches) {
    std::vector<LanguageExample> examples;
    for (const auto& [input, target] : batch) {
      examples.push_back({input, target});
      const auto L = static_cast<double>(input.size());
      epoch.tokens += L;
      epoch.flops += L * (layers * layer_flops(C, 4 * C, (L + 1) / 2) + 2 * C * static_cast<double>(c.vocabulary));
    }
    epoch.losses.emplace_back([model, examples](Context& ctx) { return language_loss(*model, examples, ctx).loss; });
  }
  return epoch;
}

}  // namespace

void add_text(nlohmann::json& sizes, const std::vector<std::string>& folders) {
  const bool reading = sizes.at("model") == "gpt";
  const std::string folder = folder_with(folders, reading);
  const std::vector<Sequences> all = reading ? documents(sizes, folder) : sentence_pairs(sizes, folder);
  const size_t batch = sizes.at("batch"), every = sizes.at("every");
  sizes["text"] = folder.empty() ? "generated" : folder;
  sizes["batches"] = nlohmann::json::array();
  for (size_t b = every / 2; b * batch < all.size(); b += every) {
    const size_t end = std::min(all.size(), (b + 1) * batch);
    sizes["batches"].push_back(
        std::vector<Sequences>(all.begin() + static_cast<int64_t>(b * batch), all.begin() + static_cast<int64_t>(end)));
  }
}

Work build_epoch(const nlohmann::json& sizes) {
  Rng rng(1);
  const auto batches = sizes.at("batches").get<std::vector<std::vector<Sequences>>>();
  Work work = training_work(sizes.at("model") == "gpt" ? reading_epoch(sizes, batches, rng)
                                                       : translation_epoch(sizes, batches, rng));
  work.text = sizes.at("text");
  return work;
}

}  // namespace qkv::bench
