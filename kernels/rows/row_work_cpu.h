// Row programs on the CPU: step by step, group after group.
#pragma once

#include <memory>
#include <vector>

#include "kernels/spec/row_program.h"

namespace ooc::cpu {

// `kernels`: of its steps.
std::unique_ptr<RowWork> make_row_work(RowProgram program, std::vector<RowKernel> kernels);

}  // namespace ooc::cpu
