// Task "images": the class of a picture, by a Vision Transformer.
#include "qkv/tasks/images/images.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/base/parallel.h"
#include "qkv/core/autograd.h"
#include "qkv/data/batching.h"
#include "qkv/figures/number.h"
#include "qkv/models/vit.h"
#include "qkv/tasks/images/data.h"
#include "qkv/tasks/images/report.h"

namespace qkv {
namespace {

constexpr uint64_t kWeightStream = 1, kOrderStream = 2, kAugmentationStream = 3, kMixingStream = 4;
constexpr int64_t kEvaluationBatch = 250;
constexpr int64_t kPreparedTogether = 16;  // images one thread prepares at a time
constexpr size_t kErrorsShown = 20;

// The largest patch that leaves something to look around in.
int64_t automatic_patch(const ImageFormat& format) {
  constexpr int64_t kLargest = 16, kFewest = 4;
  for (int64_t p = std::min({kLargest, format.height / kFewest, format.width / kFewest}); p > 1; --p) {
    if (format.height % p == 0 && format.width % p == 0) return p;
  }
  return 1;
}

VitConfig model_config(const Settings& s, const ImageFormat& format) {
  VitConfig config;
  config.height = format.height;
  config.image_width = format.width;
  config.channels = format.channels;
  config.classes = static_cast<int64_t>(format.classes.size());
  config.patch = s.get_integer("patch") > 0 ? s.get_integer("patch") : automatic_patch(format);
  config.width = s.get_integer("width");
  config.heads = s.get_integer("heads");
  config.layers = s.get_integer("layers");
  config.inner = s.get_integer("inner");
  config.attention = s.get_text("attention");
  config.dropout = s.get_number("dropout");
  config.shown = s.get_number("shown");
  config.mean_pooling = s.get_text("pooling") == "mean";
  config.positions = s.get<Positions>("positions");
  return config;
}

class Images final : public Task {
 public:
  Images(const Settings& s, const std::string& assets)
      : data_(s, assets),
        seed_(static_cast<uint64_t>(s.get_integer("seed"))),
        batch_(s.get_integer("batch")),
        smoothing_(s.get_number("label-smoothing")),
        cutmix_(s.get_number("cutmix")),
        augmentation_{.shift = s.get_integer("shift"), .flip = s.get_flag("flip"), .erase = s.get_number("erase")} {
    Rng rng = Rng(seed_).fork(kWeightStream);
    model_ = std::make_unique<Vit>(model_config(s, data_.format()), rng);
  }

  void visit(Visitor& see) override { model_->visit(see); }

  int64_t batches_in_epoch(int64_t) override { return (data_.train().size() + batch_ - 1) / batch_; }
  BatchLoss train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part) override;
  Metrics validate() override { return figures(run(data_.validation(), false)); }
  Goal goal() const override { return {"accuracy", 1.0}; }

  Evaluation evaluate(const std::string& data) override;
  std::vector<std::vector<Prediction>> predict(std::span<const std::string> inputs,
                                               const DecodeOptions& options) override;
  TracedExample trace(const std::string& input) override;
  std::vector<std::string> examples(int64_t n) override;
  std::vector<Section> report_sections() override;
  void save_assets(const std::string& folder) const override { data_.save(folder); }
  std::string unnamed_data() const override { return data_.folder(); }

 private:
  /// Images `which` of a set as the model reads them; mirrored left to right when asked for.
  Tensor prepared(const ImageSet& set, std::span<const int64_t> which, bool mirrored) const;
  Tensor probabilities(const Tensor& images) const;  // [B, classes]
  Classified run(const ImageSet& set, bool mirrored) const;
  Metrics figures(const Classified& c) const { return {{"loss", c.loss()}, {"accuracy", c.accuracy()}}; }
  const std::string& name_of(int64_t label) const { return data_.format().classes[static_cast<size_t>(label)]; }

