// The processors a process may use.
#pragma once

namespace qkv {

/// Those it may run on, and no more than its control group (a container's limit) lets it have; at least 1.
int usable_processors();

}  // namespace qkv
