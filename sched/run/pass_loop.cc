#include "sched/run/pass_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/device/simulated_device.h"

namespace ooc {

PassLoop::PassLoop(const PassInfo& info, std::function<void()> advance,
                   std::function<bool()> may_advance)
    : info_(info), advance_(std::move(advance)), may_advance_(std::move(may_advance)) {}

bool PassLoop::wait(std::unique_lock<std::mutex>& lock, WaitCause cause,
                    const std::function<bool()>& ready) {
  return info_.context.driver.wait(lock, cause, advance_, ready, may_advance_);
}

bool PassLoop::wait_for_room(std::unique_lock<std::mutex>& lock) {
  return info_.context.driver.wait_for_room(lock, advance_);
}

std::function<void()> PassLoop::traced(const char* name, std::function<void()> work) const {
  Trace* const trace = info_.context.trace;
  if (trace == nullptr) return work;
  return [this, trace, name, work = std::move(work)] {
    const auto begin = trace->now();
    work();
    trace->add({info_.context.name, fmt::format("worker {}", info_.context.driver.worker()),
                fmt::format("{} {}", info_.pass.name, name), begin, trace->now()});
  };
}

// Of a device that computes one thing after the other.
std::function<void()> PassLoop::computed(const char* name, std::function<void()> then) {
  Trace* const trace = info_.context.trace;
  if (trace == nullptr) return then;
  return [this, trace, name, asked = trace->now(), then = std::move(then)] {
    const auto begin = std::max(asked, computed_);
    computed_ = trace->now();
    trace->add({info_.context.name, "compute", fmt::format("{} {}", info_.pass.name, name), begin,
                computed_});
    then();
  };
}

void PassLoop::simulate(const char* name, double seconds, std::function<void()> then) {
  PassContext& context = info_.context;
  const bool workers = context.backend.shape().runs_inline;
  if (workers) seconds *= static_cast<double>(context.driver.workers());
  context.driver.spent().compute(SimulatedClock::seconds(seconds));
  const BlockCompletion done = context.driver.expect_task(std::move(then));
  context.backend.simulated()->run(
      seconds, [this, name, workers, done](RunClock::Time began, std::int64_t lane) {
        if (Trace* const trace = info_.context.trace) {
          trace->add({info_.context.name, workers ? fmt::format("worker {}", lane) : "compute",
                      fmt::format("{} {}", info_.pass.name, name), began, trace->now()});
        }
        done(nullptr);
      });
}

void PassLoop::launch(const char* name, double seconds, std::function<void()> work,
                      std::function<void()> then) {
  PassContext& context = info_.context;
  if (context.backend.simulated() != nullptr) return simulate(name, seconds, std::move(then));
  if (context.compute == nullptr) {
    return context.driver.run(traced(name, std::move(work)), std::move(then));
  }
  work();
  const Ticket done = context.backend.queue(QueueKind::kCompute).record();  // may fail
  context.compute->after(done, context.driver.expect_task(computed(name, std::move(then))));
}

std::span<std::byte> PassLoop::scratch() const {
  const PassContext& context = info_.context;
  const Region& all = info_.memory.worker_scratch;
  std::byte* const data = context.arena + all.offset;
  if (context.compute != nullptr) return {data, static_cast<std::size_t>(all.bytes)};
  const auto bytes = static_cast<std::size_t>(worker_scratch_bytes(info_.pass));
  return {data + context.driver.worker() * bytes, bytes};
}

bool PassLoop::has_scratch() const {
  const Region& scratch = info_.memory.worker_scratch;
  return !info_.context.hazards.busy(
      {info_.context.arena + scratch.offset, static_cast<std::size_t>(scratch.bytes)});
}

}  // namespace ooc
