#include "sched/batch/batch_executor.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "sched/batch/ordered_tasks.h"
#include "sched/plan/passes/stages.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc {
namespace {

constexpr std::int64_t kAlignment = 64;
// Of a row group at most: levels of some thousand rows should be work for all workers.
constexpr std::int64_t kMostGroupRows = 256;
// Bytes of zeros, and elements of a sum, that a task is worth.
constexpr std::int64_t kTaskBytes = 256 << 10, kTaskElements = 4096;

constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

BatchExecutor::BatchExecutor(Backend& backend, const Program& program)
    : backend_(backend),
      program_(lower_to_batches(program)),
      arena_(program_, lifetimes_of(program_.program, {})),
      matrices_(program.values.size()) {
  OOC_CHECK(backend.shape().runs_inline && backend.shape().host_tiles && backend.host_accessible());
  const Lifetimes lives = lifetimes_of(program_.program, {});
  const std::int64_t group_rows = choose_group_rows({&program}, kMostGroupRows, backend.shape());
  for (std::size_t i = 0; i < program.stages.size(); ++i) {
    stages_.push_back(bind_batch_stage(backend, program_, i, lives.in_memory, group_rows));
    const BatchStage& stage = stages_.back();
    scratch_bytes_ = std::max({scratch_bytes_, stage.edge_scratch_bytes, stage.row_scratch_bytes});
  }
  scratch_bytes_ = round_up(scratch_bytes_, std::int64_t{4096});
  const auto is_reduction = [&](std::size_t i) {
    return program.values[i].kind == ValueKind::kReduction;
  };
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    if (is_reduction(i)) reduction_bytes_ += sum_bytes(static_cast<ValueId>(i));
  }
  reductions_ = backend.allocate(at(std::max<std::int64_t>(reduction_bytes_, 1)));
  std::byte* place = reductions_->data();
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    if (!is_reduction(i)) continue;
    matrices_[i] = place;
    place += sum_bytes(static_cast<ValueId>(i));
  }
}

const Value& BatchExecutor::value(ValueId id) const { return program_.program.values.at(at(id)); }

void BatchExecutor::bind_parameter(ValueId id, void* data) {
  OOC_CHECK(value(id).kind == ValueKind::kParameter);
  matrices_[at(id)] = data;
}

std::int64_t BatchExecutor::sum_bytes(ValueId id) const {
  const Value& sum = value(id);
  return round_up(sum.rows * sum.cols * static_cast<std::int64_t>(dtype_bytes(sum.dtype)),
                  kAlignment);
}

// Of leaves, at most.
std::int64_t BatchExecutor::partial_bytes(const std::vector<ValueId>& sums,
                                          std::int64_t groups) const {
  std::int64_t bytes = 0;
  for (const ValueId id : sums) bytes += sum_bytes(id);
  return bytes * std::min(groups, BatchLeaves::kMost);
}

// Of the stage that has the most.
std::int64_t BatchExecutor::partial_bytes(std::span<const std::int64_t> level_rows) const {
  std::int64_t bytes = 0;
  for (const BatchStage& stage : stages_) {
    if (stage.edge_work) {
      const int level = stage.edge_level + (stage.direction == Direction::kIn ? 0 : 1);
      const std::int64_t blocks = ceil_div(level_rows[at(level)], BatchGraph::kBlockRows);
      bytes = std::max(bytes, partial_bytes(stage.edges.reductions, blocks));
    }
    if (!stage.rows) continue;
    const std::int64_t groups = ceil_div(level_rows[at(stage.level)], stage.group_rows);
    bytes = std::max(bytes, partial_bytes(stage.reductions, groups));
  }
  return bytes;
}

std::int64_t BatchExecutor::arena_bytes(std::span<const std::int64_t> level_rows) const {
  return arena_.bytes(level_rows) + partial_bytes(level_rows);
}

void BatchExecutor::reserve(std::span<const std::int64_t> level_rows) {
  grow(arena_bytes(level_rows));
}

void BatchExecutor::release() {
  memory_.reset();
  scratch_.reset();
  lanes_ = 0;
}

void BatchExecutor::grow(std::int64_t arena_bytes) {
  const std::size_t wanted = at(std::max<std::int64_t>(arena_bytes, 1));
  if (memory_ == nullptr || memory_->bytes() < wanted) {
    memory_.reset();  // before there is another
    memory_ = backend_.allocate(wanted);
  }
  const std::int64_t lanes = tbb::this_task_arena::max_concurrency();
  if (lanes <= lanes_) return;
  scratch_.reset();
  scratch_ = backend_.allocate(at(std::max<std::int64_t>(lanes * scratch_bytes_, 1)));
  lanes_ = lanes;
}

std::byte* BatchExecutor::scratch(std::int64_t lane) const {
  return scratch_->data() + lane * scratch_bytes_;
}

