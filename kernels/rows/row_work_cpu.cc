#include "kernels/rows/row_work_cpu.h"

#include <utility>

#include "kernels/rows/row_groups.h"
#include "storage/base/errors.h"
#include "storage/base/half.h"

namespace ooc::cpu {
namespace {

class CpuRowWork final : public RowWork {
 public:
  CpuRowWork(RowProgram program, std::vector<RowKernel> kernels)
      : groups_(std::move(program)), kernels_(std::move(kernels)) {
    OOC_CHECK(kernels_.size() == groups_.program().steps.size());
  }

  void run(const RowCall& call) const override {
    groups_.run(call, convert,
                [this](std::size_t step, const OperatorCall& rows) { kernels_[step](rows); });
  }

 private:
  // Rows that are stored in another type than the steps read.
  static void convert(const RowProgram::Operand& operand, const SlicedRows& stored,
                      std::int64_t first, const MatrixView& to) {
    const std::int64_t count = to.slice_count();
    for (std::int64_t slice = 0; slice < count; ++slice) {
      const std::int64_t stride = to.stride(slice);
      const std::byte* rows =
          stored.slice(slice, count) +
          static_cast<std::size_t>(first * stride) * dtype_bytes(operand.stored);
      widen(operand.stored, rows, operand.dtype, to.slices.slice(slice, count),
            static_cast<std::size_t>(to.rows * stride));
    }
  }

  RowGroups groups_;
  std::vector<RowKernel> kernels_;  // by step
};

}  // namespace

std::unique_ptr<RowWork> make_row_work(RowProgram program, std::vector<RowKernel> kernels) {
  return std::make_unique<CpuRowWork>(std::move(program), std::move(kernels));
}

}  // namespace ooc::cpu
