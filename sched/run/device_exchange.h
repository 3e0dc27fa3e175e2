// What devices tell each other between passes: parameters, from the first one, and sums, of which
// each has those of its own blocks. All of it through the host's memory: it is little.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sched/run/device_run.h"

namespace ooc {

// One thread, while no pass runs. With one device there is nothing to do.
class DeviceExchange {
 public:
  // They outlive it; there may be none yet.
  explicit DeviceExchange(const std::vector<std::unique_ptr<DeviceRun>>& devices)
      : devices_(devices) {}

  // Where a parameter lies on the first device. The others get memory for it.
  void bind_parameter(int section, ValueId value, std::byte* data);
  // Those of a section, as they are now.
  void send_parameters(int section);
  // The sums of a pass, over all devices: each sends the roots of its leaves, the first one folds
  // them in the fixed tree, and sends the sum back. The same bits for any number of devices.
  void add_sums(int section, std::size_t pass);

 private:
  void copy(const DeviceRun& from, const std::byte* data, const DeviceRun& to, std::byte* copied,
            std::int64_t bytes);
  void add_sum(int section, ValueId id);

  const std::vector<std::unique_ptr<DeviceRun>>& devices_;
  // By parameter on the first device: of the other devices.
  std::map<std::byte*, std::vector<std::unique_ptr<DeviceBuffer>>> parameters_;
  std::vector<std::byte> bounce_;
};

}  // namespace ooc
