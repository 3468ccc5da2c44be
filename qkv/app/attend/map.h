// The picture of a result of the attend command: one heat map of the weights for each batch entry and head.
#pragma once

#include <string>

#include "qkv/app/attend/attend.h"
#include "qkv/io/file.h"

namespace qkv::app {

inline constexpr int64_t kMapPanels = 24;  // more batch entries and heads are left out, and the picture states it

/// The bytes of a PNG or SVG file, by the ending of `path`: a map under one colour bar for each batch entry and head,
/// hidden cells hatched. Long sequences show the largest weight of a block of cells, in memory linear in the length.
/// Throws ConfigError for any other ending.
Bytes draw_map(const AttendResult& result, const std::string& path);

/// Throws ConfigError unless the path ends in .png or .svg.
void check_map_path(const std::string& path);

}  // namespace qkv::app
