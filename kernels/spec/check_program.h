// Whether programs call operators as kernels/spec/row_kernels.h says: checked when a program is
// made ready for a device, so that no kernel checks its calls.
#pragma once

#include "kernels/spec/edge_program.h"
#include "kernels/spec/row_program.h"

namespace ooc {

// OOC_CHECKs the shapes, types and slices of every step's operands; those of operators that aren't
// built in are their kernel's to check.
void check_program(const RowProgram& program);
void check_program(const EdgeProgram& program);

}  // namespace ooc
