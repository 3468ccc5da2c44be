// Every qkv command printed in README and docs is accepted by the program's own options, and the quick ones are run.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "app/run_program.h"
#include "docs/markdown.h"

namespace qkv::testing {
namespace {

using Words = std::vector<std::string>;

// Words of a shell line up to a comment, a pipe, a redirection or the next command; quotes are taken off.
Words words_of(const std::string& line) {
  Words words;
  std::string word;
  bool open = false;  // a word has begun
  char quote = 0;
  const auto end = [&] {
    if (open) words.push_back(word);
    word.clear();
    open = false;
  };
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      open = true;
    } else if (c == ' ') {
      end();
    } else if (!open && std::string("#|<>&;").find(c) != std::string::npos) {
      return words;
    } else if (c == ';') {
      end();
      return words;
    } else {
      word += c;
      open = true;
    }
  }
  end();
  return words;
}

// A command as it was found, and where.
struct Found {
  std::string text, page;
};

// A command of the program; what ./run python is given is Python's business, and tests/python's.
bool is_command(const std::string& text) {
  if (text == "./run python" || text.starts_with("./run python ")) return false;
  if (text.starts_with("./run --with-mpi")) return false;  // ./test --all builds that
  return text == "qkv" || text == "./run" || text.starts_with("qkv ") || text.starts_with("./run ");
}

std::vector<Found> commands() {
  std::vector<Found> all;
  for (const auto& path : pages()) {
    const Page page = read_page(path);
    const auto add = [&](std::string text) {
      // Of what a launcher starts, the command.
      const size_t at = text.starts_with("mpirun ") || text.starts_with("srun ") ? text.find("qkv ") : 0;
      if (at != std::string::npos) text.erase(0, at);
      if (is_command(text)) all.push_back({text, path.filename().string()});
    };
    for (const std::string& span : page.spans) add(span);
    for (const Page::Block& block : page.blocks) {
      if (block.language != "sh") continue;
      std::string whole;
      for (const std::string& line : block.lines) {
        const bool goes_on = line.ends_with("\\");
        whole += line.substr(std::min(line.find_first_not_of(' '), line.size()), std::string::npos);
        if (goes_on) {
          whole.back() = ' ';
          continue;
        }
        add(whole);
        whole.clear();
      }
    }
  }
  return all;
}

// What the pages leave to the reader, filled in.
class DocumentedCommands : public TrainedRun<DocumentedCommands> {
 public:
  static Words command(const std::string& run) {
    return {"train", "reverse", "--epochs", "1", "--train-size", "64", "--validation-size", "8", "--out", run};
  }

 protected:
  static Words filled_in(Words words) {
    const std::string study = *folder_ / "study";
    make_folders(study);
    write_file_atomic(study + "/study.json", std::string_view("{\"arguments\": [\"knowledge\"]}\n"));
    const std::map<std::string, std::string> values{{"RUN", run()},   {"STUDY", study},     {"TASK", "reverse"},
                                                    {"NAME", "copy"}, {"MECHANISM", "dot"}, {"SEED", "1"},
                                                    {"$e", "copy"},   {"COMMAND", "train"}, {"ROW", "rotary"}};
    for (std::string& word : words) {
      if (const auto value = values.find(word); value != values.end()) word = value->second;
    }
    // A bench looks for its text before anything else.
    for (size_t i = 2; i < words.size(); ++i) {
      if (words[1] == "bench" && words[i - 1] == "--data") words[i] = study;
    }
    return words;
  }
};

// Under ten seconds, and writing nothing.
bool quick(const Words& words) {
  const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (has("--help") || words == Words{"lab"}) return true;
  if (has("--out")) return false;
  return words[0] == "explain" || (words[0] == "lab" && words[1] != "all" && words[1] != "cost");
}

TEST_F(DocumentedCommands, AreAcceptedAndTheQuickOnesRun) {
  ASSERT_EQ(result_->code, 0) << result_->err;
  std::set<Words> seen;
  int ran = 0;
  for (const Found& found : commands()) {
    Words words = filled_in(words_of(found.text));
    words.erase(words.begin());
    if (words.empty() || !seen.insert(words).second) continue;
    const std::string where = found.page + ": " + found.text;
    // A name alone speaks of the command, not of a call.
    const bool named = words.size() == 1 && words[0] != "lab" && words[0] != "explain" && words[0][0] != '-';
    Words call = words;
    if (named) {
      call.emplace_back("--help");
    } else if (quick(words)) {
      ++ran;
    } else {
      call.emplace_back("--check");
    }
    const ProgramRun run = run_program(call);
    EXPECT_EQ(run.code, 0) << where << "\n" << run.err;
  }
  EXPECT_GT(seen.size(), 60u);  // else the pages were not found
  EXPECT_GT(ran, 30);
}

TEST_F(DocumentedCommands, CheckingRefusesWhatTheProgramWould) {
  expect_refused({"train", "reverse", "--epoch", "1", "--check"}, 2, "--epoch");
  expect_refused({"train", "reverse", "--attention", "dots", "--check"}, 2, "dots");
  expect_refused({"compare", "reverse", "--attention", "none,dots", "--check"}, 2, "dots");
  EXPECT_EQ(run_program({"train", "reverse", "--out", run() + "-2", "--check"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(run() + "-2"));
}

}  // namespace
}  // namespace qkv::testing
