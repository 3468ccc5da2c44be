// The manual page and the shell's completion say what the tables of commands, options and tasks say.
#include <regex>
#include <set>
#include <sstream>

#include "app/run_program.h"
#include "qkv/app/command.h"
#include "qkv/version.h"

namespace qkv::testing {
namespace {

using app::Arguments;
using app::Command;

std::set<std::string> lines_of(const std::string& text) {
  std::istringstream lines(text);
  std::set<std::string> all;
  for (std::string line; std::getline(lines, line);) all.insert(line);
  return all;
}

std::set<std::string> next_words(Arguments before) {
  before.insert(before.begin(), "next-words");
  const ProgramRun run = run_program(before);
  EXPECT_EQ(run.code, 0) << run.err;
  return lines_of(run.out);
}

/// The option at the start of each row of a help that the command itself declares.
std::vector<std::string> own_options(const std::string& help) {
  std::vector<std::string> names;
  const std::regex row("\n  (--[a-z0-9-]+)");
  for (std::sregex_iterator it(help.begin(), help.end(), row), end; it != end; ++it) names.push_back((*it)[1]);
  std::erase_if(names, [](const std::string& name) { return name == "--threads" || name == "--target"; });
  return names;
}

/// Every command, alone and with each of its topics.
std::vector<Arguments> all_pages() {
  std::vector<Arguments> pages;
  for (const Command& command : app::command_table()) {
    pages.push_back({command.name});
    for (const std::string& topic : command.topics == nullptr ? Arguments{} : command.topics()) {
      pages.push_back({command.name, topic});
    }
  }
  return pages;
}

TEST(Help, FitsATerminal) {
  for (Arguments words : all_pages()) {
    words.emplace_back("--help");
    expect_lines_fit(run_program(words).out);
  }
}

TEST(Manual, HasEveryOptionOfEveryCommandAndTask) {
  const std::string page = run_program({"help", "--man"}).out;
  EXPECT_EQ(page.rfind(".TH QKV 1 \"\" \"qkv " QKV_VERSION "\"", 0), 0u) << page.substr(0, 80);
  for (Arguments words : all_pages()) {
    std::string name = "qkv";
    for (const std::string& word : words) name += " " + std::regex_replace(word, std::regex("-"), "\\-");
    const std::regex title("\n\\.SS \"" + std::regex_replace(name, std::regex(R"(\\)"), R"(\\)") + "( |\")");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(page, found, title)) << name;
    const auto begin = static_cast<size_t>(found.position());
    const std::string section = page.substr(begin, page.find("\n.S", begin + 2) - begin);
    words.emplace_back("--help");
    for (const std::string& option : own_options(run_program(words).out)) {
      EXPECT_NE(section.find(".TP\n\\fB" + std::regex_replace(option, std::regex("-"), "\\-")), std::string::npos)
          << name << " " << option;
    }
  }
}

TEST(Manual, UsesNoRequestByAccidentAndDependsOnNoProcessor) {
  const std::string page = run_program({"help", "--man"}).out;
  std::istringstream lines(page);
  const std::regex request(R"(\.(TH|SH|SS|TP|PP|br|nf|fi)( .*)?)");
  for (std::string line; std::getline(lines, line);) {
    const bool asks = !line.empty() && (line[0] == '.' || line[0] == '\'');
    EXPECT_TRUE(!asks || std::regex_match(line, request)) << line;
    const std::string plain = std::regex_replace(line, std::regex(R"(\\(f[BIR]|-|e|&))"), "");
    EXPECT_EQ(plain.find('\\'), std::string::npos) << line;
  }
  EXPECT_EQ(page.find("SSE4"), std::string::npos);
}

TEST(Completion, OffersCommandsOptionsTasksAndMechanisms) {
  const std::set<std::string> first = next_words({});
  for (const Command& command : app::command_table()) EXPECT_EQ(first.count(command.name), 1u) << command.name;
  EXPECT_EQ(first.count("help"), 1u);
  EXPECT_EQ(first.count("next-words"), 0u);
  for (const Command& command : app::command_table()) {
    if (command.topics == nullptr) continue;
    const std::set<std::string> words = next_words({command.name}), helped = next_words({"help", command.name});
    for (const std::string& topic : command.topics()) {
      EXPECT_EQ(words.count(topic) + helped.count(topic), 2u) << command.name << " " << topic;
    }
  }
  for (const std::string& task : app::task_topics()) {
    const std::set<std::string> options = next_words({"train", task});
    for (const std::string& name : own_options(run_program({"train", task, "--help"}).out)) {
      EXPECT_EQ(options.count(name), 1u) << task << " " << name;
    }
  }
  const std::set<std::string> mechanisms = next_words({"train", "reverse", "--attention"});
  EXPECT_EQ(mechanisms.count("additive"), 1u);
  EXPECT_EQ(mechanisms.count("--out"), 0u);
  EXPECT_EQ(next_words({"compare", "reverse", "--attention"}), mechanisms);
  EXPECT_EQ(next_words({"train", "reverse", "--seed", "1"}).count("reverse"), 0u);
  EXPECT_EQ(next_words({"attend", "--normaliser"}).count("sparsemax"), 1u);
  EXPECT_TRUE(next_words({"map", "x", "--out"}).empty());
}

}  // namespace
}  // namespace qkv::testing
