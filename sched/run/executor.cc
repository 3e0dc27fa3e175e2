#include "sched/run/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "sched/plan/io_chunks.h"
#include "sched/run/device_exchange.h"
#include "sched/run/device_run.h"
#include "sched/run/output_rows.h"
#include "sched/run/self_loops.h"
#include "storage/base/errors.h"
#include "storage/base/wakeup_latency.h"
#include "storage/stores/scratch_tensor.h"

namespace ooc {

RunCounters& RunCounters::operator+=(const RunCounters& other) {
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  zeros_read += other.zeros_read;
  zeros_written += other.zeros_written;
  bytes_to_device += other.bytes_to_device;
  bytes_from_device += other.bytes_from_device;
  bytes_between_devices += other.bytes_between_devices;
  compute_seconds += other.compute_seconds;
  read_wait_seconds += other.read_wait_seconds;
  write_wait_seconds += other.write_wait_seconds;
  compute_wait_seconds += other.compute_wait_seconds;
  return *this;
}

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

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

std::vector<Backend*> devices_of(const RunResources& resources) {
  std::vector<Backend*> devices{&resources.backend};
  devices.insert(devices.end(), resources.others.begin(), resources.others.end());
  return devices;
}

}  // namespace

struct Executor::State {
  State(const RunResources& resources, std::vector<const Program*> programs, const Plan& plan,
        const std::map<std::string, TensorStore*>& inputs);

  void open_stores(BlockIo& io, const std::map<std::string, TensorStore*>& inputs,
                   const std::string& scratch_directory);
  void join_ring();
  void reset();
  bool run_section(int section, const StepSeed& state, const std::atomic<bool>* stop);
  void begin_pass(int section, std::size_t pass);
  void end_pass(int section, std::size_t pass);
  std::int64_t stored_from(int tensor) const;
  int tensor_of(int section, ValueId value) const;
  const DeviceRun& first() const { return *devices.front(); }

  RunResources resources;
  std::vector<const Program*> programs;
  const Plan& plan;
  std::vector<Backend*> backends;
  std::unique_ptr<HostStore> host;  // below devices with memory of their own
  SelfLoops self_loops;
  // By the plan's tensors; null: not stored, or there before.
  std::vector<std::unique_ptr<TensorStore>> made;
  SharedRun shared;
  std::vector<std::unique_ptr<DeviceRun>> devices;
  std::unique_ptr<DeviceRing> ring;  // null: there is none
  DeviceExchange exchange;
  std::vector<std::vector<PassReport>> reports;
  RunClock::Time pass_began;
  RunCounters counters;
};

Executor::State::State(const RunResources& given, std::vector<const Program*> sections,
                       const Plan& planned, const std::map<std::string, TensorStore*>& inputs)
    : resources(given),
      programs(std::move(sections)),
      plan(planned),
      backends(devices_of(resources)),
      host(plan.host ? std::make_unique<HostStore>(resources.backend, plan) : nullptr),
      self_loops(backends, degrees_for_loops(plan, resources.edges.in.layout(), inputs)),
      shared{resources, programs, plan, host.get(), {}},
      exchange(devices),
      reports(programs.size()) {
  OOC_CHECK(programs.size() == plan.sections.size() && backends.size() == plan.devices.size());
  OOC_CHECK(plan.host.has_value() == !resources.backend.host_accessible());
  open_stores(resources.io, inputs, resources.scratch_directory);
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const std::string& name = backends[i]->name();
    devices.push_back(
        std::make_unique<DeviceRun>(*backends[i], shared, plan.devices[i],
                                    backends.size() == 1 ? name : fmt::format("{}: {}", i, name)));
  }
  if (plan.ring_loaders > 0) join_ring();
}

