// A run small enough to be made when a fuzzer starts, and trainings that only pretend.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
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

/// All routes over a folder with a run of each kind of input: "tiny" reads letters, "text" text, "images" pictures.
class TinySite {
 public:
  TinySite() {
    train("tiny", "reverse", {{"hidden", "4"}, {"embedding", "4"}, {"max-length", "4"}, {"validation-size", "4"}});
    const std::string lines = root_ + "/lines.txt";
    std::ofstream(lines) << "the man sees a dog\na dog sees the man\nthe dog sees a man\na man sees the dog\n";
    train("text", "text", {{"data", lines}, {"layers", "1"}, {"heads", "1"}, {"width", "4"}, {"block", "8"}});
    train("images", "images", {{"data", "shapes"}, {"layers", "1"}, {"heads", "1"}, {"width", "4"}, {"inner", "4"}});
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
  void train(const std::string& name, const char* task_name, std::map<std::string, std::string> settings) const {
    const TaskSpec& spec = find_task(task_name);
    Settings s = spec.settings();
    settings.insert({{"steps", "1"}, {"warmup", "0"}});
    if (s.has("train-size")) settings.insert({"train-size", "20"});
    for (const auto& [option, value] : settings) s.set(option, value);
    const auto task = spec.make(s, "");
    RunFolder run = RunFolder::create(root_ + "/" + name, spec, s, *task);
    run_session(run, *task);
  }
  std::string root_ = made_folder();
  routes::ModelStore models_{{}, root_};
  routes::TraceStore traces_{models_};
  NoTrainings trainings_;
};

}  // namespace qkv::testing
