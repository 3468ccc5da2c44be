// The page of the knowledge study.
#include "qkv/report/study_report.h"

#include "qkv/core/autograd.h"
#include "qkv/report/report.h"
#include "qkv/tasks/knowledge/knowledge.h"
#include "qkv/view/plot.h"
#include "qkv/view/text.h"

namespace qkv {
namespace {

constexpr double kHalfWidth = 470, kHalfHeight = 250;

std::string percent(double share) { return format_share(share, 3); }

// Right answers over epochs or over machine hours.
Plot curve_plot(const std::vector<StudyResult>& results, const Baseline& baseline, bool hours) {
  Plot plot{.title = hours ? "Right answers over reading time" : "Right answers over epochs",
            .x = Axis{.title = hours ? "machine hours of reading" : "epochs read", .low = 0.0},
            .y = Axis{.title = "exact match on dev (%)", .low = 0.0}};
  for (size_t i = 0; i < results.size(); ++i) {
    Series s{.name = results[i].row, .marks = Marks::kLineAndDots, .color = static_cast<int>(i)};
    for (const StudyPoint& p : results[i].points) {
      s.x.push_back(hours ? p.machine_hours : static_cast<double>(p.epochs));
      s.y.push_back(100 * p.exact_match);
    }
    plot.series.push_back(std::move(s));
  }
  plot.guides.push_back({100 * baseline.exact_match, "always " + baseline.answer, false});
  return plot;
}

Plot loss_plot(const std::vector<StudyResult>& results) {
  Plot plot{.title = "Loss of reading",
            .x = Axis{.title = "epochs read", .low = 0.0},
            .y = Axis{.title = "nats per character", .low = 0.0}};
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].row == "none") continue;
    Series s{.name = results[i].row, .marks = Marks::kLineAndDots, .color = static_cast<int>(i)};
    for (const StudyPoint& p : results[i].points) {
      if (!p.reading_loss) continue;
      s.x.push_back(static_cast<double>(p.epochs));
      s.y.push_back(*p.reading_loss);
    }
    plot.series.push_back(std::move(s));
  }
  return plot;
}

Table curve_table(const std::vector<StudyResult>& results) {
  Table table{
      .header = {"row", "epochs read", "machine hours", "loss of reading", "right on held pairs", "right on dev"}};
  for (const StudyResult& r : results) {
    for (const StudyPoint& p : r.points) {
      table.rows.push_back({r.row, std::to_string(p.epochs), format_number(p.machine_hours, 3),
                            p.reading_loss ? format_number(*p.reading_loss, 3) : "—", percent(p.held_match),
                            percent(p.exact_match)});
    }
  }
  return table;
}

const StudyPoint* best_point(const std::vector<StudyResult>& results) {
  const StudyPoint* best = nullptr;
  for (const StudyResult& r : results) {
    for (const StudyPoint& p : r.points) {
      if (p.epochs > 0 && (best == nullptr || p.exact_match > best->exact_match)) best = &p;
    }
  }
  return best;
}

void explain_recipes(Report& report, const StudyOptions& options) {
  const bool course = options.recipe == Recipe::course;
  report.section("The recipe");
  report.paragraph(std::string("Two ways of reading, of which this study took ") +
                   (course ? "the first." : "the second."));
  report.list(
      {"course: every text is read with one random span hidden, prefix ⁇ suffix ⁇ span ⁇, and afterwards the training "
       "pairs are learnt; nothing else is read. A fact is one span among all others, in the words of its text, and it "
       "has to be found again under a question that was only ever seen about other people. What is measured is what "
       "reading teaches. It takes many epochs, until the loss of reading is low, and a finetuning long enough.",
       "questions: a log-linear model of a name's neighbours, learnt from the training pairs, looks in each text for "
       "the name most like a birth place, and most texts are read as the very question they answer, with the place of "
       "the training pair where there is one and else with the name so found. The model is then asked what it was "
       "taught word for word, and the limit is how often that small reader is right (\"text open before it\"). It "
       "answers far more for that reason, and says little about reading. Nor does it tell attention from the "
       "synthesizer: every question has its name at the same place, so that fixed positions find it."});
  const double ask = options.reading.get_number("ask");
  if (ask > 0) report.paragraph("Here " + percent(ask) + " of the texts are read as questions.");
}

}  // namespace

Table study_table(const std::vector<StudyResult>& results, const Baseline& baseline) {
  Table table{.header = {"row", "parameters", "epochs read", "machine hours", "right on dev"}};
  table.rows.push_back({"always " + baseline.answer, "0", "0", "0", percent(baseline.exact_match)});
  if (baseline.open_book) table.rows.push_back({"text open before it", "0", "0", "0", percent(*baseline.open_book)});
  for (const StudyResult& r : results) {
    if (r.points.empty()) continue;
    const StudyPoint& p = r.points.back();
    table.rows.push_back({r.row, std::to_string(r.parameters), std::to_string(p.epochs),
                          format_number(p.machine_hours, 3), percent(p.exact_match)});
  }
  return table;
}

void save_study_report(const StudyOptions& options, const std::vector<StudyResult>& results, const Baseline& baseline,
                       const std::string& command) {
  const std::string& data = options.reading.get_text("data");
  Report report("knowledge: what reading is for",
                data.empty() ? "invented people and places" : "real people and places");
  report.paragraph(kKnowledgeAbout);
  std::vector<Highlight> cards;
  for (const StudyResult& r : results) {
    if (r.points.empty()) continue;
    const StudyPoint& p = r.points.back();
    cards.push_back({r.row, percent(p.exact_match), std::to_string(p.epochs) + " epochs read"});
  }
  report.highlights(cards);
  report.section("Result");
  report.table(study_table(results, baseline));
  explain_recipes(report, options);
  report.section("Over time");
  report.paragraph(
      "Each point is a separate finetuning from the weights of that moment. A machine hour is two hours of processor "
      "time: an hour of a machine with two cores, however busy it was.");
  std::vector<Drawing> curves;
  for (Plot plot : {curve_plot(results, baseline, false), curve_plot(results, baseline, true), loss_plot(results)}) {
    plot.width = kHalfWidth;
    plot.height = kHalfHeight;
    curves.push_back(draw_plot(plot));
  }
  report.figures(curves);
  report.table(curve_table(results));
  if (const StudyPoint* best = best_point(results)) {
    const RunFolder run = RunFolder::open(best->run);
    const auto task = run.make_task();
    run.load_weights(parameters_of(*task));
    const NoGrad no_grad;
    for (const Section& section : task->report_sections()) report.add(section);
  }
  report.section("Configuration");
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Setting& s : options.reading.all()) entries.emplace_back(s.name, s.value);
  const Finetuning& f = options.finetuning;
  entries.emplace_back("recipe", name_of(options.recipe));
  entries.emplace_back("answer-epochs", std::to_string(f.epochs));
  entries.emplace_back("answer-lr", format_number(f.lr, 3));
  entries.emplace_back("answer-batch", f.batch > 0 ? std::to_string(f.batch) : "as the reading");
  entries.emplace_back("alone-epochs", std::to_string(f.alone_epochs));
  entries.emplace_back("alone-lr", format_number(f.alone_lr, 3));
  report.settings(entries);
  report.paragraph("To continue, or to repeat it:");
  report.code("qkv study --resume " + options.folder + "\n" + command);
  report.save(options.folder + "/report.html");
}

}  // namespace qkv
