// The program: finds the command, runs it, and turns every error into one line and an exit code.
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>
#include <string>

#include "qkv/app/cli.h"
#include "qkv/app/command.h"
#include "qkv/app/console.h"
#include "qkv/app/errors.h"
#include "qkv/app/manual.h"
#include "qkv/base/error.h"
#include "qkv/base/names.h"
#include "qkv/io/devices.h"

namespace {

using qkv::app::Arguments;
using qkv::app::Command;

int run(const std::string& name, const Arguments& arguments) {
  if (name == "help" && !arguments.empty() && arguments[0] == "--man") {
    qkv::app::print_manual();
    return 0;
  }
  if (name == "help" && !arguments.empty()) {
    Arguments rest(arguments.begin() + 1, arguments.end());
    rest.emplace_back("--help");
    return run(arguments[0], rest);
  }
  if (name == "--help" || name == "-h" || name == "help") {
    qkv::app::print_overview();
    return 0;
  }
  if (name == "next-words") {  // asked by the shell's completion
    qkv::app::print_next_words(arguments);
    return 0;
  }
  if (name == "--version" || name == "-V" || name == "-v" || name == "version") {
    std::puts(qkv::app::version_text().c_str());
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : qkv::app::command_table()) {
    if (name == command.name) return command.run(arguments);
    names.emplace_back(command.name);
  }
  qkv::app::refuse_gpu(name);
  if (name.starts_with('-')) {
    throw qkv::ConfigError("option '" + name + "' before a command" + qkv::did_you_mean(name, {"--help", "--version"}) +
                           "; options come after it: qkv COMMAND " + name + " …; see 'qkv --help'");
  }
  const Arguments tasks = qkv::app::task_topics();
  if (std::find(tasks.begin(), tasks.end(), name) != tasks.end()) {
    throw qkv::ConfigError("'" + name + "' is a task: train a model of it with 'qkv train " + name + "'");
  }
  const std::string available = qkv::listed(names);
  names.emplace_back("help");
  throw qkv::ConfigError("unknown command '" + name + "'" + qkv::did_you_mean(name, names) +
                         "; available: " + available + "; see 'qkv --help'");
}

// Blocks that batches of other shapes left behind serve the next batch: the system is not asked to take them back and
// to hand them out again, page by page and zeroed.
void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

std::terminate_handler usual_end = nullptr;

// Memory may end where no exception can pass: before main(), and in destructors of JSON values, which allocate.
[[noreturn]] void end_without_memory() {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::bad_alloc& e) {
    qkv::app::print_error(e);
    std::_Exit(1);
  } catch (...) {
    usual_end();
  }
  std::abort();
}

// Before every other initialisation of the program.
__attribute__((constructor(101))) void set_end() { usual_end = std::set_terminate(&end_without_memory); }

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  // A file-size limit then is an error that can be reported, like a full disk, and not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  qkv::app::PreparationConsole console;
  const qkv::WatchPreparation watch(&console);
  try {
    qkv::read_only_named_devices({argv, argv + argc});
    // Without a command, the main job: what attention adds to an encoder-decoder.
    const int code =
        argc < 2 ? run("compare", {"reverse", "--attention", "none,dot"}) : run(argv[1], {argv + 2, argv + argc});
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    qkv::app::print_error("cannot write to standard output");
    return 1;
  } catch (const std::exception& e) {
    qkv::app::print_error(e);
    return qkv::app::error_code(e);
  }
}
