#include "kernels/spec/check_program.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/spec/row_kernels.h"
#include "storage/format/tensor_layout.h"

namespace ooc {
namespace {

constexpr std::int64_t kRows = 1;  // of a group or a batch: any number

MatrixView rows_view(std::int64_t cols, DType dtype) {
  const TensorLayout layout{kRows, cols, kRows};
  return {dtype, kRows, cols, kSliceWidth, layout.slice_stride(layout.slice_count() - 1), 0, {}};
}

MatrixView matrix_view(std::int64_t rows, std::int64_t cols, DType dtype) {
  return {dtype, rows, cols, cols, cols, 0, {}};
}

void check_step(std::string_view op, DType real, const std::vector<MatrixView>& inputs,
                const std::vector<MatrixView>& outputs, const Attributes& attributes) {
  const auto specs = row_kernel_specs();
  const auto spec = std::find_if(specs.begin(), specs.end(),
                                 [&](const RowKernelSpec& each) { return each.name == op; });
  if (spec != specs.end()) check_call(*spec, real, {inputs, outputs, attributes, {}});
}

// With slice-local columns as the slice at hand has them.
void check_edges(const EdgeProgram& program, std::int64_t slice_cols) {
  const auto cols_of = [&](std::int64_t cols) {
    return cols == program.slice_local_cols ? slice_cols : cols;
  };
  const auto view = [&](const EdgeProgram::Operand& operand) {
    const auto at = static_cast<std::size_t>(operand.index);
    if (operand.is_matrix) {
      const EdgeProgram::Matrix& matrix = program.matrices[at];
      return matrix_view(matrix.rows, cols_of(matrix.cols), matrix.dtype);
    }
    return rows_view(cols_of(program.values[at].cols), program.values[at].dtype);
  };
  for (const EdgeProgram::Step& step : program.steps) {
    std::vector<MatrixView> inputs;
    for (const EdgeProgram::Operand& input : step.inputs) inputs.push_back(view(input));
    check_step(step.op, program.real, inputs, {view(step.output)}, step.attributes);
  }
}

}  // namespace

void check_program(const RowProgram& program) {
  const auto views = [&](const std::vector<int>& operands) {
    std::vector<MatrixView> found;
    for (const int at : operands) {
      const RowProgram::Operand& operand = program.operands[static_cast<std::size_t>(at)];
      const bool is_matrix = operand.place == RowProgram::Place::kMatrix ||
                             operand.place == RowProgram::Place::kReduction;
      found.push_back(is_matrix ? matrix_view(operand.rows, operand.cols, operand.dtype)
                                : rows_view(operand.cols, operand.dtype));
    }
    return found;
  };
  for (const RowProgram::Step& step : program.steps) {
    check_step(step.op, program.real, views(step.inputs), views(step.outputs), step.attributes);
  }
}

void check_program(const EdgeProgram& program) {
  if (program.slice_local_cols == 0) return check_edges(program, 0);
  const TensorLayout layout{kRows, program.slice_local_cols, kRows};
  check_edges(program, layout.slice_cols(0));
  check_edges(program, layout.slice_cols(layout.slice_count() - 1));
}

}  // namespace ooc
