// Tables, curves and pages about runs.
#include "qkv/report/run_report.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "qkv/base/error.h"
#include "qkv/report/metric_text.h"
#include "qkv/report/report.h"
#include "qkv/report/trace_maps.h"
#include "qkv/version.h"
#include "qkv/view/progress.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr int64_t kExamples = 3;
constexpr size_t kMapsShown = 12;
constexpr size_t kSideBySide = 5;  // this many runs fit as columns
constexpr double kWholeWidth = 640, kHalfWidth = 470, kHalfHeight = 250;

double epochs_at(const EvaluationRecord& r, const std::vector<EvaluationRecord>& all) {
  // Evaluations may be several in an epoch; steps spread evenly over the epochs then.
  if (all.back().epoch == 0)
    return static_cast<double>(r.step) / static_cast<double>(std::max<int64_t>(all.back().step, 1));
  return static_cast<double>(r.step) * static_cast<double>(all.back().epoch) / static_cast<double>(all.back().step);
}

std::vector<double> losses(const ReportedRun& run, bool training) {
  std::vector<double> values;
  for (const EvaluationRecord& r : run.history) {
    values.push_back(training ? r.train_loss : metric_of(r.validation, "loss"));
  }
  return values;
}

Series curve(const ReportedRun& run, int color, const std::function<double(const EvaluationRecord&)>& value) {
  Series s;
  s.name = run.result.label;
  s.color = color;
  s.marks = run.history.size() == 1 ? Marks::kDots : Marks::kLine;
  for (const EvaluationRecord& r : run.history) {
    s.x.push_back(epochs_at(r, run.history));
    s.y.push_back(value(r));
  }
  return s;
}

void add_spread(std::vector<std::string>& row, const std::vector<double>& values) {
  const Spread s = spread_of(values);
  row.push_back(format_number(s.mean, 3));
  row.push_back(format_number(s.variance, 3));
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("._,/+-:@%=").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// The same command gives the same run.
std::string command_of(const std::vector<ReportedRun>& runs) {
  std::string command = runs.size() > 1 ? "qkv compare " : "qkv train ";
  command += runs[0].result.task;
  const Settings plain = runs[0].spec->settings();
  const auto decides = [](const Setting& s) {  // other defaults may hang on it
    return (s.kind == SettingKind::choice || s.kind == SettingKind::path) && s.name != "attention";
  };
  Settings usual = plain;  // with these decided
  for (const Setting& s : runs[0].settings.all()) {
    if (decides(s)) usual.set(s.name, s.value);
  }
  for (size_t i = 0; i < plain.all().size(); ++i) {
    const Setting& s = runs[0].settings.all()[i];
    const Settings& defaults = decides(s) ? plain : usual;
    std::string value = s.value;
    if (s.name == "attention" && runs.size() > 1) {
      value.clear();
      for (const ReportedRun& run : runs) value += (value.empty() ? "" : ",") + run.result.label;
    } else if (value == defaults.all()[i].value) {
      continue;
    }
    if (s.kind == SettingKind::flag) {
      command += (value == "true" ? " --" : " --no-") + s.name;
    } else {
      command += " --" + s.name + " " + shell_word(value);
    }
  }
  return command;
}

void add_highlights(Report& report, const std::vector<ReportedRun>& runs) {
  std::vector<Highlight> cards;
  for (const ReportedRun& run : runs) {
    const double value = metric_of(run.result.evaluation.metrics, run.goal.metric);
    cards.push_back({metric_label(run.goal.metric) + (runs.size() > 1 ? ", " + run.result.label : ""),
                     metric_text(run.goal.metric, value),
                     std::to_string(run.result.training.state.epoch) + " epochs, " +
                         format_duration(run.result.training.state.seconds)});
  }
  if (runs.size() == 1) {
    for (const auto& [name, value] : runs[0].result.evaluation.metrics) {
      if (name != runs[0].goal.metric)
        cards.push_back({metric_label(name, runs[0].settings), metric_text(name, value)});
    }
  }
  report.highlights(cards);
}

/// "dot reaches an exact match of 99.8%, none 61%."
std::string headline(const std::vector<ReportedRun>& runs) {
  std::vector<const ReportedRun*> order;
  for (const ReportedRun& run : runs) order.push_back(&run);
  const std::string metric = runs[0].goal.metric;
  const auto value = [&](const ReportedRun* r) { return metric_of(r->result.evaluation.metrics, metric); };
  std::stable_sort(order.begin(), order.end(), [&](const ReportedRun* a, const ReportedRun* b) {
    return metric_kind(metric).higher_is_better ? value(a) > value(b) : value(a) < value(b);
  });
  std::string text;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0) {
      text = "On validation data, " + order[i]->result.label + " reaches " + metric_label(metric) + " " +
             metric_text(metric, value(order[i]));
    } else {
      text += ", " + order[i]->result.label + " " + metric_text(metric, value(order[i]));
    }
  }
  return text + ".";
}

