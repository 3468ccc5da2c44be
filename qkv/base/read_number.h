// Reading a number from text, the same everywhere.
#pragma once

namespace qkv {

/// The number that [first, last) begins with, in the C locale; no space and no '+' before it. Returns where it ends,
/// and `first` where there is none or it is too large for a double.
const char* read_number(const char* first, const char* last, double& value);

}  // namespace qkv
