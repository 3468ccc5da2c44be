// The table of commands.
#include "qkv/app/command.h"

namespace qkv::app {
namespace {

constexpr Command kCommands[] = {
    {"learn", "lab", "nineteen experiments on what attention can and cannot do", run_lab, lab_topics},
    {"learn", "explain", "every intermediate value of a small attention example", run_explain,
     [] { return Arguments{"block"}; }},
    {"train", "train", "trains a task's model in a run folder, or continues one", run_train, task_topics},
    {"train", "compare", "one model for each attention mechanism, in one table and one picture", run_compare},
    {"train", "study", "what pretraining adds, in one command: one table, one report", run_study},
    {"train", "runs", "lists the runs there are; adds, removes and renames them", run_runs,
     [] {
       return Arguments{"rm", "rename", "add"};
     }},
    {"look", "map", "where a trained model looks: terminal, PNG, SVG, HTML or CSV", run_map},
    {"look", "serve", "the page in the browser: explore models, train, play with the lab", run_serve},
    {"look", "site", "the page as static files, computed in the visitor's browser", run_site},
    {"use", "predict", "runs a trained model on arguments or lines of standard input", run_predict},
    {"use", "attend", "attention on arrays saved from NumPy: output, weights, gradients", run_attend},
    {"measure", "eval", "the figures of a trained run, on its own data or yours", run_eval},
    {"measure", "bench", "how fast qkv is on this machine, and PyTorch beside it", run_bench},
};

}  // namespace

std::span<const Command> command_table() { return kCommands; }

}  // namespace qkv::app
