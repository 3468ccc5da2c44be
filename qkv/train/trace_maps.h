// Heat maps of a traced example: from a task's attention to pictures.
#pragma once

#include <vector>

#include "qkv/tasks/task.h"
#include "qkv/view/heatmap.h"

namespace qkv {

/// Which attention of a model to show; -1 and "" stand for any.
struct TraceChoice {
  std::string site;
  int64_t layer = -1, head = -1;
};

/// One map for each chosen layer and head, rows and columns labelled with tokens; without a choice, the summary
/// "alignment" alone where the example has one. Throws ConfigError naming what there
/// is when nothing fits the choice, or when the model attends to nothing.
std::vector<HeatMap> maps_of(const TracedExample& example, const TraceChoice& choice = {});

}  // namespace qkv
