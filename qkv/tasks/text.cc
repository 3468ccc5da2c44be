// Language modelling of a text: chunks of a token stream, bits per character, and continuing a prompt.
#include "qkv/tasks/text.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numbers>
#include <optional>

#include "qkv/base/error.h"
#include "qkv/base/utf8.h"
#include "qkv/core/autograd.h"
#include "qkv/data/batching.h"
#include "qkv/data/chunks.h"
#include "qkv/data/generated_translation.h"
#include "qkv/data/plain_text.h"
#include "qkv/data/text_file.h"
#include "qkv/data/token_stream.h"
#include "qkv/data/tokenizer.h"
#include "qkv/tasks/language_model.h"

namespace qkv {
namespace {

constexpr const char* kTokenizerName = "text";
constexpr const char* kOwnText = "data.txt";  // the copy that a run carries
constexpr int64_t kUsualLength = 200;         // tokens written when no length is asked for
constexpr size_t kPromptCharacters = 40;

std::string text_of(const Tokenizer& tokenizer, std::span<const int64_t> ids) {
  std::string text;
  for (size_t first = 0; first <= ids.size();) {
    size_t end = first;
    while (end < ids.size() && ids[end] != kEndId) ++end;
    text += tokenizer.decode(ids.subspan(first, end - first));
    if (end < ids.size()) text += '\n';
    first = end + 1;
  }
  return text;
}

LanguageExample example_of(const TokenStream& stream, Chunk chunk) {
  const std::vector<int64_t> ids = stream.read(chunk.begin, chunk.end + 1);
  return {{ids.begin(), ids.end() - 1}, {ids.begin() + 1, ids.end()}};
}

std::string generated_text(const Settings& s) {
  std::string text;
  const ParallelCorpus corpus = generate_parallel_corpus(
      {.seed = static_cast<uint64_t>(s.get_integer("seed")), .train = s.get_integer("generated-size")});
  for (const std::string& line : corpus.train.target) (text += line) += '\n';
  return text;
}

class Text final : public Task {
 public:
  Text(const Settings& s, const std::string& assets)
      : settings_(s),
        seed_(static_cast<uint64_t>(s.get_integer("seed"))),
        batch_(s.get_integer("batch")),
        block_(s.get_integer("block")),
        path_(s.get_text("data")) {
    if (const std::string own = assets + "/" + kOwnText; !assets.empty() && std::filesystem::exists(own)) path_ = own;
    if (!assets.empty()) {
      tokenizer_ = load_tokenizer(assets, kTokenizerName);
    } else {
      const Data& own = data();
      tokenizer_ =
          train_tokenizer(*own.text, own.split.train,
                          {.kind = s.get_text("tokenizer"), .vocabulary = s.get_integer("vocabulary"), .min_count = 1});
    }
    model_.emplace(make_gpt(s, tokenizer_->size()));
  }

  void visit(Visitor& see) override { model_->visit(see); }
  void prepare() override {
    train_stream();
    validation_stream();
  }
  int64_t batches_in_epoch(int64_t epoch) override {
    return (Chunks(train_stream().size(), block_, seed_, epoch).size() + batch_ - 1) / batch_;
  }
  BatchLoss train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part) override {
    plan(epoch);
    std::vector<Chunk> all;
    for (int64_t i = batch * batch_; i < std::min((batch + 1) * batch_, chunks_->size()); ++i) {
      all.push_back((*chunks_)[i]);
    }
    std::vector<int64_t> costs;
    for (const Chunk& c : all) costs.push_back(c.end - c.begin);
    std::vector<LanguageExample> some;
    for (const int64_t i : balanced_part(costs, part.index, part.count)) {
      some.push_back(example_of(train_stream(), all[static_cast<size_t>(i)]));
    }
    return language_loss(*model_, some, ctx);
  }
  Metrics validate() override { return figures(validation_stream(), data().split.validation.size()); }
  Goal goal() const override { return {"loss", -std::numeric_limits<double>::infinity()}; }

