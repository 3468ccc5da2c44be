// Recordings as a file of tensors, with everything else as JSON in its header.
#include "qkv/tasks/recordings.h"

#include <algorithm>
#include <map>

#include "qkv/base/error.h"
#include "qkv/core/autograd.h"
#include "qkv/nn/attention.h"
#include "qkv/ops/ops.h"
#include "qkv/tasks/traced_json.h"

namespace qkv {
namespace {

constexpr const char* kHeader = "recordings";  // the name of the JSON in the file's header
constexpr size_t kMostTensors = 1 << 14;       // of a file: each is looked for among all

/// Collects tensors under names, alive until they are written.
struct Writer {
  std::vector<std::pair<std::string, Tensor>> tensors = {};
  void add(const std::string& name, const Tensor& t) {
    if (t.defined()) tensors.emplace_back(name, contiguous(t));
  }
};

Json rule_json(const ScoreRule& rule) {
  Json json{{"softcap", rule.softcap},
            {"causal", rule.causal},
            {"offset", rule.offset},
            {"window_left", rule.window_left},
            {"window_right", rule.window_right},
            {"normaliser", name_of(rule.normaliser)}};
  if (rule.scale) json["scale"] = *rule.scale;
  if (!rule.key_lens.empty()) json["key_lens"] = rule.key_lens;
  return json;
}

ScoreRule rule_of(const JsonObject& object) {
  constexpr int64_t kFar = int64_t{1} << 40;
  ScoreRule rule;
  rule.softcap = object.number("softcap", 0);
  rule.causal = object.flag("causal");
  rule.offset = object.integer("offset", -kFar, kFar);
  rule.window_left = object.integer("window_left", -1, kFar);
  rule.window_right = object.integer("window_right", -1, kFar);
  rule.normaliser = parse<Normaliser>(object.text("normaliser"));
  if (object.has("scale")) rule.scale = object.number("scale");
  if (object.has("key_lens")) {
    for (const double n : object.numbers("key_lens", 0, kFar)) rule.key_lens.push_back(static_cast<int64_t>(n));
  }
  return rule;
}

/// A mask as numbers, 1 where a key takes part.
Tensor mask_tensor(const BoolMask& mask) {
  if (!mask.defined()) return {};
  return Tensor::from(std::vector<float>(mask.values->begin(), mask.values->end()), mask.shape);
}

Json layer_json(const AttentionTrace& trace, const std::string& name, Writer& writer) {
  Json json{{"site", trace.site}, {"layer", trace.layer}};
  if (!trace.call) {
    Tensor weights = Tensor::empty({trace.H, trace.Lq, trace.Lk});
    for (int64_t h = 0; h < trace.H; ++h) {
      const std::vector<float> one = trace.scores({.h = h, .row_end = trace.Lq}).to_vector();
      std::copy(one.begin(), one.end(), weights.f32() + h * trace.Lq * trace.Lk);
    }
    writer.add(name + "/weights", weights);
    return json;
  }
  const TracedCall& call = *trace.call;
  json["rule"] = rule_json(call.rule);
  writer.add(name + "/q", call.q);
  writer.add(name + "/k", call.k);
  writer.add(name + "/v", call.v);
  writer.add(name + "/bias", call.rule.bias);
  writer.add(name + "/additive", call.rule.additive);
  writer.add(name + "/mask", mask_tensor(call.rule.mask));
  return json;
}

Json example_json(const TracedExample& e) {
  Json json{{"source", e.source}, {"target", e.target}, {"output", e.output}};
  if (!e.candidates.empty()) json["candidates"] = candidates_json(e);
  if (!e.notice.empty()) json["notice"] = e.notice;
  if (e.picture) json["picture"] = picture_json(*e.picture);
  return json;
}

TracedExample example_of(const JsonObject& object, const std::string& where) {
  TracedExample e;
  e.source = object.texts("source");
  e.target = object.texts("target");
  e.output = object.text("output");
  if (object.has("notice")) e.notice = object.text("notice");
  if (object.has("picture")) e.picture = picture_of(object.object("picture"), where);
  if (!object.has("candidates")) return e;
  const Json& steps = object.json()["candidates"];
  if (!steps.is_array()) throw IoError(where + ": the candidates are no list");
  for (const Json& step : steps) {
    if (!step.is_array()) throw IoError(where + ": the candidates of a token are no list");
    e.candidates.emplace_back();
    for (const Json& one : step) {
      const JsonObject c(one, where);
      e.candidates.back().push_back({c.text("token"), c.number("p", 0, 1.001), c.integer("id")});
    }
  }
  return e;
}

/// The tensors of one file, of the rank a place asks for.
class Reader {
 public:
  explicit Reader(const SafetensorsFile& file) : file_(file) {}
  bool has(const std::string& name) const { return file_.contains(name); }
  Tensor get(const std::string& name) const {
    const Shape& shape = file_.at(name).shape;
    return Tensor::from(file_.f32(name, shape), shape);
  }
  /// With three axes, none of them empty.
  Tensor rows(const std::string& name) const {
    const Shape& shape = file_.at(name).shape;
    if (shape.rank() != 3 || shape.numel() == 0) refuse(name, "expected three axes");
    return get(name);
  }
  [[noreturn]] void refuse(const std::string& name, const std::string& why) const {
    throw IoError(file_.name() + ": '" + name + "' does not fit: " + why);
  }

