#include "engine/process_memory.h"

#include <fstream>
#include <string>

namespace ooc {

std::int64_t peak_host_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace ooc
