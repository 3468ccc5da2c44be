// Tables and curves of runs.
#include "qkv/report/run_figures.h"

#include <algorithm>

#include "qkv/report/metric_text.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr double kWholeWidth = 640;

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

std::string breakdown_title(const Breakdown& b) { return capitalised(metric_label(b.metric) + " by " + b.by); }

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

}  // namespace

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
  const bool pictures = runs[0].spec->input == InputKind::picture;
  Plot plot{.title = "Loss",
            .x = Axis{.title = "epoch", .low = 0.0},
            .y = Axis{.title = pictures ? "loss per picture (nats)" : "loss per token (nats)", .low = 0.0}};
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
  Plot plot{.title = capitalised(metric_label(metric)) + " on the validation set",
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

std::vector<ReportedRun> first_seed_of(const std::vector<ReportedRun>& runs, int64_t seeds) {
  std::vector<ReportedRun> first;
  for (size_t i = 0; i < runs.size(); i += static_cast<size_t>(seeds)) first.push_back(runs[i]);
  return first;
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
