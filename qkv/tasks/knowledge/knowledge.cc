// The knowledge task: loss, exact match, answers, and maps of a question.
#include "qkv/tasks/knowledge/knowledge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/data/batching.h"
#include "qkv/data/generated_knowledge.h"
#include "qkv/io/json.h"
#include "qkv/ops/ops.h"
#include "qkv/tasks/hypotheses.h"
#include "qkv/tasks/knowledge/data.h"
#include "qkv/tasks/knowledge/report.h"
#include "qkv/tasks/language_model.h"

namespace qkv {
namespace {

constexpr int64_t kFixedDocuments = 256;
constexpr int64_t kLongestAnswer = 48;  // characters, so that a model that knows nothing yet does not ramble on
constexpr size_t kDecodedAtOnce = 256, kErrorsShown = 20;

class Knowledge final : public Task {
 public:
  Knowledge(const Settings& s, const std::string& assets)
      : data_(s, assets),
        model_(make_gpt(s, data_.vocabulary().size())),
        batch_(s.get_integer("batch")),
        block_(s.get_integer("block")),
        span_weight_(s.get_number("span-weight")) {}

  void visit(Visitor& see) override { model_.visit(see); }

  int64_t batches_in_epoch(int64_t) override { return (data_.examples_in_epoch() + batch_ - 1) / batch_; }
  BatchLoss train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part) override {
    std::vector<LanguageExample> all = data_.examples(epoch, batch * batch_, batch_), some;
    std::vector<int64_t> costs;
    for (const LanguageExample& e : all) costs.push_back(static_cast<int64_t>(e.input.size()));
    for (const int64_t i : balanced_part(costs, part.index, part.count)) {
      some.push_back(std::move(all[static_cast<size_t>(i)]));
    }
    return language_loss(model_, some, ctx, span_weight_);
  }
  Metrics validate() override;
  Goal goal() const override {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    return data_.pretraining() ? Goal{"loss", -kNever} : Goal{"exact_match", kNever};
  }

  Evaluation evaluate(const std::string& data) override;
  std::vector<std::vector<Prediction>> predict(std::span<const std::string> inputs,
                                               const DecodeOptions& options) override;
  bool replace_missing() override {
    missing_ = Missing::replace;
    return true;
  }
  TracedExample trace(const std::string& input) override { return trace_with(input, {}); }
  TracedExample trace_with(const std::string& input, const TraceOptions& how) override;
  std::vector<std::string> examples(int64_t n) override;
  std::vector<Section> report_sections() override;
  void save_assets(const std::string& folder) const override { data_.vocabulary().save(folder); }

 private:
  std::vector<std::vector<Hypothesis>> answers(std::span<const std::string> questions, const DecodeOptions& options,
                                               const std::vector<int64_t>& beginning = {}) const;
  /// Of questions decoded at once.
  std::vector<std::vector<Hypothesis>> answered(std::span<const std::string> questions, const DecodeOptions& options,
                                                const std::vector<int64_t>& beginning) const;
  std::vector<std::string> best_answers(const std::vector<Fact>& facts) const;
  std::vector<AskedPerson> asked(const std::vector<Fact>& facts) const;
  /// What the first character of each answer is read from.
  std::vector<std::vector<float>> states(const std::vector<std::string>& names) const;
  /// Loss on the characters of the answers, and how many of these are right as a whole.
  Metrics figures(const std::vector<Fact>& facts, const std::string& file) const;

