// The parameters of a module, or the state of an optimizer, in one safetensors file.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/parameter.h"
#include "qkv/io/safetensors.h"

namespace qkv {

/// Writes tensors under their names, atomically. Throws IoError.
void save_parameters(const std::string& path, const std::vector<NamedParameter>& tensors,
                     const SafetensorsMetadata& metadata = {});

/// Overwrites the tensors' numbers with the file's. The file must hold exactly these names, shapes and dtypes:
/// IoError names the first that is missing, wrongly shaped or not expected. Nothing is changed unless all fit.
void load_parameters(const std::string& path, const std::vector<NamedParameter>& tensors);
void load_parameters(const SafetensorsFile& file, const std::vector<NamedParameter>& tensors);

}  // namespace qkv
