// qkv serve: the page and its API on this machine.
#include <malloc.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "qkv/app/cli.h"
#include "qkv/base/error.h"
#include "qkv/kernels/simd_target.h"
#include "qkv/routes/api.h"
#include "qkv/serve/admission.h"
#include "qkv/serve/http_server.h"
#include "qkv/serve/page.h"
#include "qkv/serve/training_processes.h"
#include "qkv/train/run_tree.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

// Signals are taken by one thread, which ends the server in an orderly way, and in three seconds in any case. All
// threads made after this object leave signals to it.
class StopOnSignal {
 public:
  StopOnSignal() {
    sigemptyset(&signals_);
    for (const int s : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals_, s);
    struct sigaction hangup {};
    ::sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);  // a blocked one would arrive in spite of nohup
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~StopOnSignal() {
    done_ = true;
    if (thread_.joinable()) {
      pthread_kill(thread_.native_handle(), SIGUSR1);
      thread_.join();
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  void watch(serve::HttpServer& server) {
    thread_ = std::thread([this, &server] {
      int which = 0;
      sigwait(&signals_, &which);
      if (done_) return;
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2900);
      server.stop();
      while (!done_) {
        // Nothing here needs saving: a request that does not end is left behind.
        if (std::chrono::steady_clock::now() > until) std::_Exit(0);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  }

 private:
  sigset_t signals_{}, before_{};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

void add_page(routes::Router& router) {
  for (const serve::PageFile& file : serve::page_files()) {
    const auto answer = [file](const routes::Request&) {
      return routes::Response{
          .type = std::string(file.type), .body = std::string(file.body), .headers = {{"Cache-Control", "no-cache"}}};
    };
    router.add("GET", file.path, answer, routes::Work::light);
  }
}

void warn_about(const routes::ModelStore& models, bool named) {
  const std::vector<routes::RunInfo> runs = models.list();
  const bool none = std::all_of(runs.begin(), runs.end(), [](const auto& run) { return !run.error.empty(); });
  if (named && none && !runs.empty()) throw IoError(runs[0].error);
  for (const routes::RunInfo& run : runs) {
    if (!run.error.empty()) std::fprintf(stderr, "qkv: %s (the others are served)\n", run.error.c_str());
  }
}

// Each under the last part of its path, which is all that clients get to know.
std::map<std::string, std::string> named_data_sets(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> named;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path whole = fs::canonical(path, error);
    if (error) throw IoError("--allow-data " + path + ": there is no such file or folder");
    if (!named.emplace(whole.filename().string(), whole.string()).second) {
      throw ConfigError("--allow-data: two data sets are called '" + whole.filename().string() + "'");
    }
  }
  return named;
}

void print_link(const serve::HttpOptions& options, int port) {
  const bool everywhere = options.host == "0.0.0.0" || options.host == "::";
  const bool v6 = options.host.find(':') != std::string::npos;
  const std::string host = everywhere ? "127.0.0.1" : v6 ? "[" + options.host + "]" : options.host;
  std::printf("qkv is at http://%s:%d/%s (Ctrl-C ends it)\n", host.c_str(), port,
              options.token.empty() ? "" : ("?token=" + options.token).c_str());
  if (!options.token.empty()) {
    std::printf(
        "Others may look, not train: whoever has this link%s. The traffic is not encrypted; "
        "'ssh -L %d:127.0.0.1:%d THIS-MACHINE' is the better way.\n",
        everywhere ? ", with this machine's address in it" : "", port, port);
  }
  std::fflush(stdout);
}

}  // namespace

int run_serve(const Arguments& arguments) {
  Cli cli{
      "The page: explore where trained models look, watch trainings, play with the lab.\n\n"
      "  qkv serve                    every run below runs/\n"
      "  qkv serve runs/reverse       one run",
      "serve"};
  std::vector<std::string> paths, data;
  std::string root = "runs";
  serve::HttpOptions options;
  cli.texts("RUN", paths, "DIR", "run folders to show; without any, all below --root");
  cli.text("--root", root, "DIR", "where runs are looked for and new trainings are written [runs]");
  cli.integer("--port", options.port, "port; 0 takes any free one [8417]", 0, 65535);
  cli.text("--host", options.host, "ADDRESS",
           "address to listen on; with anything but loopback others on the network may look, not train, if they have "
           "the link with its token [127.0.0.1]");
  cli.texts("--allow-data", data, "DIR",
            "a data set that trainings started from the page may use, and that others may see; may be repeated");
  if (!cli.parse(arguments)) return 0;
  if (std::error_code error; cli.given("--root") && !fs::exists(root, error)) {
    std::fprintf(stderr, "qkv: --root %s: there is no such folder; the first training makes it\n", root.c_str());
  }
  require_readable(root);
  // A server that was asked for much gives the memory back.
  mallopt(M_MMAP_MAX, 1 << 16);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_ARENA_MAX, 1);  // where memory is limited, none of it lies reserved for one of the threads
  const std::map<std::string, std::string> data_sets = named_data_sets(data);
  const bool loopback = serve::is_loopback(options.host);
  if (!loopback) options.token = serve::random_token();

  StopOnSignal stop;
  routes::ModelStore models(paths, root);
  if (!loopback) models.show_to_others(data_sets);
  warn_about(models, !paths.empty());
  routes::TraceStore traces(models);
  serve::TrainingProcesses trainings(root, "/proc/self/exe", {"--target=" + kernels::simd_target()});
  routes::Router router;
  add_page(router);
  routes::add_api(router, {models, traces, trainings, data_sets, !loopback});
  serve::HttpServer server(options, router);
  const int port = server.bind();
  stop.watch(server);
  print_link(options, port);
  server.run();
  trainings.stop_all(std::chrono::milliseconds(2600));
  return 0;
}

}  // namespace qkv::app
