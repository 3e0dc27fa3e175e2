#include "engine/devices.h"

#include <algorithm>

#include "engine/host_memory.h"
#include "kernels/cpu_backend.h"
#include "kernels/virtual_device.h"
#include "storage/byte_size.h"

namespace ooc {

bool has_own_memory(const std::string& devices) { return devices == "cpu:1"; }

bool is_device(const std::string& devices) {
  return devices == "auto" || devices == "cpu" || has_own_memory(devices);
}

RunBudget budget_of(const std::string& devices, const std::string& host_memory,
                    const std::string& device_memory) {
  RunBudget budget;
  budget.host_bytes = host_memory_of(host_memory);
  budget.resident_bytes = held_host_bytes();
  budget.plan.device = has_own_memory(devices);
  if (!budget.plan.device) return budget;
  budget.device_bytes =
      device_memory == "auto" ? host_memory_for_us() / 4 : parse_byte_size(device_memory).value();
  if (host_memory == "auto") {
    budget.host_bytes = std::max<std::int64_t>(budget.host_bytes - budget.device_bytes, 1);
  }
  return budget;
}

std::unique_ptr<Backend> make_backend(const std::string& devices, const RunBudget& budget) {
  if (has_own_memory(devices)) return make_virtual_cpu_device(devices, budget.device_bytes);
  return make_cpu_backend();
}

}  // namespace ooc
