#include "sched/plan/passes/stages.h"

#include <algorithm>
#include <cmath>

#include "kernels/spec/row_kernels.h"
#include "kernels/spec/row_program.h"
#include "sched/plan/passes/edge_binding.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMinGroupRows = 128;
// Of a worker's scratch, and of a lane's.
constexpr std::int64_t kGroupScratchBytes = 32 << 20, kLaneScratchBytes = 128 << 20;
constexpr std::int64_t kTensorAlignment = 4096;
// Where at most so many vertices are in the train split, choosing the edges that count takes less
// than it saves, also in tiles that are dense (bench/gather_bench.cc).
constexpr double kMostTrainShare = 0.125;
// Edges of a row in a task. Of more, in dense tiles or many spans at once, it gains little
// (bench/notes/planning.md).
constexpr double kMostGained = 2;

const Value& value_of(const Program& program, ValueId id) {
  return program.values[static_cast<std::size_t>(id)];
}

std::int64_t scratch_bytes(std::int64_t rows, const Value& value) {
  return scratch_slice_offset(rows, value.cols, value.dtype, ceil_div(value.cols, kSliceWidth));
}

// A batch's values fill a good part of a level-2 cache, or, unfused, lie in memory.
std::int64_t choose_batch(const EdgeProgram& program, bool fuse) {
  constexpr std::int64_t kBatchBytes = 192 << 10;
  constexpr std::int64_t kMinEdges = 32, kMaxEdges = 512, kUnfusedEdges = 65536;
  if (!fuse && !is_plain_sum(program)) return kUnfusedEdges;
  EdgeProgram probe = program;
  probe.batch_edges = kMinEdges;
  const std::int64_t row_bytes = ceil_div(edge_scratch_bytes(probe), kMinEdges);
  const std::int64_t edges = row_bytes > 0 ? kBatchBytes / row_bytes / 8 * 8 : kMaxEdges;
  return std::clamp(edges, kMinEdges, kMaxEdges);
}

std::int64_t row_bytes(const EdgeProgram::Shape& shape) {
  return shape.cols * static_cast<std::int64_t>(dtype_bytes(shape.dtype));
}

// What the edges read lies whole in memory, span by span: rows beside each other across I/O chunks.
void check_edge_input(const Value& value, const GraphCounts& graph) {
  OOC_CHECK(value.kind == ValueKind::kVertex || value.kind == ValueKind::kInput);
  if (value.kind == ValueKind::kVertex) return;
  OOC_CHECK(!is_converted(value, graph));
}

}  // namespace

DType stored_dtype(const Value& value, const GraphCounts& graph) {
  const auto found = graph.stored_dtypes.find(value.name);
  return found == graph.stored_dtypes.end() ? value.dtype : found->second;
}

bool is_converted(const Value& value, const GraphCounts& graph) {
  return value.kind == ValueKind::kInput && stored_dtype(value, graph) != value.dtype;
}

Lifetimes lifetimes_of(const Program& program, const GraphCounts& graph) {
  Lifetimes lives{{program.outputs.begin(), program.outputs.end()},
                  std::vector<int>(program.values.size(), -1)};
  std::vector<int> first(program.values.size(), -1);
  for (int i = 0; i < static_cast<int>(program.stages.size()); ++i) {
    const Stage& stage = program.stages[static_cast<std::size_t>(i)];
    const auto make = [&](ValueId id) { first[static_cast<std::size_t>(id)] = i; };
    const auto read = [&](ValueId id) { lives.last[static_cast<std::size_t>(id)] = i; };
    if (stage.propagation) {
      for (const EdgeInput& input : stage.propagation->inputs) {
        if (input.vertex < 0) continue;
        check_edge_input(value_of(program, input.vertex), graph);
        read(input.vertex);
      }
      if (stage.propagation->splits >= 0) read(stage.propagation->splits);
      for (const EdgeFold& fold : stage.propagation->folds) {
        lives.in_memory.insert(fold.accumulators.begin(), fold.accumulators.end());
        for (const ValueId id : fold.accumulators) make(id);
      }
    }
    for (const RowStep& step : stage.steps) {
      for (const ValueId id : step.inputs) read(id);
      for (const ValueId id : step.outputs) make(id);
    }
  }
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    if (program.values[id].kind == ValueKind::kVertex && lives.last[id] > first[id]) {
      lives.in_memory.insert(static_cast<ValueId>(id));
    }
  }
  return lives;
}

std::int64_t choose_group_rows(const std::vector<const Program*>& programs, std::int64_t block_rows,
                               const ComputeShape& compute) {
  constexpr std::int64_t kValues = 8;
  std::int64_t row_bytes = 0;
  for (const Program* program : programs) {
    for (const Value& value : program->values) {
      const bool rows = value.kind == ValueKind::kInput || value.kind == ValueKind::kVertex;
      if (rows && value.dtype == program->real) {
        row_bytes = std::max(row_bytes, scratch_bytes(1, value));
      }
    }
  }
  std::int64_t rows = std::min(compute.most_group_rows, block_rows);
  const std::int64_t most = compute.lanes > 0 ? kLaneScratchBytes : kGroupScratchBytes;
  while (rows > kMinGroupRows && rows * row_bytes * kValues > most) rows /= 2;
  return rows;
}

