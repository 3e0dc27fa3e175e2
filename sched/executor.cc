#include "sched/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "sched/pass_run.h"
#include "storage/dataset_tensor.h"
#include "storage/errors.h"
#include "storage/scratch_tensor.h"

namespace ooc {

RunCounters& RunCounters::operator+=(const RunCounters& other) {
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  bytes_to_device += other.bytes_to_device;
  bytes_from_device += other.bytes_from_device;
  compute_seconds += other.compute_seconds;
  read_wait_seconds += other.read_wait_seconds;
  write_wait_seconds += other.write_wait_seconds;
  compute_wait_seconds += other.compute_wait_seconds;
  return *this;
}

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

std::unique_ptr<EdgeStore> open_out(BlockIo& io, const Dataset& dataset) {
  const EdgeFile& out = dataset.edge_file(Direction::kOut);
  if (&out == &dataset.edge_file(Direction::kIn)) return nullptr;
  return std::make_unique<EdgeStore>(io, out);
}

}  // namespace

struct Executor::State {
  State(Backend& backend, BlockIo& io, const Dataset& dataset, std::vector<const Program*> programs,
        const Plan& plan, const std::map<std::string, TensorStore*>& inputs,
        const ExecutorOptions& options);

  void open_stores(BlockIo& io, const std::map<std::string, TensorStore*>& inputs,
                   const std::string& scratch_directory);
  void bind_section(const Program& program, const Section& section);
  // Behind an epoch that was given up; nothing is under way.
  void forget();
  bool run_passes(int section, const RunState& state, const std::atomic<bool>* stop);
  PassReport take_report();
  int tensor_of(int section, ValueId value) const;
  RowsPlace fetch_unit(int tensor, std::int64_t unit, std::byte* buffer);

  Backend& backend;
  const Plan& plan;
  std::unique_ptr<DeviceBuffer> arena;
  Driver driver;
  Residency residency;
  EdgeStore in;
  std::unique_ptr<EdgeStore> own_out;              // null: both directions are one file
  std::vector<std::unique_ptr<TensorStore>> made;  // by the plan's tensors
  std::unique_ptr<DeviceBuffer> scratch;
  PassContext context;
  std::vector<std::unique_ptr<SectionState>> sections;
  std::vector<std::vector<PassReport>> reports;
  RunCounters counters;
};

Executor::State::State(Backend& device, BlockIo& io, const Dataset& dataset,
                       std::vector<const Program*> programs, const Plan& planned,
                       const std::map<std::string, TensorStore*>& inputs,
                       const ExecutorOptions& options)
    : backend(device),
      plan(planned),
      arena(backend.allocate(static_cast<std::size_t>(plan.arena_bytes))),
      driver(options.workers),
      residency(plan, arena->data()),
      in(io, dataset.edge_file(Direction::kIn)),
      own_out(open_out(io, dataset)),
      scratch(
          backend.allocate(static_cast<std::size_t>(options.workers) * worker_scratch_bytes(plan))),
      context{
          backend, dataset.manifest().edges, plan,           arena->data(), driver, residency, {},
          in,      own_out ? *own_out : in,  scratch->data()},
      reports(programs.size()) {
  OOC_CHECK(programs.size() == plan.sections.size());
  for (const EdgePiece& piece : plan.edge_pieces) {
    EdgeStore& store = piece.direction == Direction::kIn ? in : context.out;
    store.keep(piece.end_chunk, arena->data() + piece.memory.offset);
  }
  open_stores(io, inputs, options.scratch_directory);
  for (std::size_t i = 0; i < programs.size(); ++i) bind_section(*programs[i], plan.sections[i]);
}

void Executor::State::open_stores(BlockIo& io, const std::map<std::string, TensorStore*>& inputs,
                                  const std::string& scratch_directory) {
  made.resize(plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    TensorStore* store = nullptr;
    if (tensor.input) {
      store = inputs.at(tensor.name);
    } else if (tensor.stored_from_block < tensor.layout.block_count()) {
      made[i] = std::make_unique<ScratchTensor>(io, scratch_directory, tensor.dtype, tensor.layout);
      store = made[i].get();
    }
    if (store != nullptr) {
      OOC_CHECK(store->unit_blocks() == tensor.unit_blocks && store->dtype() == tensor.dtype &&
                store->layout().cols == tensor.layout.cols &&
                store->layout().rows == tensor.layout.rows);
    }
    context.stores.push_back(store);
  }
}

void Executor::State::bind_section(const Program& program, const Section& section) {
  auto state = std::make_unique<SectionState>();
  state->program = &program;
  state->section = &section;
  state->parameters.resize(program.values.size());
  const auto add_tree = [&](ValueId id, std::int64_t leaves) {
    const Value& value = program.values[at(id)];
    state->reductions[id] =
        std::make_unique<ReductionTree>(backend, value.dtype, value.rows * value.cols, leaves);
  };
  for (const Pass& pass : section.passes) {
    BoundPass bound = bind_pass(backend, program, pass, context.edges);
    for (const ValueId id : pass.reductions) add_tree(id, bound.group_count);
    for (const ValueId id : bound.edges.reductions) add_tree(id, context.edges.block_count());
    state->passes.push_back(std::move(bound));
  }
  sections.push_back(std::move(state));
}

bool Executor::State::run_passes(int section, const RunState& state,
                                 const std::atomic<bool>* stop) {
  SectionState& bound = *sections[at(section)];
  for (const auto& [id, tree] : bound.reductions) tree->reset();
  reports[at(section)].clear();
  for (std::size_t pass = 0; pass < bound.passes.size(); ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    const bool done = PassRun(context, bound, pass, state, stop).run();
    PassReport report = take_report();
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    counters += report.counters;
    reports[at(section)].push_back(report);
    if (!done) return false;
  }
  return true;
}