void BatchExecutor::run(const BatchGraph& graph, const BatchInputs& inputs, StepSeed seed,
                        const StepCounts& counts) {
  level_rows_.assign(graph.level_rows().begin(), graph.level_rows().end());
  grow(arena_bytes(level_rows_));
  place(inputs);
  seconds_.assign(stages_.size(), {});
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    zero_extended(stages_[i]);
    if (stages_[i].edge_work) run_edges(stages_[i], graph, seed);
    seconds_[i].edges = seconds_since(begin);
    if (stages_[i].rows) run_rows(stages_[i], seed, counts);
    seconds_[i].rows = seconds_since(begin) - seconds_[i].edges;
  }
}

void BatchExecutor::place(const BatchInputs& inputs) {
  rows_ = arena_.place(level_rows_, memory_->data());
  partials_ = memory_->data() + arena_.bytes(level_rows_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Value& input = program_.program.values[i];
    if (input.kind != ValueKind::kInput) continue;
    const auto found = inputs.find(input.name);
    if (found != inputs.end()) rows_[i] = found->second;
  }
}

// Rows beyond those of values that are read as if they had more.
void BatchExecutor::zero_extended(const BatchStage& stage) {
  for (const ValueId id : stage.extended) {
    const std::int64_t first = level_rows_[at(value(id).level)];
    const std::int64_t end = arena_.rows_in_memory(id, level_rows_);
    const TensorLayout layout{end, value(id).cols, end};
    for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
      const std::int64_t row =
          layout.slice_stride(slice) * static_cast<std::int64_t>(dtype_bytes(value(id).dtype));
      std::byte* const data = rows_[at(id)].slice(slice, layout.slice_count()) + first * row;
      const std::int64_t bytes = (end - first) * row;
      run_in_order(ceil_div(bytes, kTaskBytes), lanes_, [&](std::int64_t task, std::int64_t) {
        const std::int64_t begin = task * kTaskBytes;
        std::memset(data + begin, 0, at(std::min(kTaskBytes, bytes - begin)));
      });
    }
  }
}

std::vector<BatchExecutor::Sum> BatchExecutor::place_sums(const std::vector<ValueId>& ids,
                                                          const BatchLeaves& leaves) {
  std::vector<Sum> sums;
  std::byte* place = partials_;
  for (const ValueId id : ids) {
    sums.push_back({id, place});
    place += leaves.count() * sum_bytes(id);
  }
  return sums;
}

// Leaves in a binary tree, each element by itself.
void BatchExecutor::add_up(const std::vector<Sum>& sums, const BatchLeaves& leaves) {
  for (const Sum& sum : sums) {
    const DType dtype = value(sum.id).dtype;
    const auto bytes = static_cast<std::int64_t>(dtype_bytes(dtype));
    const std::int64_t elements = value(sum.id).rows * value(sum.id).cols;
    auto* const result = static_cast<std::byte*>(matrices_[at(sum.id)]);
    run_in_order(ceil_div(elements, kTaskElements), lanes_, [&](std::int64_t task, std::int64_t) {
      const std::int64_t first = task * kTaskElements;
      const std::int64_t count = std::min(kTaskElements, elements - first);
      const auto leaf = [&](std::int64_t i) {
        return sum.leaves + i * sum_bytes(sum.id) + first * bytes;
      };
      for (std::int64_t step = 1; step < leaves.count(); step *= 2) {
        for (std::int64_t i = 0; i + step < leaves.count(); i += 2 * step) {
          backend_.accumulate(dtype, count, leaf(i), leaf(i + step));
        }
      }
      std::memcpy(result + first * bytes, leaf(0), at(count * bytes));
    });
  }
}

void BatchExecutor::run_edges(const BatchStage& stage, const BatchGraph& graph, StepSeed seed) {
  const BatchGraph::Window& edges = graph.window(stage.direction, stage.edge_level);
  const bool summing = !stage.edges.reductions.empty();
  const BatchLeaves leaves(edges.layout.block_count(), summing);
  const std::vector<Sum> sums = place_sums(stage.edges.reductions, leaves);
  for (const Sum& sum : sums) std::memset(sum.leaves, 0, at(leaves.count() * sum_bytes(sum.id)));
  EdgeWindow window = window_of(stage, edges, sums, leaves);
  window.state = seed;
  // Slice after slice: of the streamed rows one stays in the last-level cache.
  run_in_order(leaves.count() * stage.slices, lanes_, [&](std::int64_t task, std::int64_t lane) {
    const std::int64_t slice = task / leaves.count();
    const std::int64_t first = task % leaves.count() * leaves.a_leaf;
    EdgeCall call{first, std::min(first + leaves.a_leaf, leaves.groups), slice, slice + 1, {}};
    call.scratch = {scratch(lane), at(stage.edge_scratch_bytes)};
    stage.edge_work->run(window, call);
  });
  add_up(sums, leaves);
}

