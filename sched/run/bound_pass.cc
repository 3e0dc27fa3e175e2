#include "sched/run/bound_pass.h"

#include <algorithm>
#include <set>

#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

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

namespace {

// The use through which steps find a value; a destination range's own memory before anything that
// streams by.
std::size_t find_use(const Pass& pass, ValueId value) {
  const auto rank = [](UseRole role) {
    switch (role) {
      case UseRole::kAccumulator:
      case UseRole::kResident:
        return 0;
      case UseRole::kRows:
      case UseRole::kOutput:
        return 1;
      case UseRole::kStreamed:
        return 2;
    }
    return 2;
  };
  std::size_t found = pass.uses.size();
  for (std::size_t i = 0; i < pass.uses.size(); ++i) {
    if (pass.uses[i].value != value || rank(pass.uses[i].role) == 2) continue;
    if (found == pass.uses.size() || rank(pass.uses[i].role) < rank(pass.uses[found].role)) {
      found = i;
    }
  }
  OOC_CHECK(found < pass.uses.size());
  return found;
}

void bind_operands(const Program& program, const Pass& pass, BoundPass& bound) {
  std::set<ValueId> in_scratch, matrices, in_place;
  for (const Scratch& scratch : pass.scratch) {
    in_scratch.insert(scratch.value);
    if (scratch.converted) {
      bound.converted.push_back({scratch.value, find_use(pass, scratch.value)});
    }
  }
  const auto sort_in = [&](ValueId id, bool output) {
    const ValueKind kind = value_of(program, id).kind;
    if (kind == ValueKind::kInput || kind == ValueKind::kVertex) {
      if (!in_scratch.contains(id)) in_place.insert(id);
    } else if (!output) {
      matrices.insert(id);
    }
  };
  for (const RowStep& step : pass.steps) {
    for (const ValueId id : step.inputs) sort_in(id, false);
    for (const ValueId id : step.outputs) sort_in(id, true);
  }
  for (const ValueId id : in_place) bound.operands.push_back({id, find_use(pass, id)});
  for (const Scratch& scratch : pass.scratch) {
    const bool kept = std::any_of(pass.uses.begin(), pass.uses.end(), [&](const TensorUse& use) {
      return use.value == scratch.value && !scratch.converted;
    });
    if (kept) bound.kept.push_back({scratch.value, find_use(pass, scratch.value)});
  }
  bound.matrices.assign(matrices.begin(), matrices.end());
}

}  // namespace

BoundPass bind_pass(Backend& backend, const Program& program, const Pass& pass,
                    const EdgeLayout& edges) {
  BoundPass bound;
  bound.pass = &pass;
  for (const RowStep& step : pass.steps) {
    bound.steps.push_back({backend.row_kernel(step.op, program.real), &step});
  }
  bind_operands(program, pass, bound);
  if (pass.kind == PassKind::kPropagate) {
    bound.edges = bind_edges(program, pass.propagation, pass.batch_edges, pass.slice_local_cols);
    bind_kernels(backend, pass.propagation, bound.edges);
    bound.edge_kernel = backend.edge_kernel(bound.edges.program);
  }
  if (pass.steps.empty()) return bound;
  const std::int64_t blocks = edges.block_count();
  const std::int64_t last_rows = edges.vertices - (blocks - 1) * edges.block_rows;
  bound.groups_per_block = ceil_div(edges.block_rows, pass.group_rows);
  bound.groups_per_step = ceil_div(pass.step_rows, pass.group_rows);
  OOC_CHECK(pass.step_rows == edges.block_rows || pass.step_rows % pass.group_rows == 0);
  bound.group_count = (blocks - 1) * bound.groups_per_block + ceil_div(last_rows, pass.group_rows);
  return bound;
}

std::int64_t scratch_slice_offset(const TensorLayout& group, DType dtype, std::int64_t slice) {
  std::int64_t offset = 0;
  for (std::int64_t s = 0; s < slice; ++s) {
    const std::int64_t row_bytes =
        group.slice_stride(s) * static_cast<std::int64_t>(dtype_bytes(dtype));
    offset += round_up(group.rows * row_bytes, 64);
  }
  return offset;
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
  add(pass_.operands, slices, begin, count);
}

void GroupOperands::add_kept(std::span<void* const> slices, std::int64_t begin,
                             std::int64_t count) {
  add(pass_.kept, slices, begin, count);
}

void GroupOperands::add(const std::vector<BoundOperand>& operands, std::span<void* const> slices,
                        std::int64_t begin, std::int64_t count) {
  std::size_t at = 0;
  for (const BoundOperand& operand : operands) {
    const Value& value = value_of(program_, operand.value);
    views_[static_cast<std::size_t>(operand.value)] =
        sliced_view(value, count, begin, slices.data() + at);
    at += static_cast<std::size_t>(ceil_div(value.cols, kSliceWidth));
  }
}

void GroupOperands::add_scratch(std::byte* data, std::int64_t count) {
  for (const auto& [id, offset, converted] : pass_.pass->scratch) {
    const Value& value = value_of(program_, id);
    const TensorLayout layout{pass_.pass->group_rows, value.cols, pass_.pass->group_rows};
    void** slices = pointers(layout.slice_count());
    for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
      slices[slice] = data + offset + scratch_slice_offset(layout, value.dtype, slice);
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

void GroupOperands::call(const BoundStep& step, const StepSeed& state) {
  std::vector<MatrixView> inputs, outputs;
  for (const ValueId id : step.step->inputs) inputs.push_back(views_[static_cast<std::size_t>(id)]);
  for (const ValueId id : step.step->outputs) {
    outputs.push_back(views_[static_cast<std::size_t>(id)]);
  }
  step.kernel({inputs, outputs, step.step->attributes, state});
}

}  // namespace ooc
