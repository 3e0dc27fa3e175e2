#include "storage/import/import_memory.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kProcessBytes = 96 * kMiB;  // code, libraries, readers' buffers
constexpr std::int64_t kThreadBytes =
    6 * kMiB;  // stacks, the heap's own caches, chunks on their way
constexpr std::int64_t kLeastBuffers = 64 * kMiB;

// The limit of this process's control group (version 2, then 1); 0 where there is none.
std::int64_t control_group_limit() {
  for (const char* const path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    std::int64_t limit = 0;
    if (file >> limit && limit > 0) return limit;  // "max" is no number
  }
  return 0;
}

}  // namespace

std::int64_t default_import_memory() {
  const std::int64_t ram = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const std::int64_t limit = control_group_limit();
  return (limit > 0 ? std::min(ram, limit) : ram) / 4;
}

ImportMemory::ImportMemory(std::int64_t total_bytes) : total_(total_bytes), free_(total_bytes) {
  taken_.push_back({kProcessBytes + kThreadBytes * tbb::this_task_arena::max_concurrency(),
                    "the program itself"});
  free_ -= taken_.back().bytes;
}

std::int64_t ImportMemory::free() const { return std::max(free_, kLeastBuffers); }

std::int64_t ImportMemory::most() const { return std::max<std::int64_t>(0, free_ - kLeastBuffers); }

void ImportMemory::take(std::vector<MemoryPart> parts) {
  for (MemoryPart& part : parts) {
    if (part.bytes == 0) continue;
    free_ -= part.bytes;
    taken_.push_back(std::move(part));
  }
  if (free_ < kLeastBuffers) refuse();
}

void ImportMemory::refuse() const {
  std::string list = fmt::format("buffers take {}", format_byte_size(kLeastBuffers));
  for (const MemoryPart& part : taken_) {
    list += fmt::format(", {} {}", part.what, format_byte_size(part.bytes));
  }
  const std::int64_t needed = (total_ - free_ + kLeastBuffers + kMiB - 1) / kMiB;
  throw BudgetError(list, fmt::format("--memory {}", format_byte_size(total_)),
                    fmt::format("give --memory {}MiB or more", needed));
}

}  // namespace ooc
