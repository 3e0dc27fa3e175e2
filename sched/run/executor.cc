#include "sched/run/executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/device/host_buffer.h"
#include "sched/run/output_rows.h"
#include "sched/run/pass_run.h"
#include "sched/run/self_loops.h"
#include "storage/base/errors.h"
#include "storage/base/wakeup_latency.h"
#include "storage/stores/dataset_tensor.h"
#include "storage/stores/scratch_tensor.h"

namespace ooc {

RunCounters& RunCounters::operator+=(const RunCounters& other) {
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  zeros_read += other.zeros_read;
  zeros_written += other.zeros_written;
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

std::unique_ptr<HostStore> make_cache(Backend& backend, Driver& driver, const Plan& plan) {
  OOC_CHECK(plan.host.has_value() == !backend.host_accessible());
  return plan.host ? std::make_unique<HostStore>(backend, driver, plan) : nullptr;
}

// Null where both directions are one file.
std::unique_ptr<EdgeStore> open_out(const RunResources& resources, HostStore* host,
                                    const DevicePlan& device, std::byte* arena) {
  const EdgeFile& file = resources.dataset.edge_file(Direction::kOut);
  if (&file == &resources.dataset.edge_file(Direction::kIn)) return nullptr;
  return std::make_unique<EdgeStore>(resources.io, file, Direction::kOut, host, device.edge_ranges,
                                     arena);
}

// Null where no pass adds loops.
const TensorStore* degrees_for_loops(const Plan& plan, const EdgeLayout& edges,
                                     const std::map<std::string, TensorStore*>& inputs) {
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) {
      if (!pass.propagation.loops) continue;
      const TensorStore* degrees = inputs.at("degrees");
      OOC_CHECK(degrees->layout().rows == edges.vertices);
      return degrees;
    }
  }
  return nullptr;
}

}  // namespace

struct Executor::State {
  State(const RunResources& resources, std::vector<const Program*> programs, const Plan& plan,
        const std::map<std::string, TensorStore*>& inputs);
  ~State() {
    drain();
    residency.clear_all();  // mapped rows outlive the executor otherwise
  }

  void open_stores(BlockIo& io, const std::map<std::string, TensorStore*>& inputs,
                   const std::string& scratch_directory);
  // Places in the arena that mapped rows and edges never take.
  void leave_mapped_empty() const;
  // Takes the memory of its partial sums from `slab` on.
  void bind_section(const Program& program, const Section& section, std::byte*& slab);
  // Behind an epoch that was given up. Waits for the rows that a pass left behind.
  void reset();
  void drain();
  bool run_passes(int section, const StepSeed& state, const std::atomic<bool>* stop);
  PassReport take_report();
  std::int64_t stored_from(int tensor) const;
  int tensor_of(int section, ValueId value) const;

  Backend& backend;
  const Plan& plan;
  const DevicePlan& device;
  std::unique_ptr<DeviceBuffer> arena;
  Driver driver;
  Residency residency;
  std::unique_ptr<HostStore> host;  // below a device
  EdgeStore in;
  std::unique_ptr<EdgeStore> own_out;  // null: both directions are one file
  SelfLoops self_loops;
  std::unique_ptr<DeviceBuffer> partials;  // of all reductions
  std::unique_ptr<QueueWatcher> compute;   // null: kernels run inline
  // By the plan's tensors; null: not stored, or there before.
  std::vector<std::unique_ptr<TensorStore>> made;
  std::vector<TensorStore*> stored;                  // inputs too
  std::vector<std::unique_ptr<TensorStore>> cached;  // above them, in host memory
  PassContext context;
  std::vector<std::unique_ptr<SectionState>> sections;
  std::vector<std::vector<PassReport>> reports;
  RunCounters counters;
};