 private:
  const SafetensorsFile& file_;
};

AttentionTrace layer_of(const JsonObject& object, const std::string& name, const Reader& reader) {
  const std::string& site = object.text("site");
  const auto layer = static_cast<int>(object.integer("layer", 0, 1 << 20));
  if (reader.has(name + "/weights")) return trace_of_weights(site, layer, reader.rows(name + "/weights"));
  TracedCall call{reader.rows(name + "/q"), reader.rows(name + "/k"), reader.rows(name + "/v"),
                  rule_of(object.object("rule"))};
  const Tensor &q = call.q, &k = call.k, &v = call.v;
  if (k.dim(2) != q.dim(2) || q.dim(1) % k.dim(1) != 0) reader.refuse(name + "/k", "its heads are not those of q");
  if (v.dim(0) != k.dim(0) || v.dim(1) != k.dim(1)) reader.refuse(name + "/v", "its rows are not those of k");
  ScoreRule& rule = call.rule;
  rule.q_offsets = {0, q.dim(0)};
  rule.k_offsets = {0, k.dim(0)};
  if (reader.has(name + "/bias")) rule.bias = reader.get(name + "/bias");
  if (reader.has(name + "/additive")) rule.additive = reader.get(name + "/additive");
  if (rule.additive.defined() && (rule.additive.rank() != 1 || rule.additive.dim(0) != q.dim(2))) {
    reader.refuse(name + "/additive", "it is not as long as a query");
  }
  if (reader.has(name + "/mask")) {
    const Tensor mask = reader.get(name + "/mask");
    std::vector<uint8_t> values;
    for (const float x : mask.to_vector()) values.push_back(x != 0 ? 1 : 0);
    rule.mask = bool_mask(std::move(values), mask.shape());
  }
  // Says what else does not fit now, not when somebody looks.
  const NoGrad no_grad;
  attention_scores(q, k, rule, {.row_end = 1});
  return trace_of(site, layer, std::move(call));
}

/// Whether the layers of each site are of one size, as those of a model are.
bool sites_agree(const std::vector<AttentionTrace>& layers) {
  std::map<std::string, const AttentionTrace*> first;  // of each site
  return std::all_of(layers.begin(), layers.end(), [&](const AttentionTrace& a) {
    const AttentionTrace& b = *first.emplace(a.site, &a).first->second;
    return a.H == b.H && a.Lq == b.Lq && a.Lk == b.Lk && !a.call == !b.call;
  });
}

}  // namespace

void write_recordings(const std::string& file, Traceable& model, std::span<const std::string> inputs,
                      std::span<const std::string> names, const std::string& weights) {
  const NoGrad no_grad;
  Writer writer;
  Json traces = Json::array();
  for (size_t i = 0; i < inputs.size(); ++i) {
    TracedExample example;
    try {
      example = model.trace(inputs[i]);
    } catch (const ConfigError& e) {
      throw ConfigError("cannot record " + quoted_name(inputs[i]) + ": " + e.what());
    }
    Json layers = Json::array();
    for (const AttentionTrace& trace : example.attention) {
      const std::string name = std::to_string(i) + "/" + std::to_string(layers.size());
      layers.push_back(layer_json(trace, name, writer));
    }
    traces.push_back({{"input", names[i]}, {"example", example_json(example)}, {"layers", std::move(layers)}});
  }
  if (writer.tensors.size() > kMostTensors) {
    throw ConfigError(std::to_string(inputs.size()) + " inputs are too many to record for a model of " +
                      std::to_string(writer.tensors.size() / 3 / inputs.size()) + " layers of attention");
  }
  const Json header{{"weights", weights}, {"traces", std::move(traces)}};
  std::vector<SafetensorView> views;
  for (auto& [name, t] : writer.tensors) {
    views.push_back(safetensor_view(name, t.shape(), std::span<const float>(t.f32(), static_cast<size_t>(t.numel()))));
  }
  save_safetensors(file, views, {{kHeader, json_text(header)}});
}

Recordings::Recordings(SafetensorsFile file) {
  const std::string where = file.name();
  const auto header = file.metadata().find(kHeader);
  if (header == file.metadata().end()) throw IoError(where + ": it holds no recordings");
  const Json json = parse_json(header->second, {.where = where, .what = "recordings"});
  const JsonObject object(json, where);
  weights_ = object.text("weights");
  const Reader reader(file);
  if (file.tensors().size() > kMostTensors) throw IoError(where + ": more than 16,384 tensors");
  for (const Safetensor& t : file.tensors()) bytes_ += static_cast<int64_t>(t.end - t.begin);
  try {
    for (const JsonObject& one : object.objects("traces")) {
      all_.push_back({one.text("input"), example_of(one.object("example"), where)});
      TracedExample& example = all_.back().example;
      for (const JsonObject& layer : one.objects("layers")) {
        const std::string name = std::to_string(all_.size() - 1) + "/" + std::to_string(example.attention.size());
        example.attention.push_back(layer_of(layer, name, reader));
      }
      if (!sites_agree(example.attention)) throw IoError(where + ": the layers of a trace differ in size");
    }
  } catch (const IoError&) {
    throw;
  } catch (const Error& e) {  // shapes and names that do not fit together
    throw IoError(where + ": " + e.what());
  }
  if (all_.empty()) throw IoError(where + ": it holds no recordings");
}

TracedExample Recordings::trace(const std::string& input) {
  for (const Recorded& one : all_) {
    if (one.input == input) return one.example;
  }
  throw ConfigError("this run is recorded, its model is not here: choose one of its " + std::to_string(all_.size()) +
                    " inputs");
}

std::vector<std::string> Recordings::examples(int64_t n) {
  std::vector<std::string> inputs;
  for (const Recorded& one : all_) {
    if (n <= 0 || static_cast<int64_t>(inputs.size()) < n) inputs.push_back(one.input);
  }
  return inputs;
}

}  // namespace qkv
