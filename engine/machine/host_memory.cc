#include "engine/machine/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "storage/base/byte_size.h"
#include "storage/base/types.h"

namespace ooc {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// The number after a word in a file of words and numbers.
std::optional<std::int64_t> number_behind(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::int64_t number = 0;
    if (word == key && file >> number) return number;
  }
  return std::nullopt;
}

// Nothing for a missing file or one that says "max".
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The files of one version of control groups.
struct GroupFiles {
  const char* limit;
  const char* throttle;  // above it the group is slowed down; null: there is none
  const char* used;
  const char* inactive;  // in memory.stat: memory that caches files, of the group and those in it
  const char* active;
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", nullptr, "memory.usage_in_bytes",
                               "total_inactive_file", "total_active_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.high", "memory.current", "inactive_file",
                               "active_file"};

std::int64_t free_of_group(const std::string& directory, const GroupFiles& files) {
  std::int64_t limit = number_in(directory + "/" + files.limit).value_or(kNoLimit);
  if (files.throttle != nullptr) {
    limit = std::min(limit, number_in(directory + "/" + files.throttle).value_or(kNoLimit));
  }
  const auto used = number_in(directory + "/" + files.used);
  if (limit == kNoLimit || !used) return kNoLimit;
  const std::string stat = directory + "/memory.stat";
  const std::int64_t cached = number_behind(stat, files.inactive).value_or(0) +
                              number_behind(stat, files.active).value_or(0);
  return std::max<std::int64_t>(0, limit - std::max<std::int64_t>(0, *used - cached));
}

// Of `group` below `mount` and all groups above it. In a container the path may be the host's and
// not exist; the top, which does, is the container's own group then.
std::int64_t free_of_groups(const std::string& mount, std::string group, const GroupFiles& files) {
  std::int64_t free = kNoLimit;
  while (true) {
    while (group.ends_with('/')) group.pop_back();
    free = std::min(free, free_of_group(mount + group, files));
    if (group.empty()) return free;
    group.resize(group.rfind('/'));
  }
}

// A line a hierarchy: "0::/path" is version 2's, "9:memory:/path" version 1's of memory.
std::int64_t free_of_limits(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::int64_t free = kNoLimit;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.find('/', second) != second + 1) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      free = std::min(free, free_of_groups(mount, group, kVersion2));
      free = std::min(free, free_of_groups(mount + "/unified", group, kVersion2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      free = std::min(free, free_of_groups(mount + "/memory", group, kVersion1));
    }
  }
  return free;
}

std::int64_t kibibytes_of(const std::string& path, std::string_view key) {
  return number_behind(path, key).value_or(0) * 1024;
}

}  // namespace

std::int64_t peak_host_bytes() { return kibibytes_of("/proc/self/status", "VmHWM:"); }
std::int64_t resident_host_bytes() { return kibibytes_of("/proc/self/status", "VmRSS:"); }

namespace {

std::int64_t in_steps(std::int64_t bytes) {
  constexpr std::int64_t kLeast = 24 << 20, kStep = 8 << 20;
  return std::max(kLeast, round_up(bytes, kStep));
}

}  // namespace

std::int64_t held_host_bytes() { return in_steps(resident_host_bytes()); }
std::int64_t most_held_host_bytes() { return in_steps(peak_host_bytes()); }

std::int64_t host_memory_for_us(const std::string& root) {
  const std::int64_t free =
      std::min(kibibytes_of(root + "/proc/meminfo", "MemAvailable:"), free_of_limits(root));
  const std::int64_t margin = std::max<std::int64_t>(free / 16, 64 << 20);
  return std::max<std::int64_t>(0, free - margin) +
         kibibytes_of(root + "/proc/self/status", "VmRSS:");
}

std::int64_t host_memory_of(const std::string& text) {
  return text == "auto" ? host_memory_for_us() : parse_byte_size(text).value();
}

}  // namespace ooc
