// The table of commands.
#include "qkv/app/command.h"

namespace qkv::app {
namespace {

constexpr Command kCommands[] = {
    {"train", "trains a task's model in a run folder, or continues one", run_train},
    {"compare", "trains one model for each attention mechanism; one table, one picture", run_compare},
    {"study", "a whole study in one command: every row trained and asked, one table, one report", run_study},
    {"eval", "the figures of a trained run, on its own data or yours", run_eval},
    {"predict", "runs a trained model on arguments or lines of standard input", run_predict},
    {"map", "where a trained model looks: terminal, PNG, SVG, HTML or CSV", run_map},
    {"attend", "attention on arrays saved from NumPy (.npy): output, weights, gradients, maps", run_attend},
    {"explain", "every intermediate value of a small attention example", run_explain},
    {"serve", "the page in the browser: explore models, watch trainings, play with the lab", run_serve},
    {"bench", "how fast the machine is, how fast qkv is on it, and PyTorch beside it", run_bench},
    {"lab", "what attention can and cannot do: nineteen experiments, predicted and measured", run_lab},
};

}  // namespace

std::span<const Command> command_table() { return kCommands; }

}  // namespace qkv::app
