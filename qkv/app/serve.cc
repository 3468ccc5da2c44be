// qkv serve: the page and its API on this machine.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "qkv/app/cli.h"
#include "qkv/base/error.h"
#include "qkv/serve/api.h"
#include "qkv/serve/page.h"

namespace qkv::app {
namespace {

// Signals are taken by one thread that ends the server in an orderly way.
class StopOnSignal {
 public:
  explicit StopOnSignal(serve::HttpServer& server) {
    sigemptyset(&signals_);
    for (int s : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals_, s);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    thread_ = std::thread([this, &server] {
      int which = 0;
      sigwait(&signals_, &which);
      if (!done_) server.stop();
    });
  }
  ~StopOnSignal() {
    done_ = true;
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  sigset_t signals_{}, before_{};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

void add_page(serve::HttpServer& server) {
  for (const serve::PageFile& file : serve::page_files()) {
    const auto answer = [file](const serve::HttpRequest&) {
      return serve::HttpResponse{
          .type = std::string(file.type), .body = std::string(file.body), .headers = {{"Cache-Control", "no-cache"}}};
    };
    server.get(std::string(file.path), answer, serve::Work::light);
  }
}

void warn_about(const serve::ModelStore& models) {
  for (const serve::RunInfo& run : models.list()) {
    if (!run.error.empty()) std::fprintf(stderr, "qkv: %s (the others are served)\n", run.error.c_str());
  }
}

}  // namespace

int run_serve(const Arguments& arguments) {
  CLI::App cli{
      "The page: explore where trained models look, watch trainings, play with the lab.\n\n"
      "  qkv serve                    every run below runs/\n"
      "  qkv serve runs/reverse       one run\n",
      "serve"};
  std::vector<std::string> paths;
  std::string root = "runs";
  serve::HttpOptions options;
  cli.add_option("runs", paths, "run folders to show; without any, all below --root")->type_name("RUN");
  cli.add_option("--root", root, "where runs are looked for and new trainings are written [runs]")->type_name("DIR");
  cli.add_option("--port", options.port, "port; 0 takes any free one [8417]")
      ->check(CLI::Range(0, 65535))
      ->type_name("N");
  cli.add_option("--host", options.host,
                 "address to listen on; anything but loopback lets others on the network in [127.0.0.1]")
      ->type_name("ADDRESS");
  add_threads(cli);
  if (!parse(cli, arguments)) return 0;

  serve::ModelStore models(paths, root);
  warn_about(models);
  serve::TraceStore traces(models);
  serve::Trainings trainings(root);
  serve::HttpServer server(options);
  add_page(server);
  serve::add_api(server, models, traces, trainings);
  const int port = server.bind();
  const StopOnSignal stop(server);
  std::printf("qkv is at http://%s:%d/ (Ctrl-C ends it)\n",
              options.host == "0.0.0.0" ? "127.0.0.1" : options.host.c_str(), port);
  std::fflush(stdout);
  server.run();
  return 0;
}

}  // namespace qkv::app