void add_maps(Report& report, const std::vector<ReportedRun>& runs) {
  report.section("Where it looks");
  const bool pictures = !runs[0].examples.empty() && runs[0].examples[0].over_picture;
  report.paragraph(
      pictures
          ? "The brighter a patch's tint, the more was taken from there. The rollout follows the attention of all "
            "layers "
            "and the residuals beside it back to the input: the product of (A + I)/2, with A a layer's mean over heads."
          : "Each row is one token the model wrote, each column one it read; the stronger a cell's colour, the more of "
            "the context came from there. The rows of weights sum to 1.");
  for (const ReportedRun& run : runs) {
    if (run.examples.empty()) {
      report.paragraph(run.result.label +
                       ": this model has no attention, so there is nothing to show. Everything it "
                       "knows of the input went through one state.");
      continue;
    }
    if (runs.size() > 1) report.subsection(run.result.label);
    std::vector<HeatMap> alone;  // one map per input: all of them in one picture
    for (const ReportedRun::Example& e : run.examples) {
      std::vector<HeatMap> maps = e.maps;
      if (maps.size() > kMapsShown) maps.resize(kMapsShown);
      const std::string title = (e.why.empty() ? "" : e.why + ": ") + e.input + " → " + e.output;
      if (e.over_picture) {
        report.figure(*e.over_picture);
      } else if (maps.size() == 1) {
        maps[0].title = title;
        alone.push_back(maps[0]);
      } else {
        report.figure(draw_heatmaps(title, maps, 4));
      }
    }
    if (!alone.empty()) report.figure(draw_heatmaps("", alone, 3));
  }
}

std::string breakdown_title(const Breakdown& b) {
  std::string title = metric_label(b.metric) + " by " + b.by;
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

Drawing bars_of(const std::vector<const ReportedRun*>& runs, size_t k) {
  const Breakdown& first = runs[0]->result.evaluation.breakdowns[k];
  BarChart chart{.title = breakdown_title(first),
                 .group_title = first.by,
                 .groups = first.labels,
                 .y = Axis{.title = metric_label(first.metric)},
                 .numbers = runs.size() == 1,
                 .width = kWholeWidth};
  for (const ReportedRun* run : runs) {
    const Breakdown& b = run->result.evaluation.breakdowns[k];
    if (b.y.size() == first.y.size()) chart.series.push_back({run->result.label, b.y});
  }
  return draw_bars(chart);
}

Drawing lines_of(const std::vector<const ReportedRun*>& runs, size_t k) {
  const Breakdown& first = runs[0]->result.evaluation.breakdowns[k];
  Plot plot{.title = breakdown_title(first),
            .x = Axis{.title = first.by, .whole = true},
            .y = Axis{.title = metric_label(first.metric), .low = 0.0},
            .width = kWholeWidth};
  double high = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const Breakdown& b = runs[i]->result.evaluation.breakdowns[k];
    plot.series.push_back({.name = runs[i]->result.label,
                           .x = b.x,
                           .y = b.y,
                           .marks = Marks::kLineAndDots,
                           .color = static_cast<int>(i)});
    for (const double y : b.y) high = std::max(high, y);
  }
  if (high <= 1) plot.y.high = 1.0;
  if (first.trained_to > 0) plot.guides.push_back({first.trained_to + 0.5, "longer than trained on →", true});
  return draw_plot(plot);
}

void add_errors(Report& report, const std::vector<ReportedRun>& runs) {
  report.section("Errors");
  for (const ReportedRun& run : runs) {
    const std::vector<Case>& errors = run.result.evaluation.errors;
    if (errors.empty()) {
      report.paragraph(run.result.label + ": none.");
      continue;
    }
    Table table{.header = {"input", "expected", "written"}};
    for (const Case& c : errors) table.rows.push_back({c.input, c.expected, c.predicted});
    report.folded_table(run.result.label + ": " + std::to_string(errors.size()) + " of those that came out wrong",
                        table);
  }
}

