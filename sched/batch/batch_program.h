// A program over batches without what copies rows that lie in memory already.
#pragma once

#include <vector>

#include "sched/plan/program.h"

namespace ooc {

// `copy`, `copy_ids` and `first_rows` of rows in memory give those rows; `extend_rows` gives the
// operand's memory, which has as many rows as the output, zeros beyond its own. Such steps are left
// out, and their outputs replaced by what they copy.
struct BatchProgram {
  Program program;                // with the values of the original
  std::vector<ValueId> rows_of;   // by value of the original: whose rows it has
  std::vector<int> memory_level;  // by value: of the rows that its memory has; at least its own
  std::vector<int> step_level;    // by stage: of the rows of its steps; -1: it has none
};

// Levels are as Value::level says; the steps of a stage that aren't left out have one. extend_rows
// of an input, steps of several levels, and operands with too few rows are a programmer's mistake.
BatchProgram lower_to_batches(const Program& program);

}  // namespace ooc
