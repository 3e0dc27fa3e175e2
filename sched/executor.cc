#include "sched/executor.h"

#include <tbb/parallel_pipeline.h>

#include <algorithm>
#include <utility>

#include "sched/bound_pass.h"
#include "sched/workers.h"
#include "storage/errors.h"

namespace ooc {
// Where the tensors of a pass lie in one block: slice pointers, tensor after tensor.
struct Executor::BlockOperands {
  std::int64_t block = 0;
  std::int64_t rows = 0;
  std::vector<void*> slices;
  std::vector<const void*> stored;  // likewise, of inputs that are converted
};

Executor::Executor(Backend& backend, const Dataset& dataset, Program program, Plan plan,
                   Arena arena, const std::map<std::string, const BlockSource*>& inputs)
    : backend_(backend),
      dataset_(dataset),
      program_(std::move(program)),
      plan_(std::move(plan)),
      arena_(std::move(arena)),
      inputs_(program_.values.size()),
      residences_(program_.values.size()),
      parameters_(program_.values.size()),
      workers_(std::make_unique<Workers>()) {
  OOC_CHECK(static_cast<std::int64_t>(arena_->bytes()) >= plan_.arena_bytes);
  for (std::size_t id = 0; id < program_.values.size(); ++id) {
    if (program_.values[id].kind != ValueKind::kInput) continue;
    const Value& input = program_.values[id];
    const auto found = inputs.find(input.name);
    OOC_CHECK(found != inputs.end());
    OOC_CHECK(found->second->layout().cols == input.cols &&
              found->second->layout().rows == dataset.vertices());
    inputs_[id] = found->second;
  }
  for (const Residence& tensor : plan_.residences) {
    residences_[static_cast<std::size_t>(tensor.value)] = &tensor;
  }
  for (const Pass& pass : plan_.passes) {
    for (const ValueId id : pass.tensors) {
      const BlockSource* input = inputs_[static_cast<std::size_t>(id)];
      OOC_CHECK(input == nullptr || input->dtype() == value(id).dtype);
    }
    bind(pass);
  }
}

Executor::~Executor() = default;

TensorLayout Executor::layout(ValueId id) const {
  return {dataset_.vertices(), value(id).cols, dataset_.manifest().edges.block_rows};
}

std::byte* Executor::resident_slice(ValueId id, std::int64_t slice) const {
  const Residence* tensor = residences_[static_cast<std::size_t>(id)];
  OOC_CHECK(tensor != nullptr);
  return arena_->data() + tensor->offset +
         resident_slice_offset(layout(id), value(id).dtype, slice);
}

void Executor::bind(const Pass& pass) {
  auto bound = std::make_unique<BoundPass>(bind_pass(backend_, program_, pass));
  bound->groups_per_block = ceil_div(dataset_.manifest().edges.block_rows, pass.group_rows);
  const std::int64_t blocks = dataset_.manifest().edges.block_count();
  const std::int64_t last_rows =
      dataset_.vertices() - (blocks - 1) * dataset_.manifest().edges.block_rows;
  bound->group_count =
      (blocks - 1) * bound->groups_per_block + ceil_div(last_rows, pass.group_rows);
  for (const ValueId id : pass.reductions) {
    reductions_[id] = std::make_unique<ReductionTree>(
        backend_, value(id).dtype, value(id).rows * value(id).cols, bound->group_count);
  }
  for (const ValueId id : bound->edges.reductions) {
    reductions_[id] = std::make_unique<ReductionTree>(backend_, value(id).dtype,
                                                      value(id).rows * value(id).cols, blocks);
  }
  passes_.push_back(std::move(bound));
}

void Executor::bind_parameter(ValueId id, void* data) {
  OOC_CHECK(value(id).kind == ValueKind::kParameter);
  parameters_[static_cast<std::size_t>(id)] = data;
}

const DeviceBuffer& Executor::reduction(ValueId id) const { return reductions_.at(id)->result(); }

const void* Executor::output_chunk(ValueId id, std::int64_t block, std::int64_t slice) const {
  const TensorLayout shape = layout(id);
  const auto elements = block * shape.block_rows * shape.slice_stride(slice);
  return resident_slice(id, slice) +
         static_cast<std::size_t>(elements) * dtype_bytes(value(id).dtype);
}

void* Executor::matrix(ValueId id) const {
  if (value(id).kind != ValueKind::kParameter) return reductions_.at(id)->result().data();
  OOC_CHECK(parameters_[static_cast<std::size_t>(id)] != nullptr);
  return parameters_[static_cast<std::size_t>(id)];
}

std::byte* Executor::worker_scratch() {
  auto& scratch = workers_->scratch.local();
  if (!scratch) scratch = backend_.allocate(static_cast<std::size_t>(plan_.scratch_bytes));
  return scratch->data();
}

RunCounters Executor::take_counters() {
  return {bytes_read_.exchange(0), static_cast<double>(compute_ns_.exchange(0)) * 1e-9};
}

bool Executor::run(const RunState& state, const std::atomic<bool>* stop) {
  for (const auto& [id, tree] : reductions_) tree->reset();
  for (const auto& pass : passes_) {
    if (pass->pass->kind == PassKind::kPropagate) {
      if (!propagate(*pass, state, stop)) return false;
    }
    if (!run_rows(*pass, state, stop)) return false;
  }
  return true;
}

std::shared_ptr<Executor::BlockOperands> Executor::prepare_block(const BoundPass& pass,
                                                                 std::int64_t block) {
  auto operands = std::make_shared<BlockOperands>();
  operands->block = block;
  for (const ValueId id : pass.pass->tensors) {
    const TensorLayout shape = layout(id);
    operands->rows = shape.rows_of(block);
    const BlockSource* input = inputs_[static_cast<std::size_t>(id)];
    for (std::int64_t slice = 0; slice < shape.slice_count(); ++slice) {
      const void* chunk =
          input != nullptr ? input->chunk(block, slice) : output_chunk(id, block, slice);
      operands->slices.push_back(const_cast<void*>(chunk));
      if (input != nullptr) count_bytes(*input, block, slice);
    }
  }
  for (const Scratch& scratch : pass.pass->scratch) {
    if (!scratch.converted) continue;
    const BlockSource& input = *inputs_[static_cast<std::size_t>(scratch.value)];
    operands->rows = input.layout().rows_of(block);
    for (std::int64_t slice = 0; slice < input.layout().slice_count(); ++slice) {
      operands->stored.push_back(input.chunk(block, slice));
      count_bytes(input, block, slice);
    }
  }
  return operands;
}

void Executor::count_bytes(const BlockSource& input, std::int64_t block, std::int64_t slice) {
  if (!input.in_storage()) return;
  const TensorLayout& shape = input.layout();
  bytes_read_ += shape.rows_of(block) * shape.slice_stride(slice) *
                 static_cast<std::int64_t>(dtype_bytes(input.dtype()));
}

// Rows [begin, begin + count) of the block, padding included, to their places in the scratch.
void Executor::convert_inputs(const Pass& pass, const BlockOperands& block, std::int64_t begin,
                              std::int64_t count, std::byte* scratch) {
  auto stored = block.stored.begin();
  for (const auto& [id, offset, converted] : pass.scratch) {
    if (!converted) continue;
    const DType from = inputs_[static_cast<std::size_t>(id)]->dtype(), to = value(id).dtype;
    const TensorLayout group{pass.group_rows, value(id).cols, pass.group_rows};
    for (std::int64_t slice = 0; slice < group.slice_count(); ++slice) {
      const std::int64_t stride = group.slice_stride(slice);
      const auto* rows = static_cast<const std::byte*>(*stored++) +
                         static_cast<std::size_t>(begin * stride) * dtype_bytes(from);
      backend_.widen(from, rows, to, scratch + offset + resident_slice_offset(group, to, slice),
                     count * stride);
    }
  }
}

bool Executor::run_rows(BoundPass& pass, const RunState& state, const std::atomic<bool>* stop) {
  if (pass.steps.empty()) return true;
  struct Token {
    std::shared_ptr<BlockOperands> block;
    std::int64_t group = 0;
  };
  std::int64_t next = 0;
  std::shared_ptr<BlockOperands> block;
  const auto read = [&](tbb::flow_control& flow) -> Token {
    if (next == pass.group_count || stopped(stop)) {
      flow.stop();
      return {};
    }
    const std::int64_t group = next++;
    if (group % pass.groups_per_block == 0) {
      block = prepare_block(pass, group / pass.groups_per_block);
    }
    return {block, group};
  };
  const auto compute = [&](const Token& token) {
    compute_group(pass, *token.block, token.group, state);
  };
  tbb::parallel_pipeline(tokens_in_flight(),
                         tbb::make_filter<void, Token>(tbb::filter_mode::serial_in_order, read) &
                             tbb::make_filter<Token, void>(tbb::filter_mode::parallel, compute));
  return !stopped(stop);
}

void Executor::compute_group(BoundPass& pass, const BlockOperands& block, std::int64_t group,
                             const RunState& state) {
  const Stopwatch stopwatch(compute_ns_);
  const std::int64_t begin = group % pass.groups_per_block * pass.pass->group_rows;
  const std::int64_t count = std::min(pass.pass->group_rows, block.rows - begin);
  std::byte* scratch = worker_scratch();

  GroupOperands operands(program_, pass);
  operands.add_tensors(block.slices, begin, count);
  operands.add_scratch(scratch, count);
  convert_inputs(*pass.pass, block, begin, count, scratch);
  for (const ValueId id : pass.matrices) operands.add_matrix(id, matrix(id));
  std::vector<ReductionTree::Partial> partials;
  for (const ValueId id : pass.pass->reductions) {
    partials.push_back(reductions_.at(id)->take());
    operands.add_matrix(id, partials.back()->data());
  }
  for (const BoundStep& step : pass.steps) operands.call(step, state);
  for (std::size_t i = 0; i < partials.size(); ++i) {
    reductions_.at(pass.pass->reductions[i])->add(group, std::move(partials[i]));
  }
}

}  // namespace ooc
