// What each experiment's file provides to the table.
#pragma once

#include "qkv/lab/experiment.h"

namespace qkv::lab {

Settings copy_settings();
Result run_copy(const Settings& set);
Settings average_settings();
Result run_average(const Settings& set);
Settings kinds_settings();
Result run_kinds(const Settings& set);
Settings noisy_keys_settings();
Result run_noisy_keys(const Settings& set);
Settings two_heads_settings();
Result run_two_heads(const Settings& set);
Settings subspaces_settings();
Result run_subspaces(const Settings& set);
Settings beta_settings();
Result run_beta(const Settings& set);
Settings perturbed_key_settings();
Result run_perturbed_key(const Settings& set);
Settings elongated_key_settings();
Result run_elongated_key(const Settings& set);
Settings key_query_value_settings();
Result run_key_query_value(const Settings& set);
Settings identity_settings();
Result run_identity(const Settings& set);
Settings running_linear_settings();
Result run_running_linear(const Settings& set);
Settings convolution_settings();
Result run_convolution(const Settings& set);
Settings positions_settings();
Result run_positions(const Settings& set);
Settings cost_settings();
Result run_cost(const Settings& set);
Settings depth_settings();
Result run_depth(const Settings& set);
Settings masks_settings();
Result run_masks(const Settings& set);
Settings normalisers_settings();
Result run_normalisers(const Settings& set);
Settings worked_settings();
Result run_worked(const Settings& set);

}  // namespace qkv::lab
