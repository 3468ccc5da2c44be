// Starting, watching and stopping training processes.
#include "qkv/serve/training_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <future>
#include <thread>

#include "qkv/base/error.h"
#include "qkv/routes/router.h"
#include "qkv/tasks/task.h"

namespace qkv::serve {
namespace {

namespace fs = std::filesystem;
using routes::RouteError;

// The last line of what it said, without the program's name.
std::string last_line(std::FILE* file) {
  std::array<char, 4096> bytes{};
  const int fd = ::fileno(file);
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(bytes.size()));
  const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), from);
  std::string text(bytes.data(), static_cast<size_t>(std::max<ssize_t>(n, 0)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  constexpr std::string_view kPrefix = "qkv: ";
  if (text.rfind(kPrefix, 0) == 0) text.erase(0, kPrefix.size());
  return text;
}

std::vector<std::string> command_of(const routes::TrainingOrder& order, const std::string& folder) {
  std::vector<std::string> words{"qkv", "train", order.task, "--out=" + folder};
  const Settings declared = find_task(order.task).settings();
  for (const auto& [name, value] : order.settings) {
    const auto s = std::find_if(declared.all().begin(), declared.all().end(),
                                [&named = name](const Setting& d) { return d.name == named; });
    const bool flag = s != declared.all().end() && s->kind == SettingKind::flag;
    // In one word, so that no value is taken for an option.
    words.push_back(flag ? (value == "true" ? "--" : "--no-") + name : "--" + name + "=" + value);
  }
  return words;
}

std::string why_it_ended(int status, std::FILE* errors) {
  if (WIFSIGNALED(status)) return "the training was ended by signal " + std::to_string(WTERMSIG(status));
  const std::string said = last_line(errors);
  return said.empty() ? "the training ended with exit code " + std::to_string(WEXITSTATUS(status)) : said;
}

// In the child, between fork and exec: nothing but system calls.
[[noreturn]] void become(const char* program, char* const* argv, int errors, pid_t parent) {
  // The server blocks signals for its own thread, and whoever started it may have had some ignored: not so here.
  for (int s = 1; s < NSIG; ++s) ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();  // Ctrl-C in the server's terminal is the server's affair
  // A server that was killed leaves nothing training on.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);  // the page reads the run's metrics
  ::dup2(errors, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, UINT_MAX, 0);
  ::execv(program, argv);
  ::_exit(127);
}

}  // namespace

TrainingProcesses::TrainingProcesses(std::string root, std::string program, std::vector<std::string> options)
    : root_(std::move(root)), program_(std::move(program)), options_(std::move(options)) {}

TrainingProcesses::~TrainingProcesses() { stop_all(std::chrono::seconds(2)); }

pid_t TrainingProcesses::spawn(const std::vector<std::string>& words, int errors) {
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& w : copies) argv.push_back(w.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  std::promise<pid_t> started;
  const auto start = [&] {
    const pid_t child = ::fork();
    if (child == 0) become(program_.c_str(), argv.data(), errors, parent);
    started.set_value(child);
  };
  const auto give_up = [&] { started.set_value(-1); };
  if (!launcher_.offer({start, give_up})) give_up();
  const pid_t child = started.get_future().get();
  if (child < 0) throw Error("could not start a process for the training");
  return child;
}

// The task's name, or with -2, -3, …: neither a folder nor a training that is about to make one has it.
std::string TrainingProcesses::free_id(const std::string& task) const {
  for (int n = 1;; ++n) {
    const std::string id = n == 1 ? task : task + "-" + std::to_string(n);
    std::error_code error;
    if (running_.count(id) == 0 && fs::symlink_status(fs::path(root_) / id, error).type() == fs::file_type::not_found) {
      return id;
    }
  }
}

std::string TrainingProcesses::start(const routes::TrainingOrder& order) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::seconds(5);  // reading data may take longer than one likes to wait
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    forget_finished();
    if (closed_) throw RouteError(503, "the server is stopping");
    if (running_.size() >= kMost) throw RouteError(503, "two trainings already run; wait for one, or stop it");
    id = free_id(order.task);
    std::vector<std::string> words = command_of(order, (fs::path(root_) / id).string());
    words.insert(words.end(), options_.begin(), options_.end());
    Child child;
    child.errors.reset(std::tmpfile());
    if (!child.errors) throw Error("could not start the training: no temporary file can be made");
    child.process = spawn(words, ::fileno(child.errors.get()));
    failures_.erase(id);
    running_.emplace(id, std::move(child));
  }
  while (Clock::now() < until) {
    std::error_code error;
    if (fs::exists(fs::path(root_) / id / "config.json", error)) return id;
    {
      const std::lock_guard lock(mutex_);
      forget_finished();
      if (const auto failed = failures_.find(id); failed != failures_.end()) {
        const std::string why = failed->second;
        failures_.erase(failed);
        throw RouteError(422, why);
      }
      if (running_.count(id) == 0) return id;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return id;
}

void TrainingProcesses::tell_to_stop(Child& child) {
  constexpr auto kToSave = std::chrono::seconds(5);  // a second signal ends it before it has saved
  const auto now = std::chrono::steady_clock::now();
  if (!child.told || now - *child.told >= kToSave) ::kill(child.process, SIGTERM);
  if (!child.told) child.told = now;
}

void TrainingProcesses::stop(const std::string& id) {
  const std::lock_guard lock(mutex_);
  forget_finished();
  const auto found = running_.find(id);
  if (found == running_.end()) throw RouteError(404, "no training '" + id + "' was started here", "id");
  tell_to_stop(found->second);
}

bool TrainingProcesses::is_running(const std::string& id) {
  const std::lock_guard lock(mutex_);
  forget_finished();
  return running_.count(id) > 0;
}

std::map<std::string, std::string> TrainingProcesses::failures() {
  const std::lock_guard lock(mutex_);
  forget_finished();
  return failures_;
}

void TrainingProcesses::forget_finished() {
  for (auto it = running_.begin(); it != running_.end();) {
    int status = 0;
    if (::waitpid(it->second.process, &status, WNOHANG) != it->second.process) {
      ++it;
      continue;
    }
    const bool good = (WIFEXITED(status) && WEXITSTATUS(status) == 0) || it->second.told;
    if (!good) failures_[it->first] = why_it_ended(status, it->second.errors.get());
    if (failures_.size() > kFailuresKept) failures_.erase(failures_.begin());
    it = running_.erase(it);
  }
}

void TrainingProcesses::stop_all(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [id, child] : running_) tell_to_stop(child);
  for (forget_finished(); !running_.empty() && std::chrono::steady_clock::now() < until; forget_finished()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (auto& [id, child] : running_) {
    ::kill(child.process, SIGKILL);
    ::waitpid(child.process, nullptr, 0);
  }
  running_.clear();
}

}  // namespace qkv::serve