void add_configuration(Report& report, const std::vector<ReportedRun>& runs) {
  report.section("Configuration");
  std::vector<std::pair<std::string, std::string>> entries{
      {"task", runs[0].result.task}, {"qkv", QKV_VERSION}, {"instruction set", runs[0].simd}};
  for (const Setting& s : runs[0].settings.all()) {
    std::string value = s.value;
    if (s.name == "attention" && runs.size() > 1) {
      value.clear();
      for (const ReportedRun& run : runs) value += (value.empty() ? "" : ", ") + run.result.label;
    }
    entries.emplace_back(s.name, value);
  }
  report.settings(entries);
  const std::string simd = runs[0].simd.empty() ? "" : ", here " + runs[0].simd + " (--target " + runs[0].simd + ")";
  report.paragraph("The same command gives the same bits on the same instruction set" + simd +
                   ", with any number of threads; on another, figures as good but not the same:");
  report.code(command_of(runs));
}

}  // namespace

ReportedRun reported_run(const RunFolder& folder, Task& task, const SessionResult& result) {
  ReportedRun run{&folder.spec(), result, folder.settings(), task.goal(), folder.history(), {}, folder.simd()};
  for (const std::string& input : task.examples(kExamples)) {
    const TracedExample traced = task.trace(input);
    if (traced.attention.empty()) break;
    run.examples.push_back({input, traced.output, task.about_example(input), maps_of(traced), {}});
    if (traced.picture) {
      run.examples.back().over_picture = draw_picture_maps(input + " → " + traced.output, traced);
    }
  }
  return run;
}

