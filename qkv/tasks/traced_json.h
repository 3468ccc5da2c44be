// Parts of a traced example as JSON, for answers of the routes and for recordings.
#pragma once

#include "qkv/io/json.h"
#include "qkv/tasks/task.h"

namespace qkv {

Json picture_json(const TracedPicture& picture);
/// What picture_json() wrote; throws JsonError or IoError for anything else.
TracedPicture picture_of(const JsonObject& object, const std::string& where);

/// A list of {"token", "p", "id"} for each token written.
Json candidates_json(const TracedExample& example);

}  // namespace qkv