  Evaluation evaluate(const std::string& data) override;
  std::vector<std::vector<Prediction>> predict(std::span<const std::string> inputs,
                                               const DecodeOptions& options) override;
  bool samples() const override { return true; }
  TracedExample trace(const std::string& input) override { return trace_with(input, {}); }
  TracedExample trace_with(const std::string& input, const TraceOptions& how) override;
  std::vector<std::string> examples(int64_t n) override;
  void save_assets(const std::string& folder) const override {
    tokenizer_->save(folder, kTokenizerName);
    if (!settings_.get_flag("carry") || path_.empty()) return;
    (data_ ? data_->text : PlainText::read(path_))->copy_to(folder + "/" + kOwnText);
  }

 private:
  struct Data {
    std::shared_ptr<const PlainText> text = {};
    TextSplit split = {};
  };
  const Data& data();
  std::shared_ptr<const TokenStream> stream_of(const Data& data, TextPart part, const char* name) const;
  const TokenStream& train_stream();
  const TokenStream& validation_stream();
  void plan(int64_t epoch);
  Metrics figures(const TokenStream& stream, int64_t characters) const;
  std::vector<int64_t> prompt_of(const std::string& input) const;
  struct Written {
    std::vector<int64_t> all = {};  // the prompt and what came after it
    double log_probability = 0;     // of what came after it
    size_t window = 0;              // where the tokens begin that the last one was chosen by
  };
  /// Writes `tokens` tokens after the prompt, the first ones as told.
  Written written(const std::vector<int64_t>& prompt, int64_t tokens, const SampleOptions& how,
                  const std::vector<int64_t>& beginning = {}) const;

