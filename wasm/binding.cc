// The routes for a page without a server: a request in, a response out, files in memory; and a training in pieces.
#include <emscripten.h>

#include <memory>
#include <new>
#include <string>

#include "qkv/base/parallel.h"
#include "qkv/io/json.h"
#include "qkv/routes/api.h"
#include "qkv/train/run_archive.h"
#include "wasm/tab_trainings.h"

namespace {

using namespace qkv;

constexpr const char* kRoot = "runs";

bool g_refused = false;  // the browser gave no more memory during the last call

struct Program {
  Program() {
    std::set_new_handler([] {
      g_refused = true;
      throw std::bad_alloc();
    });
    set_num_threads(1);
    routes::add_api(router, {models, traces, trainings, {}});
  }
  routes::ModelStore models{{}, kRoot};
  routes::TraceStore traces{models};
  wasm::TabTrainings trainings{kRoot};
  routes::Router router;
  std::unique_ptr<wasm::TabTraining> training;  // in the worker that trains
  routes::Response response;                    // to the last call
};

Program& program() {
  static auto* const one = new Program;
  return *one;
}

// Keeps what `make` returns as the response, or its error; returns the status.
template <class Make>
int respond(Make&& make) {
  Program& p = program();
  g_refused = false;
  try {
    p.response = make(p);
  } catch (const routes::RouteError& e) {
    p.response = routes::error_response(e.status(), e.what(), e.field());
  } catch (const std::bad_alloc&) {
    p.response = routes::error_response(422, "not enough memory for this; use a smaller input or smaller settings");
  } catch (const std::exception& e) {
    p.response = routes::error_response(422, e.what());
  }
  return p.response.status;
}

routes::Response bytes_response(const Bytes& bytes) {
  return {.type = "application/octet-stream", .body = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
}

std::string path_of(const char* id) { return std::string(kRoot) + "/" + id; }

}  // namespace

// Every call but the last four leaves a response, which those four tell of until the next call.
extern "C" {

/// Answers a request as the server would.
EMSCRIPTEN_KEEPALIVE int qkv_answer(const char* method, const char* target, const char* body, size_t bytes) {
  return respond(
      [&](Program& p) { return p.router.answer(routes::make_request(method, target, std::string(body, bytes))); });
}

/// Adds the run of a .tar archive: {"id": …}.
EMSCRIPTEN_KEEPALIVE int qkv_add_run(const char* name, const char* archive, size_t bytes) {
  return respond([&](Program&) {
    const std::string path = unpack_run(bytes_of({archive, bytes}), name, kRoot);
    return routes::Response{.status = 201, .body = json_text({{"id", path.substr(path_of("").size())}})};
  });
}
/// A run as a .tar archive.
EMSCRIPTEN_KEEPALIVE int qkv_pack_run(const char* id) {
  return respond([&](Program& p) { return bytes_response(pack_run(p.models.find(id).path, id)); });
}

/// A file of a run, written, removed (a call without bytes) or read, and the names of all of them.
EMSCRIPTEN_KEEPALIVE int qkv_write_file(const char* id, const char* name, const char* data, size_t bytes) {
  return respond([&](Program&) {
    put_run_file(path_of(id), name, data == nullptr ? std::nullopt : std::optional(bytes_of({data, bytes})));
    return routes::Response{.body = "{}"};
  });
}
EMSCRIPTEN_KEEPALIVE int qkv_run_files(const char* id) {
  return respond([&](Program& p) {
    return routes::Response{.body = json_text({{"files", run_files(p.models.find(id).path)}})};
  });
}
EMSCRIPTEN_KEEPALIVE int qkv_read_file(const char* id, const char* name) {
  return respond([&](Program&) { return bytes_response(read_file(path_of(id) + "/" + name)); });
}

/// What the routes ordered of the worker that trains: {"order": "train ID"}, "stop ID" or "".
EMSCRIPTEN_KEEPALIVE int qkv_next_order() {
  return respond([](Program& p) { return routes::Response{.body = json_text({{"order", p.trainings.next_order()}})}; });
}
EMSCRIPTEN_KEEPALIVE int qkv_training_state(const char* id, int running, const char* failure) {
  return respond([&](Program& p) {
    running != 0 ? p.trainings.resume(id) : p.trainings.ended(id, failure);
    return routes::Response{.body = "{}"};
  });
}

/// In the worker that trains: begins, trains for about that long (202 while something is left to do), stops.
EMSCRIPTEN_KEEPALIVE int qkv_train_begin(const char* id) {
  return respond([&](Program& p) {
    p.training = std::make_unique<wasm::TabTraining>(path_of(id));
    return routes::Response{.body = "{}"};
  });
}
EMSCRIPTEN_KEEPALIVE int qkv_train_advance(double seconds) {
  return respond([&](Program& p) {
    const bool more = p.training->advance(seconds);
    return routes::Response{.status = more ? 202 : 200, .body = p.training->news()};
  });
}
EMSCRIPTEN_KEEPALIVE int qkv_train_stop() {
  return respond([](Program& p) {
    if (p.training) p.training->stop();
    return routes::Response{.body = "{}"};
  });
}

EMSCRIPTEN_KEEPALIVE const char* qkv_answer_type() { return program().response.type.c_str(); }
EMSCRIPTEN_KEEPALIVE const char* qkv_answer_body() { return program().response.body.data(); }
EMSCRIPTEN_KEEPALIVE size_t qkv_answer_bytes() { return program().response.body.size(); }

/// Whether it failed since there was no more memory: the browser takes none back, so the program had better begin anew.
EMSCRIPTEN_KEEPALIVE int qkv_exhausted() { return g_refused && program().response.status >= 400 ? 1 : 0; }

}  // extern "C"