  ImageTaskData data_;
  uint64_t seed_;
  int64_t batch_;
  double smoothing_, cutmix_;
  Augmentation augmentation_;
  std::unique_ptr<Vit> model_;
  int64_t planned_epoch_ = -1;
  std::vector<int64_t> order_;  // of the training images in the planned epoch
};

BatchLoss Images::train_batch(int64_t epoch, int64_t batch, Context& ctx, const BatchPart& part) {
  const ImageSet& train = data_.train();
  if (planned_epoch_ != epoch) {
    order_ = shuffled_indices(train.size(), Rng(seed_).fork(kOrderStream).seed(), static_cast<uint64_t>(epoch));
    planned_epoch_ = epoch;
  }
  const int64_t begin = batch * batch_, whole = std::min(batch_, train.size() - begin), size = train.image_size();
  std::vector<int64_t> which;  // images have as many tokens each
  for (const int64_t k : balanced_part(std::vector<int64_t>(static_cast<size_t>(whole), 1), part.index, part.count)) {
    which.push_back(order_[static_cast<size_t>(begin + k)]);
  }
  if (which.empty()) return {};
  const auto n = static_cast<int64_t>(which.size());
  Tensor images = Tensor::empty({n, train.channels, train.height, train.width});
  const std::span<float> out(images.f32(), static_cast<size_t>(n * size));
  const uint64_t seed = Rng(seed_).fork(kAugmentationStream).seed();
  std::vector<int64_t> targets;
  for (const int64_t i : which) targets.push_back(train.labels[static_cast<size_t>(i)]);
  parallel_blocks(n, kPreparedTogether, [&](int64_t from, int64_t to) {
    for (int64_t k = from; k < to; ++k) {
      const int64_t i = which[static_cast<size_t>(k)];
      prepare_augmented(train, i, data_.format().statistics, augmentation_, image_rng(seed, epoch, i),
                        out.subspan(static_cast<size_t>(k * size), static_cast<size_t>(size)));
    }
  });
  Rng mixing = image_rng(Rng(seed_).fork(kMixingStream).seed(), epoch, batch);
  if (part.count > 1) mixing = mixing.fork(static_cast<uint64_t>(part.index));
  const bool mixed = cutmix_ > 0 && mixing.uniform() < cutmix_;
  const double share = mixed ? swap_rectangles(train, mixing, out) : 0;
  const Tensor logits = model_->forward(images, ctx);  // [n, classes]
  Tensor loss = cross_entropy(logits, targets, {.label_smoothing = smoothing_});
  if (mixed) {
    std::reverse(targets.begin(), targets.end());
    loss = affine(loss, 1 - share) + affine(cross_entropy(logits, targets, {.label_smoothing = smoothing_}), share);
  }
  return {loss, n, n * model_->training_tokens()};
}

Tensor Images::prepared(const ImageSet& set, std::span<const int64_t> which, bool mirrored) const {
  const auto n = static_cast<int64_t>(which.size()), size = set.image_size();
  Tensor images = Tensor::empty({n, set.channels, set.height, set.width});
  parallel_blocks(n, kPreparedTogether, [&](int64_t from, int64_t to) {
    for (int64_t k = from; k < to; ++k) {
      const std::span<float> out(images.f32() + k * size, static_cast<size_t>(size));
      prepare_image(set, which[static_cast<size_t>(k)], data_.format().statistics, out);
      if (!mirrored) continue;
      for (size_t row = 0; row < out.size(); row += static_cast<size_t>(set.width)) {
        const auto line = out.subspan(row, static_cast<size_t>(set.width));
        std::reverse(line.begin(), line.end());
      }
    }
  });
  return images;
}

Tensor Images::probabilities(const Tensor& images) const {
  Context ctx;
  return softmax(model_->forward(images, ctx));
}

Classified Images::run(const ImageSet& set, bool mirrored) const {
  const NoGrad no_grad;
  Classified c;
  c.classes = static_cast<int64_t>(data_.format().classes.size());
  c.labels = set.labels;
  const int64_t batches = (set.size() + kEvaluationBatch - 1) / kEvaluationBatch;
  for (const std::vector<float>& values : share_out<std::vector<float>>(processes(), batches, [&](int64_t batch) {
         const int64_t first = batch * kEvaluationBatch;
         std::vector<int64_t> which(static_cast<size_t>(std::min(kEvaluationBatch, set.size() - first)));
         std::iota(which.begin(), which.end(), first);
         Tensor p = probabilities(prepared(set, which, false));
         if (mirrored) p = affine(p + probabilities(prepared(set, which, true)), 0.5);
         return p.to_vector();
       })) {
    c.probabilities.insert(c.probabilities.end(), values.begin(), values.end());
  }
  return c;
}

Evaluation Images::evaluate(const std::string& data) {
  const bool own = data.empty() || data == "val" || data == "test";
  const ImageSet other = own ? ImageSet{} : data_.read_other(data);
  const ImageSet& set = !own ? other : data == "test" ? data_.test() : data_.validation();
  if (set.size() == 0) throw IoError("no image to evaluate in " + (own ? data_.format().source : data));
  const Classified c = run(set, false);
  Evaluation e;
  e.metrics = figures(c);
  // Where the model learnt that a mirror image is the same thing, two views are better than one.
  if (augmentation_.flip) e.metrics.emplace_back("mirrored_accuracy", run(set, true).accuracy());
  e.notes.push_back(std::to_string(set.size()) +
                    (data == "test" ? " test images"
                     : own          ? " validation images"
                                    : " images") +
                    " from " + (own ? data_.format().source : data));
  const std::vector<std::vector<int64_t>> confusion = c.confusion();
  Breakdown by_class{.name = "accuracy_by_class", .by = "class", .metric = "accuracy"};
  for (size_t k = 0; k < confusion.size(); ++k) {
    const int64_t all = std::accumulate(confusion[k].begin(), confusion[k].end(), int64_t{0});
    by_class.x.push_back(static_cast<double>(k));
    by_class.y.push_back(static_cast<double>(confusion[k][k]) / static_cast<double>(std::max<int64_t>(all, 1)));
    by_class.counts.push_back(all);
    by_class.labels.push_back(data_.format().classes[k]);
  }
  e.breakdowns.push_back(std::move(by_class));
  for (const int64_t i : c.confident_mistakes(kErrorsShown)) {
    const std::string name = data == "test" ? "test:" : own ? "val:" : "image ";
    e.errors.push_back({name + std::to_string(i), name_of(c.labels[static_cast<size_t>(i)]),
                        name_of(c.predicted(i)) + " " + format_share(c.confidence(i), 3)});
  }
  return e;
}

std::vector<std::vector<Prediction>> Images::predict(std::span<const std::string> inputs,
                                                     const DecodeOptions& options) {
  const NoGrad no_grad;
  std::vector<std::vector<Prediction>> all;
  const int64_t first[] = {0};
  for (const std::string& input : inputs) {
    const std::vector<float> p = probabilities(prepared(data_.read_input(input), first, false)).to_vector();
    std::vector<int64_t> order(p.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return p[static_cast<size_t>(a)] > p[static_cast<size_t>(b)]; });
    order.resize(std::min(order.size(), static_cast<size_t>(std::max<int64_t>(options.n_best, 1))));
    all.emplace_back();
    for (const int64_t k : order) {
      const double probability = p[static_cast<size_t>(k)];
      all.back().push_back({name_of(k), std::log(probability), {}, probability});
    }
  }
  return all;
}

