#include "engine/machine/host_memory.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/support/fake_file_system.h"

using namespace ooc;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

// A machine of 1,000 MiB available with this process holding 10 MiB, and its control groups.
class Machine {
 public:
  Machine() {
    write("proc/meminfo", "MemTotal: 4096000 kB\nMemAvailable: 1024000 kB\n");
    write("proc/self/status", "Name: x\nVmRSS:\t 10240 kB\n");
  }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = directory_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::int64_t memory() const { return host_memory_for_us(directory_.path()); }

 private:
  test::TemporaryDirectory directory_;
};

// Of so much free: less a margin, and what the process has.
std::int64_t of_free(std::int64_t mib) {
  return mib * kMiB - std::max(mib * kMiB / 16, 64 * kMiB) + 10 * kMiB;
}

}  // namespace

TEST_CASE("host_memory: this process has some, and has had no less") {
  CHECK(resident_host_bytes() > kMiB);
  CHECK(peak_host_bytes() >= resident_host_bytes());
  CHECK(host_memory_for_us() > resident_host_bytes());
}

TEST_CASE("host_memory: without limits it is what the machine has available") {
  const Machine machine;
  CHECK(machine.memory() == of_free(1000));
}

TEST_CASE("host_memory: limits of version 2, of the group and all above it") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/a/b\n");
  machine.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  machine.write("sys/fs/cgroup/a/b/memory.current", std::to_string(100 * kMiB));
  CHECK(machine.memory() == of_free(1000));
  machine.write("sys/fs/cgroup/a/memory.max", std::to_string(700 * kMiB));
  machine.write("sys/fs/cgroup/a/memory.current", std::to_string(200 * kMiB));
  CHECK(machine.memory() == of_free(500));
  machine.write("sys/fs/cgroup/a/b/memory.max", std::to_string(400 * kMiB));
  CHECK(machine.memory() == of_free(300));
  // Memory that caches files is given back when it is needed.
  machine.write("sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file " +
                                                     std::to_string(50 * kMiB) + "\nactive_file " +
                                                     std::to_string(10 * kMiB) + "\n");
  CHECK(machine.memory() == of_free(360));
  // What is free is never less than nothing.
  machine.write("sys/fs/cgroup/a/b/memory.current", std::to_string(900 * kMiB));
  CHECK(machine.memory() == 10 * kMiB);
}

TEST_CASE("host_memory: where a group is slowed down counts as its limit") {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/a\n");
  machine.write("sys/fs/cgroup/a/memory.max", "max\n");
  machine.write("sys/fs/cgroup/a/memory.high", std::to_string(500 * kMiB));
  machine.write("sys/fs/cgroup/a/memory.current", std::to_string(100 * kMiB));
  CHECK(machine.memory() == of_free(400));
  machine.write("sys/fs/cgroup/a/memory.max", std::to_string(300 * kMiB));
  CHECK(machine.memory() == of_free(200));
}

TEST_CASE("host_memory: limits of version 1, and of a group named as the host knows it") {
  const Machine machine;
  machine.write("proc/self/cgroup", "12:cpu,memory:/docker/12ab\n3:memoryless:/x\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(600 * kMiB));
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(250 * kMiB));
  CHECK(machine.memory() == of_free(350));
  machine.write("sys/fs/cgroup/memory/memory.stat",
                "inactive_file 1\ntotal_inactive_file " + std::to_string(20 * kMiB) + "\n");
  CHECK(machine.memory() == of_free(370));
}
