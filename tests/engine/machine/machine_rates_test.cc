#include "engine/machine/machine_rates.h"

#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "kernels/device/virtual_device.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/fake_file_system.h"

using namespace ooc;

namespace {

class Directory : public test::TemporaryDirectory {
 public:
  // Of what is in it.
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(path())) found.push_back(entry);
    return found;
  }
};

}  // namespace

TEST_CASE("machine_rates: measured once, then read; anew where what is kept is broken") {
  const Directory scratch, cache;
  const auto io = make_block_io();
  const auto rates = [&](std::int64_t workers) {
    return machine_rates(posix_file_system(), *io, {scratch.path(), workers, 32 << 20, 0.01},
                         cache.path());
  };
  const MachineRates measured = rates(1);
  for (const double rate : {measured.storage_read, measured.storage_write, measured.storage_both,
                            measured.gather, measured.elementwise, measured.dropout,
                            measured.packing, measured.multiply_adds, measured.row_sums}) {
    CHECK(rate > 1e6);
  }
  CHECK(scratch.files().empty());
  REQUIRE(cache.files().size() == 1);
  const std::filesystem::path kept = cache.files()[0];
  std::ofstream(kept) << R"({"storage_read": 1, "storage_write": 2, "storage_both": 3,
                             "gather": 4, "elementwise": 5, "dropout": 8, "packing": 9,
                             "multiply_adds": 6, "row_sums": 7})";
  const MachineRates read = rates(1);
  CHECK(read.storage_read == 1);
  CHECK(read.packing == 9);
  CHECK(read.row_sums == 7);
  for (const char* broken : {"", "no json", R"({"storage_read": 1})",
                             R"({"storage_read": 0, "storage_write": 2, "storage_both": 3,
                                 "gather": 4, "elementwise": 5, "dropout": 8, "packing": 9,
                                 "multiply_adds": 6, "row_sums": 7})"}) {
    INFO(broken);
    std::ofstream(kept) << broken;
    CHECK(rates(1).storage_read > 1e6);
    CHECK(std::filesystem::file_size(kept) > 20);
  }
  rates(2);  // another number of workers is another machine
  CHECK(cache.files().size() == 2);
}

TEST_CASE("machine_rates: what little memory measured is not for more") {
  const Directory scratch, cache;
  const auto io = make_block_io();
  const auto rates = [&](std::int64_t memory_bytes) {
    machine_rates(posix_file_system(), *io, {scratch.path(), 1, memory_bytes, 0.01}, cache.path());
    return cache.files().size();
  };
  CHECK(rates(0) == 1);
  CHECK(rates(32 << 20) == 2);
  CHECK(rates(40 << 20) == 2);
  CHECK(rates(64 << 20) == 3);
}

TEST_CASE("machine_rates: a link is measured once, and stays as it is where it can't be") {
  const Directory cache;
  int opened = 0;
  std::int64_t memory = 256 << 20;
  const auto measure = [&](const std::string& link) {
    MachineRates rates;
    rates.to_device = rates.from_device = 1;
    measure_link(
        posix_file_system(), link,
        [&] {
          ++opened;
          return make_virtual_cpu_device("cpu:1", memory, {});
        },
        cache.path(), rates);
    CHECK(rates.gather == MachineRates().gather);
    return rates;
  };
  const MachineRates first = measure("a GPU at 1"), again = measure("a GPU at 1");
  CHECK(first.to_device > 1e6);
  CHECK(first.from_device > 1e6);
  CHECK(opened == 1);
  CHECK(again.to_device == Approx(first.to_device));
  CHECK(again.from_device == Approx(first.from_device));
  REQUIRE(cache.files().size() == 1);
  for (const char* broken : {R"({"to_device": 0})", R"({"to_device": 5})", "{}"}) {
    std::ofstream(cache.files()[0]) << broken;
    CHECK(measure("a GPU at 1").to_device > 1e6);
  }
  CHECK(opened == 4);
  memory = 1 << 20;
  CHECK(measure("a GPU at 2").to_device == 1);
  CHECK(opened == 5);
  CHECK(cache.files().size() == 1);
}

TEST_CASE("machine_rates: of a machine with another name, which may share the cache") {
  const Directory scratch, cache;
  const auto io = make_block_io();
  const auto measure = [&] {
    machine_rates(posix_file_system(), *io, {scratch.path(), 1, 32 << 20, 0.01}, cache.path());
  };
  measure();
  bool renamed = false;
  std::thread elsewhere([&] {  // a thread alone can have another host's name
    constexpr std::string_view kName = "another-host";
    renamed = ::unshare(CLONE_NEWUTS) == 0 && ::sethostname(kName.data(), kName.size()) == 0;
    if (renamed) measure();
  });
  elsewhere.join();
  if (!renamed) {
    WARN("skipped: giving the host another name needs root");
    return;
  }
  CHECK(cache.files().size() == 2);
  measure();
  CHECK(cache.files().size() == 2);
}

TEST_CASE("machine_rates: rates of a storage that can't be measured are not kept") {
  const Directory scratch, cache;
  test::MemoryBlockIo full(posix_file_system(), {.disk_bytes = 0});
  const MachineRates rates =
      machine_rates(posix_file_system(), full, {scratch.path(), 1, 32 << 20, 0.01}, cache.path());
  CHECK(rates.storage_read == MachineRates().storage_read);
  CHECK(rates.gather != MachineRates().gather);
  CHECK(cache.files().empty());
}

TEST_CASE("machine_rates: where they can't be kept they are measured all the same") {
  const Directory scratch;
  const auto io = make_block_io();
  const std::string nowhere = scratch.path() + "/file/cache";
  std::ofstream(scratch.path() + "/file") << "no directory";
  for (const std::string& cache : {nowhere, std::string()}) {
    CHECK(
        machine_rates(posix_file_system(), *io, {scratch.path(), 1, 32 << 20, 0.01}, cache).gather >
        1e6);
  }
}
