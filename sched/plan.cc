#include "sched/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sched/edge_binding.h"
#include "storage/dataset.h"
#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMaxGroupRows = 2048;
constexpr std::int64_t kMinGroupRows = 128;
constexpr std::int64_t kGroupScratchBytes = 32 << 20;
constexpr std::int64_t kSliceAlignment = 64;
constexpr std::int64_t kTensorAlignment = 4096;

TensorLayout layout_of(const Value& value, const GraphCounts& graph) {
  return {graph.edges.vertices, value.cols, graph.edges.block_rows};
}

// For each value the first and the last stage that touches it; -1: none.
struct Lifetimes {
  std::vector<int> first, last;

  void touch(ValueId value, int stage) {
    int& begin = first[static_cast<std::size_t>(value)];
    if (begin < 0) begin = stage;
    last[static_cast<std::size_t>(value)] = stage;
  }
};

Lifetimes lifetimes_of(const Program& program) {
  Lifetimes lives{std::vector<int>(program.values.size(), -1),
                  std::vector<int>(program.values.size(), -1)};
  for (int i = 0; i < static_cast<int>(program.stages.size()); ++i) {
    const Stage& stage = program.stages[static_cast<std::size_t>(i)];
    if (stage.propagation) {
      for (const EdgeInput& input : stage.propagation->inputs) {
        if (input.vertex >= 0) lives.touch(input.vertex, i);
      }
      for (const EdgeFold& fold : stage.propagation->folds) {
        for (const ValueId value : fold.accumulators) lives.touch(value, i);
      }
    }
    for (const RowStep& step : stage.steps) {
      for (const ValueId value : step.inputs) lives.touch(value, i);
      for (const ValueId value : step.outputs) lives.touch(value, i);
    }
  }
  for (const ValueId value : program.outputs) {
    lives.touch(value, static_cast<int>(program.stages.size()) - 1);
  }
  return lives;
}

// Vertex values that must lie in memory: those that cross stages, accumulators, and outputs.
std::set<ValueId> resident_values(const Program& program, const Lifetimes& lives) {
  std::set<ValueId> resident(program.outputs.begin(), program.outputs.end());
  for (const Stage& stage : program.stages) {
    if (!stage.propagation) continue;
    for (const EdgeInput& input : stage.propagation->inputs) {
      if (input.vertex < 0) continue;
      OOC_CHECK(program.values[static_cast<std::size_t>(input.vertex)].kind == ValueKind::kVertex);
    }
    for (const EdgeFold& fold : stage.propagation->folds) {
      resident.insert(fold.accumulators.begin(), fold.accumulators.end());
    }
  }
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    if (program.values[id].kind == ValueKind::kVertex && lives.first[id] != lives.last[id]) {
      resident.insert(static_cast<ValueId>(id));
    }
  }
  return resident;
}

// First fit, largest tensor first: each at the lowest offset free during its whole lifetime.
void place(Plan& plan) {
  std::vector<std::size_t> by_size(plan.residences.size());
  for (std::size_t i = 0; i < by_size.size(); ++i) by_size[i] = i;
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return plan.residences[a].bytes > plan.residences[b].bytes;
  });
  std::vector<const Residence*> placed;
  for (const std::size_t i : by_size) {
    Residence& tensor = plan.residences[i];
    std::sort(placed.begin(), placed.end(),
              [](const Residence* a, const Residence* b) { return a->offset < b->offset; });
    for (const Residence* other : placed) {
      const bool together =
          tensor.first_pass <= other->last_pass && other->first_pass <= tensor.last_pass;
      const bool overlaps = tensor.offset < other->offset + other->bytes &&
                            other->offset < tensor.offset + tensor.bytes;
      if (together && overlaps) tensor.offset = other->offset + other->bytes;
    }
    placed.push_back(&tensor);
    plan.arena_bytes = std::max(plan.arena_bytes, tensor.offset + tensor.bytes);
  }
}

DType stored_dtype(const Value& value, const GraphCounts& graph) {
  const auto found = graph.stored_dtypes.find(value.name);
  return found == graph.stored_dtypes.end() ? value.dtype : found->second;
}

