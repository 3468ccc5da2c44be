// Pages about runs.
#include "qkv/report/run_report.h"

#include <algorithm>

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
constexpr double kHalfWidth = 470, kHalfHeight = 250;

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

void save_comparison_report(const std::string& folder, const std::vector<ReportedRun>& runs, int64_t seeds) {
  const std::vector<ReportedRun> first = first_seed_of(runs, seeds);
  if (have_pictures()) save_drawing(draw_plot(loss_plot(first)), folder + "/curves.svg");
  std::vector<Section> sections;
  if (seeds > 1) sections.push_back({"Over the seeds", {seed_table(runs), std::string(kAboutVariances)}});
  save_report(folder + "/report.html", first, sections);
}

}  // namespace qkv
