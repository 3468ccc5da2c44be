// The JSON API behind the page; docs/SERVER_API.md describes it.
#pragma once

#include <map>
#include <string>

#include "qkv/routes/model_store.h"
#include "qkv/routes/router.h"
#include "qkv/routes/trace_store.h"
#include "qkv/routes/trainings.h"

namespace qkv::routes {

/// What the routes work on. The objects must outlive the router.
struct Services {
  ModelStore& models;
  TraceStore& traces;
  Trainings& trainings;
  std::map<std::string, std::string> data_sets = {};  // name → path: all that a client may name
  bool read_only = false;                             // nothing is started or stopped
};

/// Registers every route.
void add_api(Router& router, const Services& services);

}  // namespace qkv::routes