Executor::State::State(const RunResources& resources, std::vector<const Program*> programs,
                       const Plan& planned, const std::map<std::string, TensorStore*>& inputs)
    : backend(resources.backend),
      plan(planned),
      device(plan.devices.at(0)),
      arena(backend.allocate(static_cast<std::size_t>(device.arena_bytes))),
      driver(resources.workers),
      residency(plan, device.ranges, arena->data()),
      host(make_cache(backend, driver, plan)),
      in(resources.io, resources.dataset.edge_file(Direction::kIn), Direction::kIn, host.get(),
         device.edge_ranges, arena->data()),
      own_out(open_out(resources, host.get(), device, arena->data())),
      self_loops(backend, degrees_for_loops(plan, resources.dataset.manifest().edges, inputs)),
      partials(backend.allocate(static_cast<std::size_t>(device.reduction_bytes))),
      compute(backend.shape().runs_inline
                  ? nullptr
                  : std::make_unique<QueueWatcher>(backend.queue(QueueKind::kCompute))),
      context{backend,
              resources.dataset.manifest().edges,
              plan,
              device,
              arena->data(),
              driver,
              residency,
              {},
              in,
              own_out ? *own_out : in,
              host.get(),
              compute.get()},
      reports(programs.size()) {
  OOC_CHECK(programs.size() == plan.sections.size());
  for (const Section& section : plan.sections) {
    for (std::size_t i = 0; i < section.passes.size(); ++i) {
      const Region& scratch = device.passes[at(section.first_pass) + i].worker_scratch;
      const std::int64_t lanes = compute == nullptr ? resources.workers : 1;
      OOC_CHECK(scratch.bytes >= scratch_bytes(section.passes[i], lanes));
    }
  }
  open_stores(resources.io, inputs, resources.scratch_directory);
  leave_mapped_empty();
  residency.on_cleared(
      [this](const ResidentRange& range, std::int64_t io_chunk, std::int64_t slice) {
        const TensorStore* store = context.stores[at(range.tensor)];
        const bool input = plan.tensors[at(range.tensor)].input;
        if (input && store->mapped() != nullptr) store->release(io_chunk, slice);
      });
  std::byte* slab = partials->data();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    bind_section(*programs[i], plan.sections[i], slab);
  }
  OOC_CHECK(slab == partials->data() + device.reduction_bytes);
}

void Executor::State::open_stores(BlockIo& io, const std::map<std::string, TensorStore*>& inputs,
                                  const std::string& scratch_directory) {
  made.resize(plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    TensorStore* store = nullptr;
    if (tensor.input) {
      store = inputs.at(tensor.name);
    } else if (stored_from(static_cast<int>(i)) < tensor.layout.block_count()) {
      made[i] = std::make_unique<ScratchTensor>(io, scratch_directory, tensor.dtype, tensor.layout);
      store = made[i].get();
    }
    if (store != nullptr) {
      OOC_CHECK(store->io_chunk_blocks() == tensor.io_chunk_blocks &&
                store->dtype() == tensor.dtype && store->layout().cols == tensor.layout.cols &&
                store->layout().rows == tensor.layout.rows &&
                store->layout().block_rows == tensor.layout.block_rows);
    }
    stored.push_back(store);
    const bool crosses = tensor.input || tensor.stored_from_block < tensor.layout.block_count();
    if (host && crosses) {
      cached.push_back(host->tensor(static_cast<int>(i), store));
      store = cached.back().get();
    }
    context.stores.push_back(store);
  }
}

void Executor::State::leave_mapped_empty() const {
  const auto leave = [&](const Region& memory) {
    leave_empty({arena->data() + memory.offset, static_cast<std::size_t>(memory.bytes)});
  };
  for (const ResidentRange& range : device.ranges) {
    const TensorStore* store = context.stores[at(range.tensor)];
    const bool mapped = store != nullptr && store->mapped() != nullptr;
    if (mapped && residency.is_permanent(range)) leave(range.memory);
  }
  for (const EdgeRange& range : device.edge_ranges) {
    const EdgeStore& store = range.direction == Direction::kIn ? in : context.out;
    if (store.is_mapped()) leave(range.memory);
  }
}

void Executor::State::bind_section(const Program& program, const Section& section,
                                   std::byte*& slab) {
  auto state = std::make_unique<SectionState>();
  state->program = &program;
  state->section = &section;
  state->parameters.resize(program.values.size());
  const auto add_tree = [&](ValueId id, std::int64_t leaves, std::int64_t count,
                            std::int64_t of_a_call) {
    const Value& value = program.values[at(id)];
    const PartialSlab memory{slab, count, partial_bytes(value), of_a_call};
    slab += count * memory.partial_bytes;
    state->reductions[id] = std::make_unique<ReductionTree>(
        backend, value.dtype, value.rows * value.cols, leaves, memory);
  };
  for (const Pass& pass : section.passes) {
    BoundPass bound = bind_pass(backend, program, plan, pass, context.edges);
    for (const ValueId id : pass.reductions) {
      add_tree(id, bound.group_count, pass.row_partials, pass.lanes);
    }
    for (const ValueId id : bound.edges.reductions) {
      add_tree(id, context.edges.block_count(), pass.edge_partials, 0);
    }
    state->passes.push_back(std::move(bound));
  }
  sections.push_back(std::move(state));
}

