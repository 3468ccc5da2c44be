// Routes about the lab: its experiments, and one run of one of them.
#include "qkv/lab/present.h"
#include "qkv/routes/parts.h"

namespace qkv::routes {

void add_lab_routes(Router& router) {
  router.add(
      "GET", "/api/lab",
      [](const Request&) {
        Json list = Json::array();
        for (const lab::Experiment& e : lab::experiment_table()) {
          list.push_back({{"name", e.name}, {"summary", e.summary}, {"settings", settings_json(e.settings())}});
        }
        return json_response({{"experiments", list}});
      },
      Work::light);
  router.add("POST", "/api/lab/{}", [](const Request& r) {
    const lab::Experiment& e = lab::find_experiment(r.parts[0]);
    Settings settings = e.settings();
    if (!r.body.empty()) {
      for (const auto& [name, value] : settings_member(request_json(r))) settings.set(name, value);
    }
    return Response{.body = lab::result_json(e, settings, e.run(settings), true),
                    .headers = {{"Cache-Control", "no-store"}}};
  });
}

}  // namespace qkv::routes