void Executor::State::forget() {
  residency.forget();
  in.forget();
  if (own_out) own_out->forget();
}

PassReport Executor::State::take_report() {
  return {0,
          {context.bytes_read.exchange(0), context.bytes_written.exchange(0), 0, 0,
           driver.take_compute_seconds(), driver.take_wait_seconds(WaitCause::kReads),
           driver.take_wait_seconds(WaitCause::kWrites),
           driver.take_wait_seconds(WaitCause::kWorkers)}};
}

int Executor::State::tensor_of(int section, ValueId value) const {
  const int tensor = plan.sections[at(section)].tensors[at(value)];
  OOC_CHECK(tensor >= 0);
  return tensor;
}

// A unit's rows in all slices, from storage.
RowsPlace Executor::State::fetch_unit(int index, std::int64_t unit, std::byte* buffer) {
  const PlannedTensor& tensor = plan.tensors[at(index)];
  const std::int64_t first = unit * tensor.unit_blocks;
  const RowsPlace place{buffer, first,
                        std::min(first + tensor.unit_blocks, tensor.layout.block_count()), 0};
  BlockWait wait;
  for (std::int64_t slice = 0; slice < tensor.layout.slice_count(); ++slice) {
    counters.bytes_read += unit_payload(tensor, unit, slice);
    context.stores[at(index)]->read(unit, slice, place.at(tensor, first, slice), wait.completion());
  }
  wait.wait();
  return place;
}

namespace {

// A block's rows without the padding of their slices.
void copy_block(const PlannedTensor& tensor, const RowsPlace& place, std::int64_t block,
                std::byte* rows) {
  const TensorLayout& layout = tensor.layout;
  const std::size_t element = dtype_bytes(tensor.dtype);
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    const std::byte* from = place.at(tensor, block, slice);
    std::byte* to = rows + static_cast<std::size_t>(slice * kSliceWidth) * element;
    for (std::int64_t row = 0; row < layout.rows_of(block); ++row) {
      std::memcpy(to, from, static_cast<std::size_t>(layout.slice_cols(slice)) * element);
      from += static_cast<std::size_t>(layout.slice_stride(slice)) * element;
      to += static_cast<std::size_t>(layout.cols) * element;
    }
  }
}

}  // namespace

Executor::Executor(Backend& backend, BlockIo& io, const Dataset& dataset,
                   std::vector<const Program*> programs, const Plan& plan,
                   const std::map<std::string, TensorStore*>& inputs,
                   const ExecutorOptions& options)
    : state_(std::make_unique<State>(backend, io, dataset, std::move(programs), plan, inputs,
                                     options)) {}

Executor::~Executor() = default;

void Executor::bind_parameter(int section, ValueId value, void* data) {
  SectionState& state = *state_->sections[at(section)];
  OOC_CHECK(state.value(value).kind == ValueKind::kParameter);
  state.parameters[at(value)] = data;
}

bool Executor::run(int section, const RunState& state, const std::atomic<bool>* stop) {
  try {
    if (state_->run_passes(section, state, stop)) return true;
  } catch (...) {
    state_->forget();
    throw;
  }
  state_->forget();
  return false;
}

const DeviceBuffer& Executor::reduction(int section, ValueId value) const {
  return state_->sections[at(section)]->reductions.at(value)->result();
}

void Executor::read_output(int section, ValueId value, std::int64_t first_block,
                           std::int64_t end_block, void* rows) {
  const int index = state_->tensor_of(section, value);
  const PlannedTensor& tensor = state_->plan.tensors[at(index)];
  const Section& planned = state_->plan.sections[at(section)];
  const int last_pass = planned.first_pass + static_cast<int>(planned.passes.size()) - 1;
  const auto row_bytes = static_cast<std::size_t>(tensor.layout.cols) * dtype_bytes(tensor.dtype);
  auto* to = static_cast<std::byte*>(rows);
  std::unique_ptr<DeviceBuffer> buffer;
  RowsPlace fetched;
  for (std::int64_t block = first_block; block < end_block; ++block) {
    const int piece = state_->residency.find(index, block, last_pass);
    if (piece < 0 && (block < fetched.first_block || block >= fetched.end_block)) {
      const std::int64_t bytes =
          rows_bytes(tensor, 0, tensor.unit_blocks, 0, tensor.layout.slice_count());
      if (!buffer) buffer = state_->backend.allocate(static_cast<std::size_t>(bytes));
      fetched = state_->fetch_unit(index, block / tensor.unit_blocks, buffer->data());
    }
    copy_block(tensor, piece >= 0 ? state_->residency.place(piece) : fetched, block, to);
    to += static_cast<std::size_t>(tensor.layout.rows_of(block)) * row_bytes;
  }
}

TensorLayout Executor::layout(int section, ValueId value) const {
  const EdgeLayout& edges = state_->context.edges;
  return {edges.vertices, state_->sections[at(section)]->value(value).cols, edges.block_rows};
}

std::unique_ptr<TensorStore> Executor::release_output(int section, ValueId value) {
  const int index = state_->tensor_of(section, value);
  OOC_CHECK(state_->plan.tensors[at(index)].stored_from_block == 0 && state_->made[at(index)]);
  return std::move(state_->made[at(index)]);
}

RunCounters Executor::take_counters() { return std::exchange(state_->counters, {}); }

const std::vector<PassReport>& Executor::reports(int section) const {
  return state_->reports[at(section)];
}

}  // namespace ooc
