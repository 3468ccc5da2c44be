// The JSON API behind the page; docs/API.md describes it.
#pragma once

#include "qkv/serve/http_server.h"
#include "qkv/serve/model_store.h"
#include "qkv/serve/trace_store.h"
#include "qkv/serve/trainings.h"

namespace qkv::serve {

/// Registers every route. The stores must outlive the server.
void add_api(HttpServer& server, ModelStore& models, TraceStore& traces, Trainings& trainings);

}  // namespace qkv::serve
