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

namespace qkv::app {
namespace {

constexpr size_t kChunk = 1024;  // lines decoded together

constexpr const char* kFooter =
    "Examples:\n"
    "  qkv predict runs/reverse-dot abcd ddba              one answer a line\n"
    "  qkv predict runs/reverse-dot < strings.txt          lines from standard input\n"
    "  qkv predict runs/reverse-dot abcd --beam 4 --n-best 4 --scores\n"
    "  qkv predict runs/translate --beam 5 --length-penalty 1 --align < german.txt > english.txt\n";

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
  bool scores = false;
};

void answer(Task& task, const std::vector<std::string>& inputs, const Answering& how) {
  for (const std::vector<Prediction>& candidates : task.predict(inputs, how.decode)) {
    for (const Prediction& p : candidates) {
      if (how.scores) std::printf("%.4f\t", p.score);
      std::printf("%s", p.text.c_str());
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
  CLI::App cli("Runs a trained model on inputs from the command line, or line by line from standard input.", "predict");
  std::string path, weights;
  std::vector<std::string> inputs;
  Answering how;
  cli.add_option("RUN", path, "the run's folder")->required();
  cli.add_option("INPUT", inputs, "inputs; without any, lines are read from standard input");
  cli.add_option("--beam", how.decode.beam, "width of the search; 1 is greedy [1]")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("K");
  cli.add_option("--n-best", how.decode.n_best, "answers for each input, at most --beam [1]")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  cli.add_option("--length-penalty", how.decode.length_penalty, "α of score / ((5 + length)/6)^α [0]")
      ->check(CLI::Range(0.0, 100.0).description(""))
      ->type_name("X");
  cli.add_option("--max-length", how.decode.max_length, "longest answer in tokens; 0: the task's own limit [0]")
      ->check(CLI::Range(0, 100000).description(""))
      ->type_name("N");
  cli.add_flag("--scores", how.scores, "the log probability and a tab before each answer");
  cli.add_flag("--align", how.decode.align, "a tab and the alignment i-j (word read - word written) after each answer");
  add_weights(cli, weights);
  add_threads(cli);
  cli.footer(kFooter);
  if (!parse(cli, arguments)) return 0;
  if (how.decode.n_best > how.decode.beam) throw ConfigError("--n-best cannot be more than --beam");
  OpenedRun run = open_run(path, weights);
  const NoGrad no_grad;
  if (inputs.empty()) {
    answer_stdin(*run.task, how);
  } else {
    answer(*run.task, inputs, how);
  }
  return 0;
}

}  // namespace qkv::app
