// The table of tasks.
#include "qkv/base/error.h"
#include "qkv/tasks/task.h"

namespace qkv {

std::span<const TaskSpec> task_table() { return {}; }

const TaskSpec& find_task(const std::string& name) {
  std::string names;
  for (const TaskSpec& spec : task_table()) {
    if (name == spec.name) return spec;
    names += (names.empty() ? "" : ", ") + std::string(spec.name);
  }
  throw ConfigError("unknown task '" + name + "'; there are: " + names);
}

}  // namespace qkv
