// The table of commands.
#include "qkv/app/command.h"

namespace qkv::app {
namespace {

constexpr Command kCommands[] = {
    {"train", "trains a task's model in a run folder, or goes on with one", run_train},
    {"attend", "attention on arrays saved from NumPy (.npy): output, weights, gradients, maps", run_attend},
    {"explain", "every intermediate value of a small attention example", run_explain},
};

}  // namespace

std::span<const Command> command_table() { return kCommands; }

}  // namespace qkv::app
