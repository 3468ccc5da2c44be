// The table of commands.
#include "qkv/app/command.h"

namespace qkv::app {
namespace {

constexpr Command kCommands[] = {
    {"learn", "lab", "what attention can and cannot do: nineteen experiments, predicted and measured", run_lab,
     lab_topics},
    {"learn", "explain", "every intermediate value of a small attention example", run_explain,
     [] { return Arguments{"block"}; }},
    {"train", "train", "trains a task's model in a run folder, or continues one", run_train, task_topics},
    {"train", "compare", "trains one model for each attention mechanism; one table, one picture", run_compare},
    {"train", "study", "a whole study in one command: every row trained and asked, one table, one report", run_study},
    {"train", "runs", "lists the runs there are; adds, removes and renames them", run_runs,
     [] {
       return Arguments{"rm", "rename", "add"};
     }},
    {"look", "map", "where a trained model looks: terminal, PNG, SVG, HTML or CSV", run_map},
    {"look", "serve", "the page in the browser: explore models, watch trainings, play with the lab", run_serve},
    {"look", "site", "the page with its runs as static files, computed in the visitor's browser", run_site},
    {"use", "predict", "runs a trained model on arguments or lines of standard input", run_predict},
    {"use", "attend", "attention on arrays saved from NumPy (.npy): output, weights, gradients, maps", run_attend},
    {"measure", "eval", "the figures of a trained run, on its own data or yours", run_eval},
    {"measure", "bench", "how fast the machine is, how fast qkv is on it, and PyTorch beside it", run_bench},
};

}  // namespace

std::span<const Command> command_table() { return kCommands; }

}  // namespace qkv::app