Pass make_row_work(const Program& program, const Stage& stage, const std::set<ValueId>& in_memory,
                   const GraphCounts& graph, std::int64_t group_rows) {
  Pass pass;
  pass.name = stage.name;
  pass.steps = stage.steps;
  std::set<ValueId> scratch, reductions;
  const auto sort_in = [&](ValueId id, bool output) {
    const Value& value = value_of(program, id);
    if (value.kind == ValueKind::kReduction && output) reductions.insert(id);
    const bool made_here = value.kind == ValueKind::kVertex && !in_memory.contains(id);
    if (made_here || is_converted(value, graph)) scratch.insert(id);
  };
  for (const RowStep& step : stage.steps) {
    for (const ValueId id : step.inputs) sort_in(id, false);
    for (const ValueId id : step.outputs) sort_in(id, true);
  }
  pass.reductions.assign(reductions.begin(), reductions.end());
  pass.group_rows = group_rows;
  for (const ValueId id : scratch) {
    const Value& value = value_of(program, id);
    pass.scratch.push_back({id, pass.scratch_bytes, is_converted(value, graph)});
    pass.scratch_bytes += round_up(scratch_bytes(pass.group_rows, value), kTensorAlignment);
  }
  return pass;
}

double edge_share(const Propagation& propagation, const GraphCounts& graph) {
  if (propagation.splits < 0) return 1;
  return static_cast<double>(graph.train_vertices) / static_cast<double>(graph.edges.vertices);
}

void add_edge_work(const Program& program, const Propagation& propagation, const GraphCounts& graph,
                   const PlanOptions& options, Pass& pass) {
  pass.kind = PassKind::kPropagate;
  pass.propagation = propagation;
  const bool pays = graph.train_vertices > 0 && edge_share(propagation, graph) <= kMostTrainShare;
  if (!pays) pass.propagation.splits = -1;
  EdgeProgram edges = bind_edges(program, pass.propagation, 1, 0).program;
  const bool by_slices = options.fuse_edges || is_plain_sum(edges);
  pass.slice_local_cols = by_slices ? propagation.slice_local_cols : 0;
  edges.slice_local_cols = pass.slice_local_cols;
  edges.batch_edges = pass.batch_edges = choose_batch(edges, options.fuse_edges);
  pass.edge_scratch_bytes = edge_scratch_bytes(edges);
}

std::int64_t index_scratch_bytes(const GraphCounts& graph, Direction direction,
                                 const PlanOptions& options) {
  constexpr std::int64_t kMost = 1 << 30, kShare = 16;  // of the memory
  const EdgeLayout& edges = graph.edges;
  const EdgeBytes& file = direction == Direction::kIn ? graph.in : graph.out;
  const std::int64_t rows = std::min(edges.panel_blocks * edges.block_rows, kMostIndexedRows);
  std::int64_t largest = ceil_div(file.bytes, edges.chunk_count());
  for (const std::int64_t bytes : file.chunk_bytes) largest = std::max(largest, bytes);
  const std::int64_t memory = options.memory_bytes;
  const std::int64_t share = memory == 0 ? kMost : std::max<std::int64_t>(memory, 0) / kShare;
  const std::int64_t wanted =
      std::min({edge_index_bytes(edges.data, rows, file.bytes), kMost, share});
  return std::max(wanted, edge_index_bytes(edges.data, rows, largest));
}