  Settings settings_;
  uint64_t seed_;
  int64_t batch_, block_;
  std::string path_;  // of the text, or of the copy of it that the run carries
  std::optional<Data> data_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<Gpt> model_;
  std::shared_ptr<const TokenStream> train_stream_, validation_stream_;
  int64_t planned_epoch_ = -1;
  std::optional<Chunks> chunks_;
};

const Text::Data& Text::data() {
  if (!data_) {
    auto text = path_.empty() ? PlainText::of(generated_text(settings_), "the generated text") : PlainText::read(path_);
    const TextSplit split = text->split(settings_.get_number("val-share"));
    data_ = Data{std::move(text), split};
  }
  return *data_;
}

std::shared_ptr<const TokenStream> Text::stream_of(const Data& data, TextPart part, const char* name) const {
  return token_stream(data.text, part, tokenizer_, {.name = name, .folder = settings_.get_text("tokens")});
}

const TokenStream& Text::train_stream() {
  if (!train_stream_) train_stream_ = stream_of(data(), data().split.train, "train");
  return *train_stream_;
}

const TokenStream& Text::validation_stream() {
  if (!validation_stream_) validation_stream_ = stream_of(data(), data().split.validation, "validation");
  return *validation_stream_;
}

void Text::plan(int64_t epoch) {
  if (planned_epoch_ == epoch) return;
  chunks_.reset();  // before the next order takes its memory
  chunks_.emplace(train_stream().size(), block_, seed_, epoch);
  chunks_->shuffle(seed_, epoch);
  planned_epoch_ = epoch;
}

Metrics Text::figures(const TokenStream& stream, int64_t characters) const {
  const Chunks chunks(stream.size(), block_);
  const MeanLoss loss = mean_loss(
      *model_, chunks.size(), [&](int64_t i) { return chunks[i].end - chunks[i].begin; },
      [&](int64_t first, int64_t last) {
        std::vector<LanguageExample> some;
        for (int64_t i = first; i < last; ++i) some.push_back(example_of(stream, chunks[i]));
        return some;
      },
      processes());
  return {
      {"loss", loss.mean()},
      {"perplexity", std::exp(loss.mean())},
      {"bits_per_character", loss.nats / std::numbers::ln2 / static_cast<double>(std::max<int64_t>(characters, 1))}};
}

Evaluation Text::evaluate(const std::string& data) {
  constexpr int64_t kCounted = 1 << 20;
  Evaluation result;
  if (data.empty()) {
    result.metrics = validate();
    return result;
  }
  const Data other{PlainText::read(data), {}};
  const auto stream = stream_of(other, other.text->all(), "all");
  const int64_t n = stream->size();
  if (n < 2) throw IoError(data + ": too little text to predict anything");
  int64_t unknown = 0;
  for (int64_t at = 0; at < n; at += kCounted) {
    const std::vector<int64_t> ids = stream->read(at, std::min(at + kCounted, n));
    unknown += std::count(ids.begin(), ids.end(), kUnknownId);
  }
  const bool open = other.text->characters({other.text->all().end - 1, other.text->all().end}) != "\n";
  result.metrics = figures(*stream, other.text->all().size() + (open ? 1 : 0));  // every line has its end
  if (unknown > 0) {
    result.notes.push_back(std::to_string(unknown) + " of " + std::to_string(n) +
                           " tokens are not in the vocabulary; each is counted as the unknown one");
  }
  return result;
}

std::vector<int64_t> Text::prompt_of(const std::string& input) const {
  // A line's beginning comes after the end of the one before.
  std::vector<int64_t> prompt{kEndId};
  const std::vector<int64_t> ids = tokenizer_->encode(input);
  prompt.insert(prompt.end(), ids.begin(), ids.end());
  return prompt;
}

Text::Written Text::written(const std::vector<int64_t>& prompt, int64_t tokens, const SampleOptions& how,
                            const std::vector<int64_t>& beginning) const {
  const NoGrad no_grad;
  Rng rng(how.seed);
  Written out{.all = prompt};
  std::unique_ptr<StepDecoder> decoder;
  int64_t read = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    if (decoder == nullptr || read == block_) {
      // A full window: continue from its last three quarters.
      const auto whole = static_cast<size_t>(block_);
      const size_t keep = out.all.size() < whole ? out.all.size() : std::max<size_t>(whole * 3 / 4, 1);
      out.window = out.all.size() - keep;
      const std::vector<std::vector<int64_t>> last{
          {out.all.begin() + static_cast<std::ptrdiff_t>(out.window), out.all.end()}};
      decoder = model_->start(last);
      read = static_cast<int64_t>(keep) - 1;
    }
    const Tensor scores = decoder->step(std::vector<int64_t>{out.all.back()});  // [1, V]
    ++read;
    const std::vector<float> row = scores.to_vector();
    const int64_t drawn = sample_token(row, how, rng);  // one draw per token, whether it is taken or not
    const bool told = static_cast<size_t>(i) < beginning.size();
    const int64_t token = told ? beginning[static_cast<size_t>(i)] : drawn;
    out.all.push_back(token);
    const double highest = *std::max_element(row.begin(), row.end());
    double total = 0;
    for (const float z : row) total += std::exp(z - highest);
    out.log_probability += row[static_cast<size_t>(token)] - highest - std::log(total);
  }
  return out;
}

std::vector<std::vector<Prediction>> Text::predict(std::span<const std::string> inputs, const DecodeOptions& options) {
  if (options.beam > 1) throw ConfigError("task 'text' draws its tokens and has no beam; leave --beam out");
  const int64_t tokens = options.max_length > 0 ? options.max_length : kUsualLength;
  const SampleOptions how = options.sample.value_or(SampleOptions{});
  std::vector<std::vector<Prediction>> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t> prompt = prompt_of(inputs[i]);
    // Every input has its own stream, so that an answer does not depend on what else is asked.
    const Written found = written(prompt, tokens, how);
    const std::string before = text_of(*tokenizer_, std::span(prompt).subspan(1));
    const std::string text = text_of(*tokenizer_, std::span(found.all).subspan(1));
    all.push_back({{text.starts_with(before) ? text.substr(before.size()) : text, found.log_probability, {}}});
  }
  return all;
}

