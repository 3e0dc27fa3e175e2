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

  // Whether the call does a step.
  static bool does(const RowCall& call, const RowProgram::Step& step) {
    return !(call.stored && step.skipped);
  }

  // Of a group's operands. Of those that are converted: where they go.
  std::vector<MatrixView> views_of(const RowCall& call, const RowGroup& group) const {
    OOC_CHECK(group.operands.size() == program_.operands.size() &&
              group.partials.size() == reductions_ && group.rows <= program_.group_rows);
    std::vector<MatrixView> views;
    views.reserve(program_.operands.size());
    auto partial = group.partials.begin();
    for (std::size_t i = 0; i < program_.operands.size(); ++i) {
      const RowProgram::Operand& operand = program_.operands[i];
      if (operand.place == Place::kMatrix || operand.place == Place::kReduction) {
        const bool read = operand.place == Place::kMatrix;
        views.push_back({operand.dtype, operand.rows, operand.cols, operand.cols, operand.cols, 0,
                         read ? group.operands[i] : one_slice(*partial++)});
        continue;
      }
      const TensorLayout layout{group.rows, operand.cols, group.rows};
      MatrixView& view =
          views.emplace_back(MatrixView{operand.dtype, group.rows, operand.cols, kSliceWidth,
                                        layout.slice_stride(layout.slice_count() - 1)});
      if (is_scratch(operand) && !(call.stored && operand.otherwise_stored)) {
        view.slices = scratch_[i].in(group.scratch);
      } else {
        view.slices = group.operands[i];
        view.row_offset = group.first_row;
      }
    }
    return views;
  }

  // Calls convert(operand, elements as stored, place in scratch, how many) for each slice of what
  // is stored in another type.
  template <class Convert>
  void for_each_conversion(const RowGroup& group, std::span<const MatrixView> views,
                           Convert&& convert) const {
    for (std::size_t i = 0; i < program_.operands.size(); ++i) {
      const RowProgram::Operand& operand = program_.operands[i];
      if (operand.place != Place::kConverted) continue;
      const std::int64_t count = views[i].slice_count();
      for (std::int64_t slice = 0; slice < count; ++slice) {
        const std::int64_t stride = views[i].stride(slice);
        const std::byte* rows =
            group.operands[i].slice(slice, count) +
            static_cast<std::size_t>(group.first_row * stride) * dtype_bytes(operand.stored);
        convert(operand, rows, views[i].slices.slice(slice, count), views[i].rows * stride);
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

  RowProgram program_;
  std::size_t reductions_ = 0;
  std::vector<ScratchRows> scratch_;  // by operand
};

}  // namespace ooc
