#include "tests/kernels/run_kernel.h"

namespace ooc::testing {

void run_on_device(std::string_view op, DType real, std::span<const OperandMemory> operands,
                   const Attributes& attributes, const StepSeed& run) {
  std::vector<MatrixView> views;
  for (const OperandMemory& operand : operands) views.push_back(operand.view);
  const std::span<const MatrixView> all(views);
  cpu_row_kernel(op, real)({all.first(all.size() - 1), all.last(1), attributes, run});
}

}  // namespace ooc::testing
