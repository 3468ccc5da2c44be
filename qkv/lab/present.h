// A result for its readers: terminal, report, drawing and JSON.
#pragma once

#include <string>

#include "qkv/lab/experiment.h"
#include "qkv/report/report.h"
#include "qkv/view/table.h"

namespace qkv::lab {

/// Point, quantity, predicted, measured, difference, and how the difference is judged.
Table result_table(const Result& result);
/// "All 15 rows agree.", or how many do not; stopwatch rows are counted separately.
std::string verdict(const Result& result);

/// Claim, formula, table, pictures and notes as text for the terminal.
std::string terminal_result(const Experiment& experiment, const Result& result, const Terminal& terminal);
/// A section of a report.
void add_to_report(Report& report, const Experiment& experiment, const Settings& set, const Result& result);
/// All pictures of the result in one.
Drawing draw_result(const Experiment& experiment, const Result& result);

/// An object: name, summary, settings, claim, formula, formula_markup, rows, notes, agrees; with `pictures` also what
/// the pictures show. A number that is not finite is null.
std::string result_json(const Experiment& experiment, const Settings& set, const Result& result, bool pictures);

}  // namespace qkv::lab
