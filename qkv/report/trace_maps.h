// Heat maps of a traced example: from a task's attention to pictures.
#pragma once

#include <string>
#include <vector>

#include "qkv/tasks/task.h"
#include "qkv/view/drawing.h"
#include "qkv/view/heatmap.h"

namespace qkv {

/// Which attention of a model to show; -1 and "" stand for any.
struct TraceChoice {
  std::string site;
  int64_t layer = -1, head = -1;
};

/// One map for each chosen layer and head, rows and columns labelled with tokens; without a choice, the summary
/// "alignment" alone where the example has one. Of a picture the maps are its patches: the rollout (unless one layer or
/// head is chosen), then what the class token of each layer and head looks at, or all patches on average where there is
/// no class token. Throws ConfigError naming what there is when nothing fits the choice, or when the model attends to
/// nothing.
std::vector<HeatMap> maps_of(const TracedExample& example, const TraceChoice& choice = {});

/// The maps of a picture laid over it, one row of tiles per layer, under the picture itself and the rollout.
Drawing draw_picture_maps(const std::string& title, const TracedExample& example, const TraceChoice& choice = {});

}  // namespace qkv
