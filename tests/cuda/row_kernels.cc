// Row operators on an emulated GPU, for the tests that the CPU's kernels pass, too.
#include <map>

#include "kernels/device/device_cuda.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "storage/base/errors.h"
#include "tests/kernels/run_kernel.h"
#include "tests/support/cuda/device_copies.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::testing {

// Each call in another order of threads. What the host keeps is changed as the device's memory was.
void run_on_device(std::string_view op, DType real, std::span<const OperandMemory> operands,
                   const Attributes& attributes, const StepSeed& run) {
  using cuda_emulation::Order;
  static int calls = 0;
  const int turn = calls++ % 3;
  cuda_emulation::reset({},
                        turn == 0   ? Order::kEager
                        : turn == 1 ? Order::kLazy
                                    : Order::kShuffled,
                        static_cast<std::uint64_t>(calls));
  cuda::Device device(0, 0);
  test::DeviceCopies copies(device);
  std::vector<cuda::GroupOperand> all;
  std::vector<std::byte*> there;
  for (const OperandMemory& operand : operands) {
    there.push_back(copies.of(std::vector<std::byte>(operand.bytes.begin(), operand.bytes.end())));
    MatrixView view = operand.view;
    view.slices.first += there.back() - operand.bytes.data();
    view.slices.last += there.back() - operand.bytes.data();
    all.emplace_back(copies.of(std::vector<cuda::GroupView>{cuda::GroupView(view)}), view);
  }
  const cuda::RowKernel kernel = cuda::row_kernel(op, real);
  OOC_CHECK(kernel != nullptr);
  if (operands.front().view.rows == 0) return;  // a group has rows
  const std::span<const cuda::GroupOperand> given(all);
  kernel({given.first(given.size() - 1), given.last(1), 1, attributes, run},
         device.queue(QueueKind::kCompute).stream());
  std::vector<std::byte> back(operands.back().bytes.size());
  copies.back(back, static_cast<const std::byte*>(there.back()));
  std::copy(back.begin(), back.end(), operands.back().bytes.begin());
}

}  // namespace ooc::testing
