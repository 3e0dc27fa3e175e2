// A device that isn't there: it has addresses but no memory, copies and kernels take their time by
// a simulated clock and do nothing else. What a run reads of its memory ends the process.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "kernels/device/backend.h"
#include "kernels/device/virtual_device.h"
#include "storage/simulate/simulated_clock.h"

namespace ooc {

// What computes: so many tasks at once, the others in the order in which they come. By the clock's
// rules no two threads at once.
class SimulatedCompute {
 public:
  SimulatedCompute(SimulatedClock& clock, std::int64_t at_once);

  // `done` is an event of the clock; it is told when the task began, and as which of those that
  // are done at once, from 0.
  using Done = std::function<void(RunClock::Time began, std::int64_t lane)>;
  void run(double seconds, Done done);

 private:
  void begin(std::int64_t lane, double seconds, Done done);

  SimulatedClock& clock_;
  std::set<std::int64_t> free_;  // lanes
  std::deque<std::pair<double, Done>> waiting_;
};

struct SimulatedDeviceOptions {
  std::string name;
  // The CPU itself, whose memory is the host's, and copies none.
  bool host_accessible = false;
  ComputeShape shape = {};         // with tiles that the host doesn't look at
  std::int64_t tasks_at_once = 1;  // workers, or 1
  VirtualLinks links = {};
};
std::unique_ptr<Backend> make_simulated_device(SimulatedClock& clock,
                                               const SimulatedDeviceOptions& options);

}  // namespace ooc