namespace {

// Of an edge's values, written once and read by every step and fold.
std::int64_t value_bytes_of_edge(const EdgeProgram& edges) {
  std::int64_t bytes = 0;
  const auto value_bytes = [&](int value) {
    return row_bytes(edges.values[static_cast<std::size_t>(value)]);
  };
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

}  // namespace

// Its rows read, its accumulators read and written, and, where a batch is too large for a cache,
// its values.
std::int64_t bytes_of_edge(const Program& program, const Propagation& propagation, bool fuse) {
  const EdgeProgram edges = bind_edges(program, propagation, 1, 0).program;
  const auto value_bytes = [&](int value) {
    return row_bytes(edges.values[static_cast<std::size_t>(value)]);
  };
  std::int64_t bytes = 0;
  for (const EdgeProgram::Load& load : edges.loads) bytes += value_bytes(load.value);
  for (const EdgeProgram::Shape& shape : edges.accumulators) bytes += 2 * row_bytes(shape);
  return fuse || is_plain_sum(edges) ? bytes : bytes + value_bytes_of_edge(edges);
}

double gather_bytes(const Program& program, const Pass& pass, const GraphCounts& graph,
                    std::int64_t spans) {
  constexpr std::int64_t kFetch = 64;  // a cache line
  const EdgeLayout& edges = graph.edges;
  const EdgeProgram bound = bind_edges(program, pass.propagation, 1, 0).program;
  const auto tiles = static_cast<double>(edges.block_count() * edges.span_count());
  const double taken = static_cast<double>(edges.edges) * edge_share(pass.propagation, graph);
  const double tile_edges = std::max(1.0, taken / tiles);
  const auto rows = static_cast<double>(edges.block_rows);
  const auto at_once = static_cast<double>(std::min(spans, edges.span_count()));
  // A row that folds is fetched once for all of its edges in tiles that are taken at once.
  const double task_edges =
      std::max(tile_edges, std::min(at_once * tile_edges, kMostGained * rows));
  const double folding = rows * (1 - std::exp(-task_edges / rows)) / task_edges;
  const auto fetched = [](const EdgeProgram::Shape& shape) {
    return static_cast<double>(round_up(row_bytes(shape), kFetch));
  };
  double bytes = 0;
  for (const EdgeProgram::Load& load : bound.loads) {
    const EdgeProgram::Shape& shape = bound.values[static_cast<std::size_t>(load.value)];
    if (load.load == EdgeLoad::kStreamed) {
      bytes += fetched(shape);
    } else if (load.load == EdgeLoad::kResident) {
      bytes += fetched(shape) * folding;
    } else {
      bytes += static_cast<double>(row_bytes(shape));
    }
  }
  for (const EdgeProgram::Shape& shape : bound.accumulators) bytes += 2 * fetched(shape) * folding;
  if (!is_plain_sum(bound)) bytes += static_cast<double>(value_bytes_of_edge(bound));
  if (bound.splits < 0) return taken * bytes;
  // As many bytes as in the time that it takes to choose among edges, slice by slice; and few rows
  // of a tile lie far apart (both by bench/gather_bench.cc).
  constexpr double kChoiceBytes = 80, kFar = 2;
  const auto slices =
      static_cast<double>(std::max<std::int64_t>(1, ceil_div(pass.slice_local_cols, kSliceWidth)));
  return taken * kFar * bytes + static_cast<double>(edges.edges) * slices * kChoiceBytes;
}

namespace {

// Elements: a row's multiply-adds, one each.
std::int64_t largest_matrix(const Program& program, const std::vector<ValueId>& operands) {
  std::int64_t elements = 0;
  for (const ValueId id : operands) {
    const Value& value = value_of(program, id);
    if (value.kind != ValueKind::kParameter && value.kind != ValueKind::kReduction) continue;
    elements = std::max(elements, value.rows * value.cols);
  }
  return elements;
}

}  // namespace

namespace {

// A matrix that rows are multiplied with, or that their products are summed into; sums of norms and
// losses are double.
bool is_factor(const Program& program, const Value& value) {
  const bool matrix = value.kind == ValueKind::kParameter || value.kind == ValueKind::kReduction;
  return matrix && value.rows > 1 && value.dtype == program.real;
}

}  // namespace

double row_dropout_elements(const Program& program, const std::vector<RowStep>& steps) {
  double sum = 0;
  for (const RowStep& step : steps) {
    std::int64_t cols = value_of(program, step.inputs[0]).cols;
    const Value& made = value_of(program, step.outputs[0]);
    if (made.kind != ValueKind::kReduction) cols = std::max(cols, made.cols);
    sum += work_of_element(step.op) * static_cast<double>(cols);
  }
  return sum;
}

double row_elementwise_bytes(const Program& program, const std::vector<RowStep>& steps) {
  std::int64_t sum = 0;
  for (const RowStep& step : steps) {
    if (work_of_element(step.op) > 0) continue;
    std::int64_t bytes = 0;
    bool product = false;
    for (const std::vector<ValueId>* operands : {&step.inputs, &step.outputs}) {
      for (const ValueId id : *operands) {
        const Value& value = value_of(program, id);
        const bool matrix =
            value.kind == ValueKind::kParameter || value.kind == ValueKind::kReduction;
        product |= is_factor(program, value);
        if (!matrix) bytes += value.cols * static_cast<std::int64_t>(dtype_bytes(value.dtype));
      }
    }
    if (!product) sum += bytes;
  }
  return static_cast<double>(sum);
}

double row_multiply_adds(const Program& program, const std::vector<RowStep>& steps) {
  double sum = 0;
  for (const RowStep& step : steps) {
    sum += static_cast<double>(
        std::max(largest_matrix(program, step.inputs), largest_matrix(program, step.outputs)));
  }
  return sum;
}

ProductWork row_product_work(const Program& program, const std::vector<RowStep>& steps) {
  ProductWork work;
  for (const RowStep& step : steps) {
    for (const std::vector<ValueId>* operands : {&step.inputs, &step.outputs}) {
      for (const ValueId id : *operands) {
        const Value& value = value_of(program, id);
        if (!is_factor(program, value)) continue;
        double& sum = operands == &step.outputs ? work.sums : work.products;
        sum += product_work(value.rows, value.cols);
      }
    }
  }
  return work;
}

}  // namespace ooc
