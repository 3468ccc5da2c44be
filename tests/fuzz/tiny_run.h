// A run small enough to be made when a fuzzer starts, and trainings that only pretend.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "qkv/routes/api.h"
#include "qkv/train/run_folder.h"
#include "qkv/train/session.h"

namespace qkv::testing {

class NoTrainings final : public routes::Trainings {
 public:
  std::string start(const routes::TrainingOrder& order) override { return order.task; }
  void stop(const std::string&) override {}
  bool is_running(const std::string&) override { return false; }
  std::map<std::string, std::string> failures() override { return {}; }
};

/// All routes over a folder with one run, "tiny".
class TinySite {
 public:
  TinySite() {
    const TaskSpec& spec = find_task("reverse");
    Settings s = spec.settings();
    for (const auto& [name, value] : {std::pair{"hidden", "4"},
                                      {"embedding", "4"},
                                      {"max-length", "4"},
                                      {"train-size", "20"},
                                      {"validation-size", "4"},
                                      {"epochs", "1"}}) {
      s.set(name, value);
    }
    const auto task = spec.make(s, "");
    RunFolder run = RunFolder::create(root_ + "/tiny", spec, s, *task);
    run_session(run, *task);
    routes::add_api(router, {models_, traces_, trainings_, {{"corpus", "/nowhere"}}});
  }
  ~TinySite() { std::filesystem::remove_all(root_); }
  TinySite(const TinySite&) = delete;
  TinySite& operator=(const TinySite&) = delete;

  routes::Router router;

 private:
  static std::string made_folder() {
    std::string path = (std::filesystem::temp_directory_path() / "qkv-fuzz-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    return path;
  }
  std::string root_ = made_folder();
  routes::ModelStore models_{{}, root_};
  routes::TraceStore traces_{models_};
  NoTrainings trainings_;
};

}  // namespace qkv::testing