EdgeWindow BatchExecutor::window_of(const BatchStage& stage, const BatchGraph::Window& edges,
                                    const std::vector<Sum>& sums, const BatchLeaves& leaves) const {
  const EdgeBinding& bound = stage.edges;
  EdgeWindow window;
  window.layout = &edges.layout;
  window.begins = true;
  window.spans = edges.tiles;
  window.end_block = edges.layout.block_count();
  window.end_slice = stage.slices;
  if (stage.loops) window.self_loops = edges.self_loops;
  const auto rows_of = [&](ValueId id, std::int64_t first_row) {
    OOC_CHECK(rows_[at(id)].last != nullptr);
    return rows_from(value(id), rows_[at(id)], first_row);
  };
  for (std::int64_t span = 0; span < std::ssize(window.spans); ++span) {
    for (const ValueId id : bound.streamed) {
      window.streamed.push_back(rows_of(id, span % edges.spans * BatchGraph::kSpanRows));
    }
  }
  for (std::int64_t block = 0; block < window.end_block; ++block) {
    const std::int64_t row = block * BatchGraph::kBlockRows;
    for (const ValueId id : bound.resident) window.resident.push_back(rows_of(id, row));
    for (const ValueId id : bound.accumulators) window.accumulators.push_back(rows_of(id, row));
    for (const Sum& sum : sums) {
      window.partials.push_back(sum.leaves + block / leaves.a_leaf * sum_bytes(sum.id));
    }
  }
  for (const ValueId id : bound.matrices) {
    const std::vector<ValueId>& summed = bound.reductions;
    const bool written = std::find(summed.begin(), summed.end(), id) != summed.end();
    OOC_CHECK(written || matrices_[at(id)] != nullptr);
    window.matrices.push_back(written ? nullptr : matrices_[at(id)]);
  }
  return window;
}

void BatchExecutor::run_rows(const BatchStage& stage, StepSeed seed, StepCounts counts) {
  const std::int64_t rows = level_rows_.at(at(stage.level));
  counts.rows = static_cast<double>(rows);
  const BatchLeaves leaves(ceil_div(rows, stage.group_rows), !stage.reductions.empty());
  const std::vector<Sum> sums = place_sums(stage.reductions, leaves);
  std::vector<SlicedRows> operands;
  for (const BatchStage::Operand& operand : stage.operands) {
    SlicedRows& place = operands.emplace_back();
    if (operand.place == RowProgram::Place::kTensor) place = rows_[at(operand.value)];
    if (operand.place == RowProgram::Place::kMatrix)
      place = one_slice(matrices_[at(operand.value)]);
    const bool elsewhere = operand.place == RowProgram::Place::kScratch ||
                           operand.place == RowProgram::Place::kReduction;
    OOC_CHECK(elsewhere || place.last != nullptr);
  }
  run_in_order(leaves.count(), lanes_, [&](std::int64_t leaf, std::int64_t lane) {
    std::vector<void*> partials;
    for (const Sum& sum : sums) {
      std::byte* const partial = sum.leaves + leaf * sum_bytes(sum.id);
      std::memset(partial, 0, at(sum_bytes(sum.id)));
      partials.push_back(partial);
    }
    const std::int64_t end = std::min((leaf + 1) * leaves.a_leaf, leaves.groups);
    for (std::int64_t group = leaf * leaves.a_leaf; group < end; ++group) {
      const std::int64_t first = group * stage.group_rows;
      const RowGroup one{first, std::min(stage.group_rows, rows - first), operands, partials,
                         scratch(lane)};
      stage.rows->run({{&one, 1}, false, seed, &counts});
    }
  });
  add_up(sums, leaves);
}

const std::byte* BatchExecutor::reduction(ValueId id) const {
  OOC_CHECK(value(id).kind == ValueKind::kReduction);
  return static_cast<const std::byte*>(matrices_[at(id)]);
}

MatrixView BatchExecutor::output(ValueId id) const {
  const std::int64_t rows = level_rows_.at(at(value(id).level));
  const TensorLayout layout{rows, value(id).cols, rows};
  const ValueId owner = program_.rows_of[at(id)];
  const std::vector<ValueId>& outputs = program_.program.outputs;
  OOC_CHECK(std::find(outputs.begin(), outputs.end(), owner) != outputs.end());
  const SlicedRows& place = rows_[at(owner)];
  OOC_CHECK(place.last != nullptr);
  return {value(id).dtype,
          rows,
          value(id).cols,
          kSliceWidth,
          layout.slice_stride(layout.slice_count() - 1),
          0,
          place};
}

}  // namespace ooc
