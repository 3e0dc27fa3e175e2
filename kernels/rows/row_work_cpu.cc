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
    groups_.run(
        call,
        [](const RowProgram::Operand& operand, const void* rows, void* to, std::int64_t count) {
          widen(operand.stored, rows, operand.dtype, to, static_cast<std::size_t>(count));
        },
        [this](std::size_t step, const OperatorCall& rows) { kernels_[step](rows); });
  }

 private:
  RowGroups groups_;
  std::vector<RowKernel> kernels_;  // by step
};

}  // namespace

std::unique_ptr<RowWork> make_row_work(RowProgram program, std::vector<RowKernel> kernels) {
  return std::make_unique<CpuRowWork>(std::move(program), std::move(kernels));
}

}  // namespace ooc::cpu