std::int64_t input_bytes(const Value& value, const GraphCounts& graph) {
  const TensorLayout layout = layout_of(value, graph);
  std::int64_t stride = 0;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    stride += layout.slice_stride(slice);
  }
  return stride * layout.rows * static_cast<std::int64_t>(dtype_bytes(stored_dtype(value, graph)));
}

bool is_converted(const Value& value, const GraphCounts& graph) {
  return value.kind == ValueKind::kInput && stored_dtype(value, graph) != value.dtype;
}

// Rows of a row group. They depend on the program and the block size alone, so that reductions, and
// with them results, depend neither on the plan nor on the type that inputs are stored in.
std::int64_t choose_group_rows(const Program& program, const std::set<ValueId>& values,
                               std::int64_t block_rows) {
  std::int64_t row_bytes = 0;
  for (const ValueId id : values) {
    const Value& value = program.values[static_cast<std::size_t>(id)];
    row_bytes += resident_bytes({1, value.cols, 1}, value.dtype);
  }
  std::int64_t rows = std::min(kMaxGroupRows, block_rows);
  while (rows > kMinGroupRows && rows * row_bytes > kGroupScratchBytes) rows /= 2;
  return rows;
}

Pass make_pass(const Program& program, const Stage& stage, const std::set<ValueId>& resident,
               const GraphCounts& graph) {
  Pass pass;
  pass.name = stage.name;
  pass.steps = stage.steps;
  std::set<ValueId> tensors, scratch, reductions, sizing;
  const auto sort_in = [&](ValueId id, bool output) {
    const Value& value = program.values[static_cast<std::size_t>(id)];
    if (value.kind == ValueKind::kReduction && output) reductions.insert(id);
    const bool in_place =
        value.kind == ValueKind::kInput ? !is_converted(value, graph) : resident.contains(id);
    if (value.kind == ValueKind::kInput && value.dtype == program.real) sizing.insert(id);
    if (value.kind == ValueKind::kInput || value.kind == ValueKind::kVertex) {
      (in_place ? tensors : scratch).insert(id);
    }
  };
  for (const RowStep& step : stage.steps) {
    for (const ValueId id : step.inputs) sort_in(id, false);
    for (const ValueId id : step.outputs) sort_in(id, true);
  }
  pass.tensors.assign(tensors.begin(), tensors.end());
  pass.reductions.assign(reductions.begin(), reductions.end());
  for (const ValueId id : scratch) sizing.insert(id);
  pass.group_rows = choose_group_rows(program, sizing, graph.edges.block_rows);
  for (const ValueId id : scratch) {
    const Value& value = program.values[static_cast<std::size_t>(id)];
    pass.scratch.push_back({id, pass.scratch_bytes, is_converted(value, graph)});
    pass.scratch_bytes +=
        round_up(resident_bytes({pass.group_rows, value.cols, pass.group_rows}, value.dtype),
                 kTensorAlignment);
  }
  for (const std::set<ValueId>* values : {&tensors, &scratch}) {
    for (const ValueId id : *values) {
      const Value& value = program.values[static_cast<std::size_t>(id)];
      if (value.kind == ValueKind::kInput && !graph.memory_inputs.contains(value.name)) {
        pass.bytes_read += input_bytes(value, graph);
      }
    }
  }
  return pass;
}

// A batch's values fill a good part of a level-2 cache, or, unfused, lie in memory.
std::int64_t choose_batch(const EdgeProgram& program, bool fuse) {
  constexpr std::int64_t kBatchBytes = 192 << 10;
  constexpr std::int64_t kMinEdges = 32, kMaxEdges = 512, kUnfusedEdges = 65536;
  if (!fuse) return kUnfusedEdges;
  EdgeProgram probe = program;
  probe.batch_edges = kMinEdges;
  const std::int64_t row_bytes = ceil_div(edge_scratch_bytes(probe), kMinEdges);
  const std::int64_t edges = row_bytes > 0 ? kBatchBytes / row_bytes / 8 * 8 : kMaxEdges;
  return std::clamp(edges, kMinEdges, kMaxEdges);
}

std::int64_t row_bytes(const EdgeProgram::Shape& shape) {
  return shape.cols * static_cast<std::int64_t>(dtype_bytes(shape.dtype));
}

