// Tables of text: aligned in the terminal, and as HTML.
#pragma once

#include <cstdint>
#include <string>

#include "qkv/figures/figures.h"
#include "qkv/view/terminal.h"

namespace qkv {

/// Whether the text reads as a number: "12", "-0.5", "99.2%", "1.2e-05", "3.1 s", "≥ 99%", "0.31 ± 0.02", "—".
bool looks_numeric(const std::string& text);

/// Lines no wider than the terminal: the widest text columns are broken into several lines where they must be, and a
/// word too long for its column is shortened in the middle; where words stay whole, lines may be wider.
enum class TableWords : uint8_t { shortened, whole };
std::string terminal_table(const Table& table, const Terminal& terminal, TableWords words = TableWords::shortened);
/// A <table> element, everything escaped.
std::string html_table(const Table& table);

}  // namespace qkv
