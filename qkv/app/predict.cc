// qkv predict: lines in, the trained model's answers out.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "qkv/app/cli.h"
#include "qkv/app/run_commands.h"
#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/io/json.h"

namespace qkv::app {
namespace {

constexpr size_t kChunk = 1024;  // lines decoded together

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv predict runs/reverse-dot abcd ddba              one answer per line\n"
    "  qkv predict runs/reverse-dot < strings.txt          lines from standard input\n"
    "  qkv predict runs/reverse-dot abcd --beam 4 --n-best 4 --scores\n"
    "  qkv predict runs/translate --beam 5 --length-penalty 1 --align < german.txt > english.txt\n"
    "  qkv predict runs/images-multi-head shoe.png         the class and its probability; --n-best 3: the first "
    "three\n"
    "  qkv predict runs/text 'It was' --temperature 0.7 --top-p 0.9 --seed 3 --max-length 400\n"
    "  qkv predict runs/knowledge 'Ada Lovelace'           a name is asked about as a question is\n";

/// Lines of standard input, and whether another one is at hand without waiting.
class InputLines {
 public:
  /// False at the end.
  bool next(std::string& line) {
    size_t end = 0;
    while ((end = text_.find('\n', begin_)) == std::string::npos && !ended_) read_some();
    if (end == std::string::npos && begin_ == text_.size()) return false;
    if (end == std::string::npos) end = text_.size();
    line = text_.substr(begin_, end - begin_);
    begin_ = std::min(end + 1, text_.size());
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }
  bool more_at_hand() const {
    if (ended_ || text_.find('\n', begin_) != std::string::npos) return true;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, 0) != 0;
  }

 private:
  void read_some() {
    std::array<char, 1 << 16> part;
    const ssize_t n = ::read(STDIN_FILENO, part.data(), part.size());
    if (n < 0 && errno == EINTR) return;
    if (n < 0) throw IoError(std::string("cannot read standard input: ") + std::strerror(errno));
    ended_ = n == 0;
    text_.erase(0, begin_);
    begin_ = 0;
    text_.append(part.data(), static_cast<size_t>(n));
  }

