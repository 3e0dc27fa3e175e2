#include "sched/bound_pass.h"

#include <algorithm>
#include <set>

#include "storage/errors.h"
#include "storage/tensor_layout.h"

namespace ooc {
namespace {

const Value& value_of(const Program& program, ValueId id) {
  return program.values[static_cast<std::size_t>(id)];
}

MatrixView sliced_view(const Value& value, std::int64_t rows, std::int64_t row_offset,
                       void* const* slices) {
  const TensorLayout layout{rows, value.cols, rows};
  return {
      value.dtype, rows,  value.cols, kSliceWidth, layout.slice_stride(layout.slice_count() - 1),
      row_offset,  slices};
}

}  // namespace

BoundPass bind_pass(Backend& backend, const Program& program, const Pass& pass) {
  BoundPass bound;
  bound.pass = &pass;
  std::set<ValueId> matrices;
  for (const RowStep& step : pass.steps) {
    bound.steps.push_back({backend.row_kernel(step.op, program.real), &step});
    for (const ValueId id : step.inputs) {
      const ValueKind kind = value_of(program, id).kind;
      if (kind == ValueKind::kParameter || kind == ValueKind::kReduction) matrices.insert(id);
    }
  }
  bound.matrices.assign(matrices.begin(), matrices.end());
  if (pass.kind == PassKind::kPropagate) {
    bound.edges = bind_edges(program, pass.propagation, pass.batch_edges, pass.slice_local_cols);
    bind_kernels(backend, pass.propagation, bound.edges);
    bound.edge_kernel = backend.edge_kernel(bound.edges.program);
  }
  return bound;
}

GroupOperands::GroupOperands(const Program& program, const BoundPass& pass)
    : program_(program), pass_(pass), views_(program.values.size()) {
  std::int64_t slices =
      static_cast<std::int64_t>(pass.matrices.size() + pass.pass->reductions.size());
  for (const Scratch& scratch : pass.pass->scratch) {
    slices += ceil_div(value_of(program, scratch.value).cols, kSliceWidth);
  }
  pointers_.reserve(static_cast<std::size_t>(slices));
}

void** GroupOperands::pointers(std::int64_t count) {
  const std::size_t at = pointers_.size();
  OOC_CHECK(at + static_cast<std::size_t>(count) <= pointers_.capacity());
  pointers_.resize(at + static_cast<std::size_t>(count));
  return pointers_.data() + at;
}

void GroupOperands::add_tensors(std::span<void* const> slices, std::int64_t begin,
                                std::int64_t count) {
  std::size_t at = 0;
  for (const ValueId id : pass_.pass->tensors) {
    const Value& value = value_of(program_, id);
    views_[static_cast<std::size_t>(id)] = sliced_view(value, count, begin, slices.data() + at);
    at += static_cast<std::size_t>(ceil_div(value.cols, kSliceWidth));
  }
}

void GroupOperands::add_scratch(std::byte* data, std::int64_t count) {
  for (const auto& [id, offset, converted] : pass_.pass->scratch) {
    const Value& value = value_of(program_, id);
    const TensorLayout layout{pass_.pass->group_rows, value.cols, pass_.pass->group_rows};
    void** slices = pointers(layout.slice_count());
    for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
      slices[slice] = data + offset + resident_slice_offset(layout, value.dtype, slice);
    }
    views_[static_cast<std::size_t>(id)] = sliced_view(value, count, 0, slices);
  }
}

void GroupOperands::add_matrix(ValueId id, void* data) {
  const Value& value = value_of(program_, id);
  void** slice = pointers(1);
  *slice = data;
  views_[static_cast<std::size_t>(id)] = {value.dtype, value.rows, value.cols, value.cols,
                                          value.cols,  0,          slice};
}

void GroupOperands::call(const BoundStep& step, const RunState& state) {
  std::vector<MatrixView> inputs, outputs;
  for (const ValueId id : step.step->inputs) inputs.push_back(views_[static_cast<std::size_t>(id)]);
  for (const ValueId id : step.step->outputs) {
    outputs.push_back(views_[static_cast<std::size_t>(id)]);
  }
  step.kernel({inputs, outputs, step.step->attributes, state});
}

}  // namespace ooc
