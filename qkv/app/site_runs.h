// The runs of a site, packed: with their models, or recorded where a browser tab cannot run those.
#pragma once

#include <string>
#include <vector>

#include "qkv/io/file.h"

namespace qkv::app {

struct SiteRun {
  std::string id;  // a name for a file on any server
  Bytes archive;
  std::string recorded;  // why, and how many inputs; empty: the model itself is in it
};

struct SiteRunOptions {
  std::string inputs;  // a file of lines to record besides the examples; "" = none
  bool large;          // carry models of any size
  std::string work;    // a folder for what goes when the site is written
};

/// Throws what opening a run throws; ConfigError for an input that a run cannot read, and for inputs without a run that
/// is recorded.
std::vector<SiteRun> pack_for_site(const std::vector<std::string>& runs, const SiteRunOptions& options);

}  // namespace qkv::app