bool Executor::State::run_passes(int section, const StepSeed& state,
                                 const std::atomic<bool>* stop) {
  driver.stop_on(stop);
  if (!self_loops.read(stop)) return false;
  context.self_loops = self_loops.bits();
  SectionState& bound = *sections[at(section)];
  for (const auto& [id, tree] : bound.reductions) tree->reset();
  reports[at(section)].clear();
  for (std::size_t pass = 0; pass < bound.passes.size(); ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    const bool done = PassRun(context, bound, pass, state).run();
    PassReport report = take_report();
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    counters += report.counters;
    reports[at(section)].push_back(report);
    if (!done) return false;
  }
  return true;
}

// What a device was asked for and nobody waits for any more is done, too; errors are forgotten, as
// the driver's are: whoever gave up has them.
void Executor::State::drain() {
  driver.drain();
  if (compute == nullptr) return;
  Queue& queue = backend.queue(QueueKind::kCompute);
  try {
    queue.wait(queue.record());
  } catch (...) {
  }
}

void Executor::State::reset() {
  drain();
  context.leaving.reset();
  context.hazards.reset();
  residency.reset();
  if (host) host->reset();
  in.reset();
  if (own_out) own_out->reset();
}

PassReport Executor::State::take_report() {
  PassReport report;
  RunCounters& took = report.counters;
  took.bytes_read = context.moved.in.exchange(0);
  took.bytes_written = context.moved.out.exchange(0);
  took.zeros_read = context.moved.zeros_in.exchange(0);
  took.zeros_written = context.moved.zeros_out.exchange(0);
  if (host) {
    took.bytes_to_device = std::exchange(took.bytes_read, host->take_bytes_read());
    took.bytes_from_device = std::exchange(took.bytes_written, host->take_bytes_written());
  }
  took.compute_seconds = driver.take_compute_seconds();
  took.read_wait_seconds = driver.take_wait_seconds(WaitCause::kReads);
  took.write_wait_seconds = driver.take_wait_seconds(WaitCause::kWrites);
  took.compute_wait_seconds = driver.take_wait_seconds(WaitCause::kWorkers);
  return report;
}

// The block from which on a tensor is in storage.
std::int64_t Executor::State::stored_from(int tensor) const {
  return plan.host ? plan.host->stored_from_block[at(tensor)]
                   : plan.tensors[at(tensor)].stored_from_block;
}

int Executor::State::tensor_of(int section, ValueId value) const {
  const int tensor = plan.sections[at(section)].tensors[at(value)];
  OOC_CHECK(tensor >= 0);
  return tensor;
}

Executor::Executor(const RunResources& resources, std::vector<const Program*> programs,
                   const Plan& plan, const std::map<std::string, TensorStore*>& inputs)
    : state_(std::make_unique<State>(resources, std::move(programs), plan, inputs)) {}

Executor::~Executor() = default;

void Executor::bind_parameter(int section, ValueId value, void* data) {
  SectionState& state = *state_->sections[at(section)];
  OOC_CHECK(state.value(value).kind == ValueKind::kParameter);
  state.parameters[at(value)] = static_cast<std::byte*>(data);
}

bool Executor::run(int section, const StepSeed& state, const std::atomic<bool>* stop) {
  reduce_wakeup_latency();
  try {
    if (state_->run_passes(section, state, stop)) return true;
  } catch (...) {
    state_->reset();
    throw;
  }
  state_->reset();
  return false;
}

const std::byte* Executor::reduction(int section, ValueId value) const {
  return state_->sections[at(section)]->reductions.at(value)->result();
}

void Executor::read_output(int section, ValueId value, std::int64_t first_block,
                           std::int64_t end_block, void* rows) {
  State& state = *state_;
  const int tensor = state.tensor_of(section, value);
  const Section& planned = state.plan.sections[at(section)];
  const int last_pass = planned.first_pass + static_cast<int>(planned.passes.size()) - 1;
  OutputRows output({state.backend, state.plan, state.residency, state.host.get(),
                     state.stored[at(tensor)], tensor, last_pass},
                    state.counters);
  output.copy(first_block, end_block, static_cast<std::byte*>(rows));
}

TensorLayout Executor::layout(int section, ValueId value) const {
  const EdgeLayout& edges = state_->context.edges;
  return {edges.vertices, state_->sections[at(section)]->value(value).cols, edges.block_rows};
}

std::unique_ptr<TensorStore> Executor::release_output(int section, ValueId value) {
  const int index = state_->tensor_of(section, value);
  OOC_CHECK(state_->stored_from(index) == 0 && state_->made[at(index)]);
  return std::move(state_->made[at(index)]);
}

RunCounters Executor::take_counters() { return std::exchange(state_->counters, {}); }

const std::vector<PassReport>& Executor::reports(int section) const {
  return state_->reports[at(section)];
}

}  // namespace ooc
