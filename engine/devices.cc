#include "engine/devices.h"

#include "kernels/cpu_backend.h"
#include "kernels/virtual_device.h"
#include "storage/byte_size.h"

namespace ooc {

bool has_own_memory(const std::string& devices) { return devices == "cpu:1"; }

std::int64_t device_memory_of(const std::string& text) {
  return text == "auto" ? 0 : parse_byte_size(text).value();
}

std::unique_ptr<Backend> make_backend(const std::string& devices, std::int64_t memory_bytes) {
  if (has_own_memory(devices)) return make_virtual_cpu_device(devices, memory_bytes);
  return make_cpu_backend();
}

}  // namespace ooc