  KnowledgeData data_;
  Gpt model_;
  int64_t batch_, block_;
  double span_weight_;
  Missing missing_ = Missing::refuse;
};

std::vector<std::vector<Hypothesis>> Knowledge::answers(std::span<const std::string> questions,
                                                        const DecodeOptions& options,
                                                        const std::vector<int64_t>& beginning) const {
  const NoGrad no_grad;
  const auto batches = static_cast<int64_t>((questions.size() + kDecodedAtOnce - 1) / kDecodedAtOnce);
  std::vector<std::vector<Hypothesis>> all;
  for (auto& found : share_out<std::vector<std::vector<Hypothesis>>>(processes(), batches, [&](int64_t batch) {
         const size_t first = static_cast<size_t>(batch) * kDecodedAtOnce;
         return answered(questions.subspan(first, std::min(kDecodedAtOnce, questions.size() - first)), options,
                         beginning);
       })) {
    for (auto& hypotheses : found) all.push_back(std::move(hypotheses));
  }
  return all;
}

std::vector<std::vector<Hypothesis>> Knowledge::answered(std::span<const std::string> questions,
                                                         const DecodeOptions& options,
                                                         const std::vector<int64_t>& beginning) const {
  std::vector<std::vector<int64_t>> prompts;
  SearchOptions how{.end = CharVocabulary::kMask,
                    .first = {},
                    .beam = options.beam,
                    .n_best = options.n_best,
                    .length_penalty = options.length_penalty,
                    .max_lengths = {}};
  how.forced = beginning;
  for (const std::string& q : questions) {
    prompts.push_back(question_prompt(q, data_.vocabulary(), quoted_name(q), missing_));
    how.first.push_back(CharVocabulary::kMask);
    const int64_t room = block_ - static_cast<int64_t>(prompts.back().size()) + 1;
    if (room < 2) {
      throw ConfigError(quoted_name(q) + " has " + std::to_string(prompts.back().size() - 1) +
                        " characters, which leaves no room for an answer: the model reads " + std::to_string(block_));
    }
    how.max_lengths.push_back(options.max_length > 0 ? std::min(options.max_length, room)
                                                     : std::min(kLongestAnswer, room));
  }
  const auto decoder = model_.start(prompts);
  return search(*decoder, how);
}

std::vector<std::string> Knowledge::best_answers(const std::vector<Fact>& facts) const {
  std::vector<std::string> questions, found;
  for (const Fact& f : facts) questions.push_back(f.question);
  for (const auto& a : answers(questions, {})) found.push_back(data_.vocabulary().decode(a.front().tokens));
  return found;
}

Metrics Knowledge::figures(const std::vector<Fact>& facts, const std::string& file) const {
  const MeanLoss loss = mean_loss(model_, data_.question_examples(facts, file, missing_), processes());
  const Matches matches = count_matches(best_answers(facts), facts);
  return {{"loss", loss.mean()}, {"exact_match", matches.percent() / 100}};
}

Metrics Knowledge::validate() {
  const KnowledgeCorpus& c = data_.corpus();
  // Without a held-out slice, what is left to watch is how well the training pairs are known.
  const Metrics asked = figures(c.held.empty() ? c.train : c.held, c.train_file);
  if (!data_.pretraining()) return asked;
  const MeanLoss reading = mean_loss(model_, data_.fixed_examples(kFixedDocuments), processes());
  return {{"loss", reading.mean()}, {"answer_loss", asked[0].second}, {"exact_match", asked[1].second}};
}

Evaluation Knowledge::evaluate(const std::string& data) {
  const std::string file = data.empty() ? data_.corpus().dev_file : data;
  const std::vector<Fact> facts = data.empty() ? data_.corpus().dev : read_facts(data);
  if (missing_ == Missing::refuse) {
    std::vector<std::string> texts;
    for (const Fact& f : facts) texts.push_back(f.question + f.place);
    data_.vocabulary().require(texts, file);
  }
  Evaluation result;
  result.metrics = figures(facts, file);
  const std::vector<std::string> found = best_answers(facts);
  for (size_t i = 0; i < facts.size() && result.errors.size() < kErrorsShown; ++i) {
    if (found[i] != facts[i].place) result.errors.push_back({facts[i].question, facts[i].place, found[i]});
  }
  const Matches right = count_matches(found, facts);
  result.notes.push_back(std::to_string(right.correct) + " of " + std::to_string(right.total) + " answers are right");
  return result;
}

std::vector<std::vector<Prediction>> Knowledge::predict(std::span<const std::string> inputs,
                                                        const DecodeOptions& options) {
  std::vector<std::string> questions;
  for (const std::string& input : inputs) {
    const std::string text = input.substr(0, input.find('\t'));
    if (text.empty()) throw ConfigError("an empty line; expected a question or a name");
    questions.push_back(as_question(text));
  }
  std::vector<std::vector<Prediction>> all;
  for (const auto& found : answers(questions, options)) {
    all.emplace_back();
    for (const Hypothesis& h : found) {
      all.back().push_back({data_.vocabulary().decode(h.tokens), h.log_probability, {}});
    }
  }
  return all;
}

TracedExample Knowledge::trace_with(const std::string& input, const TraceOptions& how) {
  const NoGrad no_grad;
  const std::vector<std::string> question{as_question(input)};
  const Hypothesis best = answers(question, {}, how.beginning)[0].front();
  std::vector<int64_t> ids = question_prompt(question[0], data_.vocabulary(), "'" + input + "'", missing_);
  const auto first = static_cast<int64_t>(ids.size());
  ids.insert(ids.end(), best.tokens.begin(), best.tokens.end());
  if (static_cast<int64_t>(ids.size()) > block_) ids.pop_back();
  TracedExample example =
      trace_reading(model_, ids, [this](int64_t id) { return data_.vocabulary().decode(std::vector<int64_t>{id}); });
  example.output = data_.vocabulary().decode(best.tokens);
  example.written = best.tokens;
  example.first_written = first;
  return example;
}

std::vector<std::string> Knowledge::examples(int64_t n) {
  const std::vector<Fact>& dev = data_.corpus().dev;
  std::vector<std::string> found;
  for (size_t i = 0; i < dev.size() && static_cast<int64_t>(found.size()) < n; ++i) found.push_back(dev[i].question);
  return found;
}

std::vector<AskedPerson> Knowledge::asked(const std::vector<Fact>& facts) const {
  std::vector<std::string> questions;
  for (const Fact& f : facts) questions.push_back(f.question);
  const auto found = answers(questions, {});
  std::vector<AskedPerson> people;
  for (size_t i = 0; i < facts.size(); ++i) {
    const Hypothesis& best = found[i].front();
    people.push_back({name_in_question(facts[i].question), data_.vocabulary().decode(best.tokens),
                      std::exp(best.log_probability), facts[i].place});
  }
  return people;
}

std::vector<std::vector<float>> Knowledge::states(const std::vector<std::string>& names) const {
  const NoGrad no_grad;
  std::vector<std::vector<float>> all;
  for (size_t first = 0; first < names.size(); first += kDecodedAtOnce) {
    std::vector<std::vector<int64_t>> prompts;
    std::vector<int64_t> last;
    int64_t tokens = 0;
    for (size_t i = first; i < std::min(names.size(), first + kDecodedAtOnce); ++i) {
      prompts.push_back(question_prompt(as_question(names[i]), data_.vocabulary(), "'" + names[i] + "'", missing_));
      tokens += static_cast<int64_t>(prompts.back().size());
      last.push_back(tokens - 1);
    }
    Context ctx;
    const std::vector<float> rows =
        gather_rows(model_.hidden(TokenBatch(prompts), ctx), last).to_vector();  // [prompts, C]
    const auto width = static_cast<std::ptrdiff_t>(rows.size() / prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(i) * width;
      all.emplace_back(begin, begin + width);
    }
  }
  return all;
}

std::vector<Section> Knowledge::report_sections() {
  if (data_.pretraining()) return {};
  constexpr size_t kMostTrained = 500;
  const KnowledgeCorpus& c = data_.corpus();
  const Missing before = missing_;
  missing_ = Missing::replace;  // an invented name may have letters that were never read
  PeopleReport people;
  people.trained =
      asked({c.train.begin(), c.train.begin() + static_cast<std::ptrdiff_t>(std::min(kMostTrained, c.train.size()))});
  people.asked = asked(c.dev);
  std::vector<Fact> strangers;
  for (const std::string& name : c.strangers) strangers.push_back({as_question(name), "", 0});
  people.strangers = asked(strangers);
  people.stranger_states = states(c.strangers);
  std::vector<std::string> read;
  for (const auto* facts : {&c.train, &c.held, &c.dev}) {
    for (const Fact& f : *facts) read.push_back(name_in_question(f.question));
  }
  const NearestNames nearest(read, states(read));
  std::vector<TracedExample> traced;
  for (const std::string& question : examples(2)) traced.push_back(trace(question));
  missing_ = before;
  std::vector<Section> sections{people_section(people, nearest)};
  if (!traced.empty() && !traced[0].attention.empty()) sections.push_back(question_maps(traced));
  return sections;
}

}  // namespace