// Of one edge: its rows read, its accumulators read and written, and, where a batch is too large
// for a cache, its values written once and read by every step and fold.
std::int64_t bytes_of_edge(const EdgeProgram& edges, bool fuse) {
  const auto value_bytes = [&](int value) {
    return row_bytes(edges.values[static_cast<std::size_t>(value)]);
  };
  std::int64_t bytes = 0;
  for (const EdgeProgram::Load& load : edges.loads) bytes += value_bytes(load.value);
  for (const EdgeProgram::Shape& shape : edges.accumulators) bytes += 2 * row_bytes(shape);
  if (fuse || is_plain_sum(edges)) return bytes;
  for (const EdgeProgram::Shape& shape : edges.values) bytes += row_bytes(shape);
  for (const EdgeProgram::Step& step : edges.steps) {
    for (const EdgeProgram::Operand& input : step.inputs) {
      if (!input.is_matrix) bytes += value_bytes(input.index);
    }
  }
  for (const EdgeProgram::FoldStep& fold : edges.folds) {
    for (const int value : fold.inputs) bytes += value_bytes(value);
  }
  return bytes;
}

void plan_propagation(const Program& program, const Propagation& propagation,
                      const GraphCounts& graph, const PlanOptions& options, Pass& pass) {
  pass.kind = PassKind::kPropagate;
  pass.propagation = propagation;
  pass.span_group = options.span_group > 0 ? std::min(options.span_group, graph.edges.span_count())
                                           : graph.edges.span_count();
  EdgeProgram edges = bind_edges(program, propagation, 1, 0).program;
  const bool by_slices = options.fuse_edges || is_plain_sum(edges);
  pass.slice_local_cols = by_slices ? propagation.slice_local_cols : 0;
  edges.slice_local_cols = pass.slice_local_cols;
  edges.batch_edges = pass.batch_edges = choose_batch(edges, options.fuse_edges);
  pass.edge_scratch_bytes = edge_scratch_bytes(edges);
  pass.bytes_moved += graph.edges.edges * bytes_of_edge(edges, options.fuse_edges);
  pass.bytes_read +=
      propagation.direction == Direction::kIn ? graph.edge_bytes_in : graph.edge_bytes_out;
  if (propagation.loops) {
    pass.bytes_read += graph.edges.vertices * kDegreeColumns * std::int64_t{sizeof(std::int32_t)};
  }
}

}  // namespace

std::int64_t resident_slice_offset(const TensorLayout& layout, DType dtype, std::int64_t slice) {
  std::int64_t offset = 0;
  for (std::int64_t s = 0; s < slice; ++s) {
    offset += round_up(
        layout.rows * layout.slice_stride(s) * static_cast<std::int64_t>(dtype_bytes(dtype)),
        kSliceAlignment);
  }
  return offset;
}

std::int64_t resident_bytes(const TensorLayout& layout, DType dtype) {
  return resident_slice_offset(layout, dtype, layout.slice_count());
}

Plan make_plan(const Program& program, const GraphCounts& graph, const PlanOptions& options) {
  const Lifetimes lives = lifetimes_of(program);
  const std::set<ValueId> resident = resident_values(program, lives);
  Plan plan;
  for (const Stage& stage : program.stages) {
    Pass pass = make_pass(program, stage, resident, graph);
    if (stage.propagation) plan_propagation(program, *stage.propagation, graph, options, pass);
    plan.scratch_bytes =
        std::max({plan.scratch_bytes, pass.scratch_bytes, pass.edge_scratch_bytes});
    for (const ValueId id : pass.tensors) {
      pass.bytes_moved +=
          resident_bytes(layout_of(program.values[static_cast<std::size_t>(id)], graph),
                         program.values[static_cast<std::size_t>(id)].dtype);
    }
    plan.bytes_moved += pass.bytes_moved;
    plan.bytes_read += pass.bytes_read;
    plan.passes.push_back(std::move(pass));
  }
  for (const ValueId id : resident) {
    const Value& value = program.values[static_cast<std::size_t>(id)];
    const auto at = static_cast<std::size_t>(id);
    const std::int64_t bytes =
        round_up(resident_bytes(layout_of(value, graph), value.dtype), kTensorAlignment);
    plan.residences.push_back({id, 0, bytes, lives.first[at], lives.last[at]});
  }
  place(plan);
  return plan;
}

}  // namespace ooc
