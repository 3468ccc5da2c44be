// Routes about the lab: its experiments, one run of one of them, and a Transformer block number by number.
#include "qkv/lab/explain/explain.h"
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
  router.add("GET", "/api/explain/block", [](const Request& r) {
    const std::string norm = r.get("norm", "post");
    if (norm != "post" && norm != "pre") throw RouteError(400, "'norm' must be post or pre", "norm");
    const std::string causal = r.get("causal", "false");
    if (causal != "true" && causal != "false") throw RouteError(400, "'causal' must be true or false", "causal");
    const lab::BlockInput block{.pre_norm = norm == "pre", .causal = causal == "true"};
    return Response{.body = lab::explanation_json(lab::explain_block(block)),
                    .headers = {{"Cache-Control", "no-store"}}};
  });
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
