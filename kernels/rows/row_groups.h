// A row program's groups of rows, and the views that its steps have of them, on any device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/spec/row_program.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc {

class RowGroups {
 public:
  explicit RowGroups(RowProgram program) : program_(std::move(program)) {
    for (const RowProgram::Operand& operand : program_.operands) {
      reductions_ += operand.place == Place::kReduction ? 1 : 0;
      scratch_.push_back(is_scratch(operand) ? scratch_rows(operand) : ScratchRows{});
    }
  }
  const RowProgram& program() const { return program_; }

  // Group after group: convert(operand, elements as stored, place in scratch, how many) for each
  // slice of what is stored in another type, then compute(number of the step, its call).
  template <class Convert, class Compute>
  void run(const RowCall& call, Convert&& convert, Compute&& compute) const {
    OOC_CHECK(call.operands.size() == program_.operands.size());
    std::span<void* const> partials = call.partials;
    for (std::int64_t row = 0; row < call.rows; row += program_.group_rows) {
      const std::int64_t rows = std::min(program_.group_rows, call.rows - row);
      const std::vector<MatrixView> views =
          views_of(call, call.first_row + row, rows, partials.first(reductions_), convert);
      partials = partials.subspan(reductions_);
      for (std::size_t i = 0; i < program_.steps.size(); ++i) {
        const RowProgram::Step& step = program_.steps[i];
        if (call.stored && step.skipped) continue;
        std::vector<MatrixView> inputs, outputs;
        for (const int at : step.inputs) inputs.push_back(views[static_cast<std::size_t>(at)]);
        for (const int at : step.outputs) outputs.push_back(views[static_cast<std::size_t>(at)]);
        compute(i, OperatorCall{inputs, outputs, step.attributes, call.state});
      }
    }
  }

 private:
  using Place = RowProgram::Place;

  // Bytes from the beginning of a lane's scratch.
  struct ScratchRows {
    std::int64_t first = 0, slice_stride = 0, last = 0;

    SlicedRows in(std::byte* scratch) const {
      return {scratch + first, slice_stride, scratch + last};
    }
  };

  static bool is_scratch(const RowProgram::Operand& operand) {
    return operand.place == Place::kScratch || operand.place == Place::kConverted;
  }

  ScratchRows scratch_rows(const RowProgram::Operand& operand) const {
    const std::int64_t count = ceil_div(operand.cols, kSliceWidth);
    const auto offset = [&](std::int64_t slice) {
      return scratch_slice_offset(program_.group_rows, operand.cols, operand.dtype, slice);
    };
    return {operand.scratch, count > 1 ? offset(1) : 0, operand.scratch + offset(count - 1)};
  }

  template <class Convert>
  static void for_each_slice(const RowProgram::Operand& operand, const SlicedRows& stored,
                             std::int64_t first, const MatrixView& to, Convert&& convert) {
    const std::int64_t count = to.slice_count();
    for (std::int64_t slice = 0; slice < count; ++slice) {
      const std::int64_t stride = to.stride(slice);
      const std::byte* rows =
          stored.slice(slice, count) +
          static_cast<std::size_t>(first * stride) * dtype_bytes(operand.stored);
      convert(operand, rows, to.slices.slice(slice, count), to.rows * stride);
    }
  }

  template <class Convert>
  std::vector<MatrixView> views_of(const RowCall& call, std::int64_t first, std::int64_t rows,
                                   std::span<void* const> partials, Convert&& convert) const {
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
      if (is_scratch(operand) && !(call.stored && operand.otherwise_stored)) {
        view.slices = scratch_[i].in(call.scratch);
      } else {
        view.slices = call.operands[i];
        view.row_offset = first;
      }
      if (operand.place == Place::kConverted) {
        for_each_slice(operand, call.operands[i], first, view, convert);
      }
      views.push_back(view);
    }
    return views;
  }

  RowProgram program_;
  std::size_t reductions_ = 0;
  std::vector<ScratchRows> scratch_;  // by operand
};

}  // namespace ooc