void Executor::State::join_ring() {
  std::vector<PeerLink*> links;
  for (const auto& device : devices) links.push_back(device->link());
  const RingShape shape{std::ssize(devices), plan.ring_loaders};
  ring = std::make_unique<DeviceRing>(shape, std::move(links));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i]->join(*ring, static_cast<std::int64_t>(i));
  }
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
      made[i] = std::make_unique<ScratchTensor>(io, scratch_directory, tensor.dtype, tensor.layout,
                                                tensor.io_chunk_blocks);
      store = made[i].get();
    }
    if (store != nullptr) {
      OOC_CHECK(store->io_chunk_blocks() == tensor.io_chunk_blocks &&
                store->dtype() == tensor.dtype && store->layout().cols == tensor.layout.cols &&
                store->layout().rows == tensor.layout.rows &&
                store->layout().block_rows == tensor.layout.block_rows);
    }
    shared.stored.push_back(store);
  }
}

namespace {

// Devices meet after each pass: the last one to come does what is between two of them.
class PassMeeting {
 public:
  // `between`: called with the pass that all are done with; false where no other follows.
  PassMeeting(RunClock& clock, std::size_t devices, std::function<bool(std::size_t pass)> between)
      : clock_(clock), between_(std::move(between)), coming_(devices), expected_(devices) {}

  // Returns whether there is a next pass; `done`: whether this device has come to its end.
  bool wait(bool done) {
    std::unique_lock lock(mutex_);
    given_up_ |= !done;
    const std::size_t meeting = pass_;
    if (--coming_ == 0) {
      complete(lock);
    } else {
      while (pass_ == meeting) clock_.wait(lock, changed_);
    }
    return goes_on_;
  }
  // Instead of a device that never came.
  void leave() {
    std::unique_lock lock(mutex_);
    --expected_;
    if (--coming_ == 0) complete(lock);
  }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    given_up_ = true;
  }
  // After the last one. False: a pass was stopped. Throws the first error.
  bool ended_well() const {
    if (error_) std::rethrow_exception(error_);
    return !given_up_;
  }

 private:
  // The others wait meanwhile.
  void complete(std::unique_lock<std::mutex>& lock) {
    goes_on_ = !given_up_;
    if (goes_on_) {
      lock.unlock();
      try {
        goes_on_ = between_(pass_);
      } catch (...) {
        fail(std::current_exception());
        goes_on_ = false;
      }
      lock.lock();
    }
    coming_ = expected_;
    ++pass_;
    clock_.notify(changed_);
  }

  RunClock& clock_;
  const std::function<bool(std::size_t)> between_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t coming_, expected_;
  std::size_t pass_ = 0;
  bool given_up_ = false, goes_on_ = false;
  std::exception_ptr error_;
};

}  // namespace

bool Executor::State::run_section(int section, const StepSeed& state,
                                  const std::atomic<bool>* stop) {
  const bool simulated = resources.backend.simulated() != nullptr;
  if (!simulated && !self_loops.read(stop)) return false;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i]->begin(section, stop, self_loops.bits(i));
  }
  exchange.send_parameters(section);
  reports[at(section)].clear();
  const std::size_t passes = plan.sections[at(section)].passes.size();
  begin_pass(section, 0);
  PassMeeting meeting(*resources.clock, devices.size(), [&](std::size_t pass) {
    end_pass(section, pass);
    if (pass + 1 == passes) return false;
    begin_pass(section, pass + 1);
    return true;
  });
  const auto drive = [&](DeviceRun& device) {
    reduce_wakeup_latency();
    for (std::size_t pass = 0;; ++pass) {
      bool done = false;
      try {
        done = device.run_pass(section, pass, state);
      } catch (...) {
        meeting.fail(std::current_exception());
        for (const auto& other : devices) {
          if (other.get() != &device) other->fail(std::current_exception());
        }
      }
      if (!meeting.wait(done)) return;
    }
  };
  std::vector<std::thread> threads;
  try {
    for (std::size_t i = 1; i < devices.size(); ++i) {
      threads.push_back(resources.clock->start([&, i] { drive(*devices[i]); }));
    }
    drive(*devices.front());
  } catch (const std::system_error& failed) {  // those that have begun wait for all others
    const auto error = std::make_exception_ptr(
        RunError(fmt::format("no thread for each device: {}", failed.what()), "--devices",
                 "raise the limit of threads, or give fewer devices"));
    meeting.fail(error);
    for (const auto& device : devices) device->fail(error);
    for (std::size_t i = threads.size(); i < devices.size(); ++i) meeting.leave();
  }
  for (std::thread& thread : threads) resources.clock->join(thread);
  return meeting.ended_well();
}

