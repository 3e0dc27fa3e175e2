#include "kernels/rows/row_work_cpu.h"

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"
#include "storage/base/half.h"
#include "storage/format/tensor_layout.h"

namespace ooc {

namespace cpu {
namespace {

using Place = RowProgram::Place;

bool is_scratch(const RowProgram::Operand& operand) {
  return operand.place == Place::kScratch || operand.place == Place::kConverted;
}

class CpuRowWork final : public RowWork {
 public:
  CpuRowWork(RowProgram program, std::vector<RowKernel> kernels)
      : program_(std::move(program)), kernels_(std::move(kernels)) {
    OOC_CHECK(kernels_.size() == program_.steps.size());
    for (const RowProgram::Operand& operand : program_.operands) {
      reductions_ += operand.place == Place::kReduction ? 1 : 0;
      scratch_.push_back(is_scratch(operand) ? scratch_rows(operand) : ScratchRows{});
    }
  }

  void run(const RowCall& call) const override {
    OOC_CHECK(call.operands.size() == program_.operands.size());
    std::span<void* const> partials = call.partials;
    for (std::int64_t row = 0; row < call.rows; row += program_.group_rows) {
      const std::int64_t rows = std::min(program_.group_rows, call.rows - row);
      run_group(call, call.first_row + row, rows, partials.first(reductions_));
      partials = partials.subspan(reductions_);
    }
  }

 private:
  // Bytes from the beginning of a lane's scratch.
  struct ScratchRows {
    std::int64_t first = 0, slice_stride = 0, last = 0;

    SlicedRows in(std::byte* scratch) const {
      return {scratch + first, slice_stride, scratch + last};
    }
  };

  ScratchRows scratch_rows(const RowProgram::Operand& operand) const {
    const std::int64_t count = ceil_div(operand.cols, kSliceWidth);
    const auto offset = [&](std::int64_t slice) {
      return scratch_slice_offset(program_.group_rows, operand.cols, operand.dtype, slice);
    };
    return {operand.scratch, count > 1 ? offset(1) : 0, operand.scratch + offset(count - 1)};
  }

  void run_group(const RowCall& call, std::int64_t first, std::int64_t rows,
                 std::span<void* const> partials) const {
    std::vector<MatrixView> views;
    views.reserve(program_.operands.size());
    auto partial = partials.begin();
    for (std::size_t i = 0; i < program_.operands.size(); ++i) {
      const RowProgram::Operand& operand = program_.operands[i];
      if (operand.place == Place::kMatrix || operand.place == Place::kReduction) {
        const bool read = operand.place == Place::kMatrix;
        views.push_back({operand.dtype, operand.rows, operand.cols, operand.cols, operand.cols, 0,
                         read ? call.operands[i] : one_slice(*partial++)});
        continue;
      }
      const TensorLayout layout{rows, operand.cols, rows};
      MatrixView view{operand.dtype,
                      rows,
                      operand.cols,
                      kSliceWidth,
                      layout.slice_stride(layout.slice_count() - 1),
                      0,
                      {}};
      const bool in_scratch = is_scratch(operand) && !(call.stored && operand.otherwise_stored);
      if (in_scratch) {
        view.slices = scratch_[i].in(call.scratch);
      } else {
        view.slices = call.operands[i];
        view.row_offset = first;
      }
      if (operand.place == Place::kConverted) convert(operand, call.operands[i], first, view);
      views.push_back(view);
    }
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const RowProgram::Step& step = program_.steps[i];
      if (!(call.stored && step.skipped)) compute(kernels_[i], step, views, call.state);
    }
  }

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

  static void compute(RowKernel kernel, const RowProgram::Step& step,
                      const std::vector<MatrixView>& views, const StepSeed& state) {
    std::vector<MatrixView> inputs, outputs;
    for (const int at : step.inputs) inputs.push_back(views[static_cast<std::size_t>(at)]);
    for (const int at : step.outputs) outputs.push_back(views[static_cast<std::size_t>(at)]);
    kernel({inputs, outputs, step.attributes, state});
  }

  RowProgram program_;
  std::vector<RowKernel> kernels_;  // by step
  std::size_t reductions_ = 0;
  std::vector<ScratchRows> scratch_;  // by operand
};

}  // namespace

std::unique_ptr<RowWork> make_row_work(RowProgram program, std::vector<RowKernel> kernels) {
  return std::make_unique<CpuRowWork>(std::move(program), std::move(kernels));
}

}  // namespace cpu
}  // namespace ooc
