#include "sched/run/device_run.h"

#include <utility>

#include "kernels/device/host_buffer.h"
#include "sched/run/pass_run.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Null where both directions are one file.
std::unique_ptr<EdgeStore> open_out(const SharedRun& shared, HostClient* client,
                                    const DevicePlan& device, std::byte* arena) {
  const EdgeFiles& edges = shared.resources.edges;
  if (&edges.out == &edges.in) return nullptr;
  return std::make_unique<EdgeStore>(shared.resources.io, edges.out, Direction::kOut, shared.host,
                                     client, device.edge_ranges, arena);
}

}  // namespace

DeviceRun::DeviceRun(Backend& backend, const SharedRun& shared, const DevicePlan& plan,
                     std::string name)
    : backend_(backend),
      all_(shared.plan),
      plan_(plan),
      arena_(backend.allocate(static_cast<std::size_t>(plan.arena_bytes))),
      clock_(*shared.resources.clock),
      driver_(shared.resources.workers, std::ssize(shared.plan.devices), clock_),
      link_(shared.host == nullptr ? nullptr
                                   : std::make_unique<Link>(backend, shared.plan.devices.size() > 1,
                                                            shared.resources.trace, name)),
      client_(link_ == nullptr
                  ? nullptr
                  : std::make_unique<HostClient>(HostClient{
                        driver_, *link_, static_cast<std::size_t>(&plan - all_.devices.data())})),
      residency_(all_, plan.ranges, arena_->data()),
      in_(shared.resources.io, shared.resources.edges.in, Direction::kIn, shared.host,
          client_.get(), plan.edge_ranges, arena_->data()),
      own_out_(open_out(shared, client_.get(), plan, arena_->data())),
      partials_(backend.allocate(static_cast<std::size_t>(plan.reduction_bytes))),
      compute_(backend.shape().runs_inline
                   ? nullptr
                   : std::make_unique<QueueWatcher>(backend.queue(QueueKind::kCompute))),
      context_{backend,
               shared.resources.edges.in.layout(),
               all_,
               plan,
               arena_->data(),
               driver_,
               residency_,
               {},
               in_,
               own_out_ ? *own_out_ : in_,
               shared.host,
               compute_.get()} {
  context_.trace = shared.resources.trace;
  context_.name = std::move(name);
  for (const Section& section : all_.sections) {
    for (std::size_t i = 0; i < section.passes.size(); ++i) {
      const Region& scratch = plan.passes[at(section.first_pass) + i].worker_scratch;
      const std::int64_t lanes = compute_ == nullptr ? driver_.workers() : 1;
      OOC_CHECK(scratch.bytes >= scratch_bytes(section.passes[i], lanes));
    }
  }
  open_stores(shared);
  leave_mapped_empty();
  residency_.on_cleared(
      [this](const ResidentRange& range, std::int64_t io_chunk, std::int64_t slice) {
        const TensorStore* store = context_.stores[at(range.tensor)];
        const bool input = all_.tensors[at(range.tensor)].input;
        if (input && store->mapped() != nullptr) store->release(io_chunk, slice);
      });
  std::byte* slab = partials_->data();
  for (std::size_t i = 0; i < shared.programs.size(); ++i) {
    bind_section(*shared.programs[i], all_.sections[i], slab);
  }
  OOC_CHECK(slab == partials_->data() + plan.reduction_bytes);
}

DeviceRun::~DeviceRun() {
  drain();
  residency_.clear_all();  // mapped rows outlive the executor otherwise
}

void DeviceRun::open_stores(const SharedRun& shared) {
  for (std::size_t i = 0; i < all_.tensors.size(); ++i) {
    const PlannedTensor& tensor = all_.tensors[i];
    TensorStore* store = shared.stored[i];
    const bool crosses = tensor.input || plan_.stored_from_block[i] < tensor.layout.block_count();
    if (shared.host != nullptr && crosses) {
      cached_.push_back(shared.host->tensor(*client_, static_cast<int>(i), store));
      store = cached_.back().get();
    }
    context_.stores.push_back(store);
  }
}

void DeviceRun::leave_mapped_empty() {
  const auto leave = [&](const Region& memory) {
    leave_empty({arena_->data() + memory.offset, static_cast<std::size_t>(memory.bytes)});
  };
  for (const ResidentRange& range : plan_.ranges) {
    const TensorStore* store = context_.stores[at(range.tensor)];
    const bool mapped = store != nullptr && store->mapped() != nullptr;
    if (mapped && residency_.is_permanent(range)) leave(range.memory);
  }
  for (const EdgeRange& range : plan_.edge_ranges) {
    const EdgeStore& store = range.direction == Direction::kIn ? in_ : context_.out;
    if (store.is_mapped()) leave(range.memory);
  }
}

void DeviceRun::bind_section(const Program& program, const Section& section, std::byte*& slab) {
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
        backend_, value.dtype, value.rows * value.cols, leaves, memory);
  };
  for (const Pass& pass : section.passes) {
    BoundPass bound = bind_pass(backend_, program, all_, pass, context_.edges);
    for (const ValueId id : pass.reductions) {
      add_tree(id, bound.group_count, pass.row_partials, pass.lanes);
    }
    for (const ValueId id : bound.edges.reductions) {
      add_tree(id, context_.edges.block_count(), pass.edge_partials, 0);
    }
    state->passes.push_back(std::move(bound));
  }
  sections_.push_back(std::move(state));
}

void DeviceRun::begin(int section, const std::atomic<bool>* stop, const std::uint64_t* self_loops) {
  driver_.stop_on(stop);
  context_.self_loops = self_loops;
  for (const auto& [id, tree] : this->section(section).reductions) tree->reset();
}

bool DeviceRun::run_pass(int section, std::size_t pass, const StepSeed& state) {
  const auto begin = clock_.now();
  const bool done = PassRun(context_, this->section(section), pass, state).run();
  if (context_.trace != nullptr) {
    context_.trace->add({context_.name, "passes", this->section(section).passes[pass].pass->name,
                         begin, clock_.now()});
  }
  return done;
}

// What a device was asked for and nobody waits for any more is done, too: kernels, and copies whose
// tickets could not be had. Errors are forgotten, as the driver's are: whoever gave up has them.
void DeviceRun::drain() {
  driver_.drain();
  if (compute_ == nullptr) return;
  for (int kind = 0; kind < kQueueKinds; ++kind) {
    Queue& queue = backend_.queue(static_cast<QueueKind>(kind));
    try {
      queue.wait(queue.record());
    } catch (...) {
    }
  }
}

void DeviceRun::reset() {
  drain();
  context_.leaving.reset();
  context_.hazards.reset();
  residency_.reset();
  in_.reset();
  if (own_out_) own_out_->reset();
}

RunCounters DeviceRun::take_counters() {
  RunCounters took;
  const std::int64_t in = context_.moved.in.exchange(0), out = context_.moved.out.exchange(0);
  (link_ ? took.bytes_to_device : took.bytes_read) = in;
  (link_ ? took.bytes_from_device : took.bytes_written) = out;
  took.zeros_read = context_.moved.zeros_in.exchange(0);
  took.zeros_written = context_.moved.zeros_out.exchange(0);
  took.bytes_between_devices = context_.moved.between_devices.exchange(0);
  took.compute_seconds = driver_.spent().take_compute();
  took.read_wait_seconds = driver_.spent().take_wait(WaitCause::kReads);
  took.write_wait_seconds = driver_.spent().take_wait(WaitCause::kWrites);
  took.compute_wait_seconds = driver_.spent().take_wait(WaitCause::kWorkers);
  return took;
}

}  // namespace ooc