Settings knowledge_settings() {
  Settings s = training_settings();
  declare_gpt(s);
  declare_knowledge_data(s);
  s.set("epochs", "40");
  s.set("batch", "16");
  s.set("lr", "0.001");
  s.set("schedule", "linear");  // facts settle as it falls: without, next to none are recalled
  s.set("weight-decay", "0.01");
  s.set("warmup", "100");
  // What was tried is in docs/RESULTS.md; --names 0 --ask 0 --span-weight 1 hides random spans only.
  s.set("names", "0.8");
  s.set("answers", "0.5");
  s.set("ask", "0.9");
  s.set("span-weight", "8");
  return s;
}

std::unique_ptr<Task> make_knowledge(const Settings& settings, const std::string& assets) {
  return std::make_unique<Knowledge>(settings, assets);
}

Evaluation knowledge_baseline(const std::string& answer, const std::string& path) {
  const std::vector<Fact> facts = path.empty() ? generate_knowledge({}).dev : read_facts(path);
  const Matches m = constant_baseline(answer, facts);
  Evaluation result;
  result.metrics = {{"exact_match", m.percent() / 100}};
  result.notes = {std::to_string(m.correct) + " of " + std::to_string(m.total) + " places are '" + answer + "'"};
  return result;
}

}  // namespace qkv