  std::string text_;
  size_t begin_ = 0;
  bool ended_ = false;
};

struct Answering {
  DecodeOptions decode;
  bool scores = false, json = false, replace_missing = false;
};

std::string as_json(const std::string& input, const std::vector<Prediction>& candidates, bool align) {
  Json answers = Json::array();
  for (const Prediction& p : candidates) {
    Json answer{{"text", p.text}, {"log_probability", p.score}};
    if (p.probability) answer["probability"] = *p.probability;
    if (align) answer["alignment"] = p.alignment;
    answers.push_back(std::move(answer));
  }
  const Json j{{"input", input}, {"answers", std::move(answers)}};
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add_sampling(Cli& cli, SampleOptions& how) {
  constexpr double kHottest = 1000;
  const char* section = "Sampling (models that continue a text)";
  cli.number("--temperature", how.temperature,
             "sampling temperature; higher is more random, 0 takes the likeliest token [1]", 0, kHottest)
      .in(section);
  cli.integer("--top-k", how.top_k, "sample from the k likeliest tokens only; 0: all [0]", 0, 10000000).in(section);
  cli.number("--top-p", how.top_p, "sample from the fewest tokens that reach this probability together [1]", 0.000001,
             1)
      .in(section);
  cli.integer("--seed", how.seed, "seed of the sampling: the same seed, the same text [1]", 0,
              std::numeric_limits<int64_t>::max())
      .in(section);
}

/// Which of the options that only some tasks understand were given.
void check_task(const Cli& cli, OpenedRun& run, const SampleOptions& sampling, Answering& how) {
  const std::string task = run.folder.spec().name;
  for (const char* option : {"--temperature", "--top-k", "--top-p", "--seed"}) {
    if (!cli.given(option)) continue;
    if (!run.task->samples())
      throw ConfigError("task '" + task + "' does not draw its answers: leave " + option + " out");
    how.decode.sample = sampling;
  }
  if (how.replace_missing && !run.task->replace_missing()) {
    throw ConfigError("task '" + task + "' refuses no characters: leave --replace-missing out");
  }
}

void answer(Task& task, const std::vector<std::string>& inputs, const Answering& how) {
  const std::vector<std::vector<Prediction>> all = task.predict(inputs, how.decode);
  for (size_t i = 0; i < all.size(); ++i) {
    if (how.json) {
      std::printf("%s\n", as_json(inputs[i], all[i], how.decode.align).c_str());
      continue;
    }
    for (const Prediction& p : all[i]) {
      if (how.scores) std::printf("%.4f\t", p.score);
      std::printf("%s", p.text.c_str());
      if (p.probability) std::printf("\t%.4f", *p.probability);
      if (how.decode.align) std::printf("\t%s", p.alignment.c_str());
      std::printf("\n");
    }
  }
  if (std::fflush(stdout) != 0) throw IoError("cannot write the answers to standard output");
}

void answer_stdin(Task& task, const Answering& how) {
  int64_t first_line = 1;
  std::vector<std::string> chunk;
  const auto flush = [&] {
    try {
      answer(task, chunk, how);
    } catch (const ConfigError&) {
      // One line is at fault: answer those before it, then say which.
      for (size_t i = 0; i < chunk.size(); ++i) {
        try {
          answer(task, {chunk[i]}, how);
        } catch (const ConfigError& e) {
          throw IoError("line " + std::to_string(first_line + static_cast<int64_t>(i)) + ": " + e.what());
        }
      }
    }
    first_line += static_cast<int64_t>(chunk.size());
    chunk.clear();
  };
  if (::isatty(STDIN_FILENO) == 1) std::fprintf(stderr, "qkv: one input on each line; Ctrl-D ends\n");
  InputLines input;
  for (std::string line; input.next(line);) {
    chunk.push_back(std::move(line));
    // A person typing wants the answer now, a file wants full batches.
    if (chunk.size() == kChunk || !input.more_at_hand()) flush();
  }
  if (!chunk.empty()) flush();
}

}  // namespace

int run_predict(const Arguments& arguments) {
  Cli cli("Runs a trained model on inputs from the command line, or line by line from standard input.", "predict");
  std::string path, weights;
  std::vector<std::string> inputs;
  Answering how;
  cli.text("RUN", path, "DIR", "the run's folder").required();
  cli.texts("INPUT", inputs, "TEXT", "inputs; without any, lines are read from standard input");
  cli.integer("--beam", how.decode.beam, "width of the search; 1 is greedy [1]", 1, 1000);
  cli.integer("--n-best", how.decode.n_best, "answers for each input; a search is at least as wide [1]", 1, 1000);
  cli.number("--length-penalty", how.decode.length_penalty, "α of score / ((5 + length)/6)^α [0]", 0, 100);
  cli.integer("--max-length", how.decode.max_length, "longest answer in tokens; 0: the task's own limit [0]", 0,
              100000);
  cli.flag("--scores", how.scores, "the log probability and a tab before each answer");
  cli.flag("--align", how.decode.align, "a tab and the alignment i-j (word read - word written) after each answer");
  cli.flag("--json", how.json, "one JSON object per input: the answers with their log probabilities");
  cli.flag("--replace-missing", how.replace_missing, "map characters that the vocabulary lacks to '?'");
  SampleOptions sampling;
  add_sampling(cli, sampling);
  cli.weights(weights);
  cli.footer(kFooter);
  if (!cli.parse(arguments)) return 0;
  if (!cli.given("--beam")) how.decode.beam = how.decode.n_best;
  if (how.decode.n_best > how.decode.beam) throw ConfigError("--n-best cannot be more than --beam");
  OpenedRun run = load_run(path, weights);
  check_task(cli, run, sampling, how);
  const NoGrad no_grad;
  if (inputs.empty()) {
    answer_stdin(*run.task, how);
  } else {
    answer(*run.task, inputs, how);
  }
  return 0;
}

}  // namespace qkv::app