TracedExample Text::trace_with(const std::string& input, const TraceOptions& how) {
  const NoGrad no_grad;
  constexpr int64_t kShown = 24;
  for (const int64_t id : how.beginning) {
    if (id < 0 || id >= tokenizer_->size()) throw ConfigError("there is no token " + std::to_string(id));
  }
  const std::vector<int64_t> prompt = prompt_of(input);
  const auto told = static_cast<int64_t>(how.beginning.size());
  const int64_t tokens = std::max(how.length > 0 ? how.length : kShown, told);
  const Written found = written(prompt, tokens, how.sample.value_or(SampleOptions{.temperature = 0}), how.beginning);
  // The tokens the last one was chosen by: what is shown is what the model read.
  const auto begin = found.all.begin() + static_cast<std::ptrdiff_t>(found.window);
  const std::vector<int64_t> shown(begin, std::min(found.all.end(), begin + static_cast<std::ptrdiff_t>(block_)));
  TracedExample example =
      trace_reading(*model_, shown, [this](int64_t id) { return id == kEndId ? "↵" : tokenizer_->piece(id); });
  example.written.assign(found.all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), found.all.end());
  example.first_written = static_cast<int64_t>(prompt.size()) - static_cast<int64_t>(found.window);
  example.output = text_of(*tokenizer_, example.written);
  if (found.window > 0) {
    example.notice = "The model reads at most " + std::to_string(block_) + " tokens at a time. Of the " +
                     std::to_string(found.all.size()) + " tokens of input and output, the last " +
                     std::to_string(shown.size()) + " are shown; the " + std::to_string(found.window) +
                     " before them no longer count.";
  }
  return example;
}

std::vector<std::string> Text::examples(int64_t n) {
  constexpr int64_t kLookedAt = 1 << 20;  // characters
  const TextPart part = data().split.validation;
  std::vector<std::string> found;
  for (const std::string& line :
       split_lines(data().text->characters({part.begin, std::min(part.end, part.begin + kLookedAt)}))) {
    if (static_cast<int64_t>(found.size()) >= n) break;
    const std::vector<std::string_view> characters = utf8_characters(line);
    if (characters.size() < 2) continue;
    std::string start;
    for (size_t i = 0; i < std::min(kPromptCharacters, characters.size() / 2); ++i) start += characters[i];
    found.push_back(start);
  }
  return found;
}

}  // namespace

Settings text_settings() {
  Settings s = training_settings();
  declare_gpt(s);
  s.group("data")
      .path("data", "", "a text file, plain or gzip, UTF-8; empty: generated sentences")
      .flag("carry", false, "keep a copy of the text in the run, so that it continues elsewhere")
      .choice("tokenizer", "char", tokenizer_kinds(), "tokenizer")
      .integer("vocabulary", 8000, "tokens at most", 16, 1e6)
      .path("tokens", "", "folder for the tokens of a text too large for memory [beside the text]")
      .number("val-share", 0.1, "fraction of the text, at its end, kept for validation", 0.001, 0.9)
      .integer("generated-size", 5000, "sentences of the generated text", 100, 1e6)
      .open_to_clients({"tokenizer", "vocabulary", "val-share", "generated-size"});
  s.set("epochs", "5");
  s.set("batch", "32");
  s.set("lr", "0.001");
  s.set("schedule", "cosine");
  s.set("warmup", "50");
  s.set("final-lr", "0.1");
  // The generated sentences are simple: a small model learns them in a minute.
  for (const auto& [name, value] : {std::pair{"width", "128"}, {"layers", "2"}, {"heads", "4"}}) {
    s.when({"data"}, "", name, value);
  }
  return s;
}

std::unique_ptr<Task> make_text(const Settings& settings, const std::string& assets) {
  return std::make_unique<Text>(settings, assets);
}

}  // namespace qkv