TracedExample Images::trace(const std::string& input) {
  const NoGrad no_grad;
  const ImageSet set = data_.read_input(input);
  const int64_t first[] = {0};
  TraceList traces;
  Context ctx;
  ctx.trace = &traces;
  const std::vector<float> p = softmax(model_->forward(prepared(set, first, false), ctx)).to_vector();
  const auto best = std::max_element(p.begin(), p.end());
  TracedExample example;
  example.target = {name_of(best - p.begin())};
  example.output = example.target[0] + " " + format_share(*best, 3);
  if (set.labels[0] >= 0) example.output += " (labelled " + name_of(set.labels[0]) + ")";
  if (model_->first_patch() == 1) example.source.emplace_back("class");
  for (int64_t y = 0; y < model_->rows(); ++y) {
    for (int64_t x = 0; x < model_->columns(); ++x)
      example.source.push_back(std::to_string(y) + "," + std::to_string(x));
  }
  example.attention = traces.traces();
  TracedPicture picture{bitmap_of(set, 0)};
  picture.patch_rows = model_->rows();
  picture.patch_columns = model_->columns();
  picture.first_patch = model_->first_patch();
  example.picture = std::move(picture);
  return example;
}

std::vector<std::string> Images::examples(int64_t n) {
  // One of each class in turn, so that a few show as many things as there are.
  const ImageSet& set = data_.validation();
  std::vector<std::vector<int64_t>> by_class(data_.format().classes.size());
  for (int64_t i = 0; i < set.size(); ++i)
    by_class[static_cast<size_t>(set.labels[static_cast<size_t>(i)])].push_back(i);
  std::vector<std::string> found;
  for (size_t turn = 0; static_cast<int64_t>(found.size()) < std::min(n, set.size()); ++turn) {
    for (const std::vector<int64_t>& list : by_class) {
      if (turn < list.size() && static_cast<int64_t>(found.size()) < n)
        found.push_back("val:" + std::to_string(list[turn]));
    }
  }
  return found;
}