void Executor::State::begin_pass(int section, std::size_t pass) {
  pass_began = resources.clock->now();
  if (ring) ring->begin_pass();
  if (host) host->begin_pass(plan.sections[at(section)].first_pass + static_cast<int>(pass));
}

void Executor::State::end_pass(int section, std::size_t pass) {
  exchange.add_sums(section, pass);
  PassReport report;
  for (const auto& device : devices) {
    const RunCounters took = device->take_counters();
    report.counters += took;
    if (devices.size() > 1) report.devices.push_back(took);
  }
  if (host) {
    report.counters.bytes_read = host->take_bytes_read();
    report.counters.bytes_written = host->take_bytes_written();
  }
  report.seconds = std::chrono::duration<double>(resources.clock->now() - pass_began).count();
  counters += report.counters;
  reports[at(section)].push_back(report);
}

// After an epoch that was given up; what it moved isn't the next one's.
void Executor::State::reset() {
  for (const auto& device : devices) {
    device->reset();
    counters += device->take_counters();
  }
  if (!host) return;
  host->reset();
  counters.bytes_read += host->take_bytes_read();
  counters.bytes_written += host->take_bytes_written();
}

// The block from which on a tensor is in storage.
std::int64_t Executor::State::stored_from(int tensor) const {
  return plan.host ? plan.host->stored_from_block[at(tensor)]
                   : plan.devices[0].stored_from_block[at(tensor)];
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
  state_->exchange.bind_parameter(section, value, static_cast<std::byte*>(data));
}

bool Executor::run(int section, const StepSeed& state, const std::atomic<bool>* stop) {
  try {
    if (state_->run_section(section, state, stop)) return true;
  } catch (...) {
    state_->reset();
    throw;
  }
  state_->reset();
  return false;
}

const std::byte* Executor::reduction(int section, ValueId value) const {
  return state_->first().section(section).reductions.at(value)->result();
}

void Executor::read_output(int section, ValueId value, std::int64_t first_block,
                           std::int64_t end_block, void* rows) {
  State& state = *state_;
  const int tensor = state.tensor_of(section, value);
  const Section& planned = state.plan.sections[at(section)];
  const PlannedTensor& layout = state.plan.tensors[at(tensor)];
  const std::int64_t a_block = blocks_in(state.shared.resources.edges.in.layout(), layout);
  const int last_pass = planned.first_pass + static_cast<int>(planned.passes.size()) - 1;
  auto* to = static_cast<std::byte*>(rows);
  for (const auto& device : state.devices) {
    const BlockRange& own = device->plan().own;
    const std::int64_t first = std::max(first_block, own.first * a_block);
    const std::int64_t end = std::min(end_block, own.end * a_block);
    if (first >= end) continue;
    OutputRows output({device->backend(), state.plan, device->residency(), state.host.get(),
                       state.shared.stored[at(tensor)], tensor, last_pass},
                      state.counters);
    output.copy(first, end, to);
    for (std::int64_t block = first; block < end; ++block) {
      to += layout.layout.rows_of(block) * layout.layout.cols *
            static_cast<std::int64_t>(dtype_bytes(layout.dtype));
    }
  }
}

TensorLayout Executor::layout(int section, ValueId value) const {
  const EdgeLayout& edges = state_->resources.edges.in.layout();
  return {edges.vertices, state_->first().section(section).value(value).cols, edges.block_rows};
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