Table result_table(const std::vector<ReportedRun>& runs) {
  Table table;
  table.header = {"attention",
                  "parameters",
                  "epochs",
                  "training loss, mean over epochs",
                  "training loss, variance over epochs",
                  "validation loss, mean over epochs",
                  "validation loss, variance over epochs"};
  for (const auto& metric : runs[0].result.evaluation.metrics) {
    table.header.push_back(metric_label(metric.first, runs[0].settings));
  }
  for (const Breakdown& b : runs[0].result.evaluation.breakdowns) {
    if (b.trained_to > 0)
      table.header.push_back(metric_label(b.metric) + " at " + b.by + " " + format_number(b.trained_to, 9));
  }
  table.header.emplace_back("seconds");
  for (const ReportedRun& run : runs) {
    std::vector<std::string> row{run.result.label, std::to_string(run.result.parameters),
                                 std::to_string(run.result.training.state.epoch)};
    add_spread(row, losses(run, true));
    add_spread(row, losses(run, false));
    for (const auto& [name, value] : run.result.evaluation.metrics) row.push_back(metric_text(name, value));
    for (const Breakdown& b : run.result.evaluation.breakdowns) {
      const auto at = std::find(b.x.begin(), b.x.end(), b.trained_to);
      if (b.trained_to > 0)
        row.push_back(at == b.x.end() ? "—" : metric_text(b.metric, b.y[static_cast<size_t>(at - b.x.begin())]));
    }
    row.push_back(format_number(run.result.training.state.seconds, 3));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table seed_table(const std::vector<ReportedRun>& runs) {
  const std::string goal = runs[0].goal.metric;
  Table table{.header = {"attention", "seeds"}};
  for (const std::string& figure :
       {std::string("last validation loss"), std::string("validation loss over epochs"), metric_label(goal)}) {
    table.header.push_back(figure + ", mean over seeds");
    table.header.push_back(figure + ", variance over seeds");
  }
  for (size_t first = 0; first < runs.size();) {
    std::vector<double> last, over_epochs, figures;
    const std::string label = runs[first].result.label;
    for (; first < runs.size() && runs[first].result.label == label; ++first) {
      const std::vector<double> curve = losses(runs[first], false);
      last.push_back(curve.empty() ? 0 : curve.back());
      over_epochs.push_back(spread_of(curve).mean);
      figures.push_back(metric_of(runs[first].result.evaluation.metrics, goal));
    }
    table.rows.push_back({label, std::to_string(last.size())});
    for (const auto& values : {last, over_epochs, figures}) {
      const Spread s = spread_of(values);
      const auto n = static_cast<double>(values.size());
      table.rows.back().push_back(format_number(s.mean, 3));
      // Of a few runs that stand for all seeds: over n - 1.
      table.rows.back().push_back(n > 1 ? format_number(s.variance * n / (n - 1), 3) : "—");
    }
  }
  return table;
}

Table transposed(const Table& table) {
  Table t{.title = table.title};
  t.header.push_back(table.header[0]);
  for (const auto& row : table.rows) t.header.push_back(row[0]);
  for (size_t c = 1; c < table.header.size(); ++c) {
    t.rows.push_back({table.header[c]});
    for (const auto& row : table.rows) t.rows.back().push_back(c < row.size() ? row[c] : "");
  }
  return t;
}

Plot loss_plot(const std::vector<ReportedRun>& runs) {
  Plot plot{.title = "Loss",
            .x = Axis{.title = "epoch", .low = 0.0},
            .y = Axis{.title = "loss per token (nats)", .low = 0.0}};
  for (size_t i = 0; i < runs.size(); ++i) {
    const int color = static_cast<int>(i);
    Series training = curve(runs[i], color, [](const EvaluationRecord& r) { return r.train_loss; });
    training.name += " training";
    training.dashed = true;
    Series validation =
        curve(runs[i], color, [](const EvaluationRecord& r) { return metric_of(r.validation, "loss"); });
    validation.name += " validation";
    plot.series.push_back(std::move(training));
    plot.series.push_back(std::move(validation));
  }
  return plot;
}

Plot goal_plot(const std::vector<ReportedRun>& runs) {
  const std::string metric = runs[0].goal.metric;
  std::string title = metric_label(metric);
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  Plot plot{.title = title + " on the validation set",
            .x = Axis{.title = "epoch", .low = 0.0},
            .y = Axis{.title = metric_label(metric), .low = 0.0}};
  if (metric_kind(metric).higher_is_better && runs[0].goal.stop_at == 1) plot.y.high = 1.0;
  for (size_t i = 0; i < runs.size(); ++i) {
    plot.series.push_back(curve(runs[i], static_cast<int>(i),
                                [&](const EvaluationRecord& r) { return metric_of(r.validation, metric); }));
  }
  return plot;
}

std::vector<Drawing> breakdown_plots(const std::vector<ReportedRun>& runs) {
  std::vector<Drawing> plots;
  for (size_t k = 0; k < runs[0].result.evaluation.breakdowns.size(); ++k) {
    std::vector<const ReportedRun*> with;
    for (const ReportedRun& run : runs) {
      if (k < run.result.evaluation.breakdowns.size()) with.push_back(&run);
    }
    const bool named = !runs[0].result.evaluation.breakdowns[k].labels.empty();
    plots.push_back(named ? bars_of(with, k) : lines_of(with, k));
  }
  return plots;
}

void save_report(const std::string& path, const std::vector<ReportedRun>& runs, const std::vector<Section>& sections) {
  if (runs.empty()) throw ConfigError("nothing to report");
  std::string names;
  for (const ReportedRun& run : runs) names += (names.empty() ? "" : ", ") + run.result.label;
  const TaskSpec& spec = *runs[0].spec;
  Report report(std::string(spec.name) + ": " + names, std::string(spec.summary));
  if (*spec.about != '\0') report.paragraph(spec.about);
  add_highlights(report, runs);
  report.section("Learning");
  if (runs[0].history.empty()) {
    report.paragraph("No evaluation has been made yet.");
  } else {
    std::vector<Drawing> curves;
    for (Plot plot : {loss_plot(runs), goal_plot(runs)}) {
      plot.width = kHalfWidth;
      plot.height = kHalfHeight;
      curves.push_back(draw_plot(plot));
    }
    report.figures(curves);
  }
  report.section("Result");
  report.paragraph(headline(runs));
  report.table(runs.size() <= kSideBySide ? transposed(result_table(runs)) : result_table(runs));
  for (const ReportedRun& run : runs) {
    for (const std::string& note : run.result.evaluation.notes) report.paragraph(run.result.label + ": " + note);
  }
  for (const Drawing& drawing : breakdown_plots(runs)) report.figure(drawing);
  for (const Section& section : sections) report.add(section);
  add_maps(report, runs);
  add_errors(report, runs);
  add_configuration(report, runs);
  report.save(path);
}

void save_run_report(Task& task, const ReportedRun& run) {
  save_report(run.result.run + "/report.html", {run}, task.report_sections());
}

std::vector<ReportedRun> first_seed_of(const std::vector<ReportedRun>& runs, int64_t seeds) {
  std::vector<ReportedRun> first;
  for (size_t i = 0; i < runs.size(); i += static_cast<size_t>(seeds)) first.push_back(runs[i]);
  return first;
}

void save_comparison_report(const std::string& folder, const std::vector<ReportedRun>& runs, int64_t seeds) {
  const std::vector<ReportedRun> first = first_seed_of(runs, seeds);
  if (have_pictures()) save_drawing(draw_plot(loss_plot(first)), folder + "/curves.svg");
  std::vector<Section> sections;
  if (seeds > 1) sections.push_back({"Over the seeds", {seed_table(runs), std::string(kAboutVariances)}});
  save_report(folder + "/report.html", first, sections);
}

Spread spread_of(const std::vector<double>& values) {
  Spread s;
  if (values.empty()) return s;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) s.mean += v / n;
  for (const double v : values) s.variance += (v - s.mean) * (v - s.mean) / n;
  return s;
}

}  // namespace qkv