std::vector<Section> Images::report_sections() {
  return image_sections({run(data_.validation(), false),
                         data_.validation(),
                         data_.format().classes,
                         {model_->rows(), model_->columns(), model_->first_patch(), model_->positions(),
                          row_of(model_->config().positions).learned}});
}

}  // namespace

Settings images_settings() {
  constexpr double kWidest = 65536;
  Settings s = training_settings();
  declare_image_data(s);
  s.group("model")
      .choice("attention", "multi-head", attention_names(true), "self-attention of the patches")
      .integer("patch", 0,
               "side of a patch in pixels, must divide the image's sides; 0: the largest up to 16 that cuts each side "
               "into four or more",
               0, 8192)
      .integer("width", 64, "width of the token embeddings", 1, kWidest)
      .integer("layers", 6, "layers", 1, 64)
      .integer("heads", 4, "heads of multi-head attention", 1, 1024)
      .integer("inner", 0, "width inside the feed-forward blocks; 0: four times --width", 0, kWidest)
      .choice("pooling", "class", {"class", "mean"}, "what the class is read from: a class token or the patches' mean")
      .choice("positions", "learned", choices<Positions>([](const PositionsRow& row) { return row.added(); }),
              "positional encoding")
      .number("dropout", 0, "dropout rate while training", 0, 0.95)
      .group("training")
      .number("shown", 1,
              "fraction of the patches that training sees, drawn anew for each image: faster, and an augmentation",
              0.01, 1)
      .number("label-smoothing", 0.1, "label smoothing: fraction of the target spread over the classes", 0, 0.9)
      .integer("shift", 1, "augmentation: pixels an image may move in each direction", 0, 8192)
      .flag("flip", true, "augmentation: mirror every other image (not for digits)")
      .number("erase", 0, "augmentation: how often a rectangle is blanked", 0, 1)
      .number("cutmix", 0,
              "augmentation: how often the images of a batch get a rectangle of another one, and its class by the area",
              0, 1)
      .open_to_clients({"attention", "patch", "width", "layers", "heads", "inner", "pooling", "positions", "shown",
                        "dropout", "label-smoothing", "shift", "flip", "erase", "cutmix"});
  s.set("epochs", "12");
  s.set("batch", "128");
  s.set("lr", "0.002");
  s.set("weight-decay", "0.05");
  s.set("schedule", "cosine");
  s.set("warmup", "200");
  s.set("final-lr", "0.01");
  return s;
}

std::unique_ptr<Task> make_images(const Settings& settings, const std::string& assets) {
  return std::make_unique<Images>(settings, assets);
}

}  // namespace qkv
