// Trainings as the routes see them: something that starts, runs and can be told to stop.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace qkv::routes {

/// `qkv train TASK` with these settings, all of them checked.
struct TrainingOrder {
  std::string task;
  std::vector<std::pair<std::string, std::string>> settings;
};

class Trainings {
 public:
  virtual ~Trainings() = default;

  /// Starts one and returns its run's id. Throws RouteError: 422 with the training's own sentence when it ends before
  /// there is a run, 503 when the limit of running trainings is reached.
  virtual std::string start(const TrainingOrder& order) = 0;
  /// Keeps a text that came with an order, and returns the path of its file. Throws RouteError where none is taken.
  virtual std::string keep_text(const std::string& text);
  /// Asks one to save and stop. Throws RouteError 404 for a run that was not started here.
  virtual void stop(const std::string& id) = 0;
  virtual bool is_running(const std::string& id) = 0;
  /// What the last ones that failed after they had been started said, by id.
  virtual std::map<std::string, std::string> failures() = 0;
};

}  // namespace qkv::routes
