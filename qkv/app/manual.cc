// Help and manual of the whole program, from the table of commands.
#include "qkv/app/manual.h"

#include <cstdio>

#include "qkv/app/cli.h"
#include "qkv/app/help.h"
#include "qkv/version.h"

namespace qkv::app {
namespace {

constexpr const char* kAbout = "attention, computed, trained and shown";
constexpr const char* kMainJob = "the main job: what attention adds, in about a minute";
constexpr const char* kExitCodes = "0 done, 1 failed, 2 wrong usage";
constexpr const char* kRuns =
    "Trained models are in run folders below runs/ in the current folder, unless an option says otherwise.";

Arguments topics_of(const Command& command) { return command.topics == nullptr ? Arguments{} : command.topics(); }

void print_part(const Command& command, const Arguments& words) {
  try {
    command.run(words);
  } catch (const Error&) {  // a part that was left out of this build
  }
}

}  // namespace

void print_overview() {
  std::printf("qkv: %s.\n\nusage: qkv COMMAND [OPTIONS]\n       qkv            %s\n       qkv help COMMAND\n", kAbout,
              kMainJob);
  std::string group;
  for (const Command& command : command_table()) {
    if (group != command.group) std::printf("\n%s\n", command.group);
    group = command.group;
    std::printf("  %-9s %s\n", command.name, command.summary);
  }
  std::printf(
      "\nEvery command takes --help, --threads N, --target NAME (the instruction set)\n"
      "and, at its end, --check, which only checks its options.\nExit codes: %s.\n",
      kExitCodes);
}

void print_manual() {
  std::printf(".TH QKV 1 \"\" \"qkv " QKV_VERSION
              "\" \"User Commands\"\n.SH NAME\nqkv \\- %s\n"
              ".SH SYNOPSIS\n\\fBqkv\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.br\n\\fBqkv help\\fR \\fICOMMAND\\fR\n"
              ".SH DESCRIPTION\nWithout a command, %s.\n%s\n.SH COMMANDS\n",
              kAbout, kMainJob, roff(kRuns).c_str());
  for (const Command& command : command_table()) std::fputs(roff_row(command.name, command.summary).c_str(), stdout);
  std::printf(
      ".SH COMMON OPTIONS\n%s%s%s%s", roff_row("-h, --help", "the options of a command or task, with examples").c_str(),
      roff_row("--threads N", "worker threads; no result depends on it [all cores]").c_str(),
      roff_row("--target NAME", "instruction set, as AVX2: the same one gives the same bits [the processor's best]")
          .c_str(),
      roff_row("--check", "as the last word: only checks the options").c_str());
  std::puts(".SH OPTIONS OF EACH COMMAND");
  for (const Command& command : command_table()) {
    print_part(command, {kManual});
    for (const std::string& topic : topics_of(command)) print_part(command, {topic, kManual});
  }
  std::printf(".SH EXIT STATUS\n%s; 128 and the signal's number after a training that a signal stopped.\n", kExitCodes);
}

void print_next_words(const Arguments& before) {
  const bool help = !before.empty() && before[0] == "help";
  const Arguments words(before.begin() + (help ? 1 : 0), before.end());
  for (const Command& command : command_table()) {
    if (words.empty()) {
      std::puts(command.name);
    } else if (words[0] == command.name && help) {
      for (const std::string& topic : topics_of(command)) std::puts(topic.c_str());
    } else if (words[0] == command.name) {
      Arguments rest(words.begin() + 1, words.end());
      rest.emplace_back(kNextWords);
      command.run(rest);
    }
  }
  if (before.empty()) std::puts("help\n--help\n--version");
}

}  // namespace qkv::app
