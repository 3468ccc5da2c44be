// qkv lab: lists the experiments, runs one, or runs all of them into one report.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>

#include "qkv/app/cli.h"
#include "qkv/base/error.h"
#include "qkv/io/file.h"
#include "qkv/lab/present.h"
#include "qkv/view/terminal.h"
#include "qkv/view/text.h"

namespace qkv::app {
namespace {

using lab::Experiment;
using lab::Result;

struct Output {
  bool json = false;
  std::string path;     // --out; empty: none
  int64_t picture = 0;  // --picture; 0: all
};

enum class Format { html, picture };
// Checked before the experiments run.
Format format_of(const std::string& path) {
  require_pictures(path);
  for (const char* ending : {".html", ".svg", ".png"}) {
    if (path.ends_with(ending)) return path.ends_with(".html") ? Format::html : Format::picture;
  }
  throw ConfigError("--out: '" + path + "' ends in none of .html, .svg, .png");
}

void add_output(Cli& cli, Output& out) {
  cli.flag("--json", out.json, "print everything as JSON");
  cli.text("--out", out.path, "FILE", "also write an illustrated report (.html) or the pictures alone (.svg, .png)");
}

std::string experiment_list() {
  std::string text;
  for (const Experiment& e : lab::experiment_table()) text += "  " + pad_right(e.name, 17) + e.summary + "\n";
  return text;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Report new_report() {
  return Report("The attention lab", "What attention can and cannot do: predicted by formula, measured by the library.")
      .with_formulas();
}

Drawing picture_of(const Experiment& experiment, const Result& result, int64_t n) {
  const auto count = static_cast<int64_t>(result.pictures.size());
  if (n > count) {
    throw ConfigError("--picture " + std::to_string(n) + ": '" + experiment.name + "' has " + std::to_string(count) +
                      (count == 1 ? " picture" : " pictures"));
  }
  return lab::draw_picture(result.pictures[static_cast<size_t>(n - 1)]);
}

int run_one(const Experiment& experiment, const Arguments& arguments) {
  Cli cli(experiment.summary, std::string("lab ") + experiment.name);
  Settings settings = experiment.settings();
  Output out;
  cli.settings(settings);
  add_output(cli, out);
  cli.integer("--picture", out.picture, "write this picture alone into the .svg or .png, counted from 1 [all]", 1, 9);
  if (!cli.parse(arguments)) return 0;
  const bool html = !out.path.empty() && format_of(out.path) == Format::html;

  const Result result = experiment.run(settings);
  const std::optional<Drawing> one =
      out.picture > 0 ? std::optional(picture_of(experiment, result, out.picture)) : std::nullopt;
  if (out.json) {
    print(lab::result_json(experiment, settings, result, true) + "\n");
  } else {
    print(lab::terminal_result(experiment, result, detect_terminal(STDOUT_FILENO)));
  }
  if (html) {
    Report report = new_report();
    lab::add_to_report(report, experiment, settings, result);
    report.save(out.path);
  } else if (!out.path.empty()) {
    save_drawing(one ? *one : lab::draw_result(experiment, result), out.path);
  }
  if (!out.path.empty() && !out.json) std::printf("\nwrote %s\n", out.path.c_str());
  return 0;
}

struct Finished {
  const Experiment* experiment;
  Settings settings;
  Result result;
  double seconds = 0;
};

Finished finish(const Experiment& experiment, const std::string& seed) {
  Finished f{&experiment, experiment.settings(), {}, 0};
  if (!seed.empty() && f.settings.has("seed")) f.settings.set("seed", seed);
  const auto start = std::chrono::steady_clock::now();
  f.result = experiment.run(f.settings);
  f.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return f;
}

void save_all(const std::vector<Finished>& all, const std::string& path) {
  if (format_of(path) == Format::html) {
    Report report = new_report();
    for (const Finished& f : all) lab::add_to_report(report, *f.experiment, f.settings, f.result);
    report.save(path);
    return;
  }
  std::vector<Drawing> drawings;
  for (const Finished& f : all) {
    if (!f.result.pictures.empty()) drawings.push_back(lab::draw_picture(f.result.pictures[0]));
  }
  save_drawing(arrange("The attention lab", std::move(drawings), 2), path);
}

int run_all(const Arguments& arguments) {
  Cli cli("runs every experiment with its default parameters and writes one illustrated report", "lab all");
  Output out;
  std::string seed;
  add_output(cli, out);
  cli.text("--seed", seed, "N", "seed of every experiment that draws [each one's own]");
  if (!cli.parse(arguments)) return 0;
  if (out.path.empty() && !out.json) out.path = "lab.html";
  if (!out.path.empty()) format_of(out.path);

  std::vector<Finished> all;
  std::string json;
  for (const Experiment& experiment : lab::experiment_table()) {
    all.push_back(finish(experiment, seed));
    const Finished& f = all.back();
    if (out.json) {
      json += (json.empty() ? "" : ",\n") + lab::result_json(experiment, f.settings, f.result, false);
    } else {
      std::printf("%-16s %-50s %7.0f ms\n", experiment.name, lab::verdict(f.result).c_str(), 1e3 * f.seconds);
      std::fflush(stdout);
    }
  }
  if (out.json) {
    int64_t wrong = 0;
    for (const Finished& f : all) wrong += f.result.disagreements();
    print("{\"agrees\": " + std::string(wrong == 0 ? "true" : "false") + ",\n\"experiments\": [\n" + json + "\n]}\n");
  }
  if (!out.path.empty()) save_all(all, out.path);
  if (!out.json) std::printf("\nwrote %s\n", out.path.c_str());
  return 0;
}

}  // namespace

Arguments lab_topics() {
  Arguments names;
  for (const Experiment& e : lab::experiment_table()) names.emplace_back(e.name);
  names.emplace_back("all");
  return names;
}

int run_lab(const Arguments& arguments) {
  const std::string name = arguments.empty() ? "--help" : arguments[0];
  if (name.starts_with("-")) {
    Cli cli("What attention can and cannot do, predicted and measured.", "lab");
    std::string none;
    cli.text("NAME", none, "NAME",
             "an experiment ('qkv lab NAME --help' lists its parameters), or 'all': every one, into one illustrated "
             "report (lab.html)")
        .among(lab_topics())
        .required();
    cli.footer("Experiments:\n" + experiment_list());
    cli.parse(arguments.empty() ? Arguments{name} : arguments);
    return 0;
  }
  const Arguments rest(arguments.begin() + 1, arguments.end());
  return name == "all" ? run_all(rest) : run_one(lab::find_experiment(name), rest);
}

}  // namespace qkv::app
