// The executor on a device with memory of its own, by plans whose HostTier is made by hand: the
// same bits as on the CPU, and exactly the bytes that the plan says.
#include <catch2/catch.hpp>

#include "kernels/device/virtual_device.h"
#include "storage/base/errors.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/sched/run/host_plan.h"

namespace ooc::test {
namespace {

// Flips a bit of what is read from one file.
class FlippingBlockIo final : public BlockIo {
 public:
  explicit FlippingBlockIo(BlockIo& base) : base_(base) {}
  std::string flipped;  // the file's name; empty: none

  std::string_view name() const override { return base_.name(); }
  std::unique_ptr<BlockFile> open(const std::string& path) override { return base_.open(path); }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override {
    return base_.create_temporary(directory, bytes);
  }
  void submit(BlockRequest request) override {
    if (!flipped.empty() && request.file->path().ends_with("/" + flipped)) {
      request.done = [data = request.data, done = request.done](std::exception_ptr error) {
        data[40] ^= std::byte{4};
        done(error);
      };
    }
    base_.submit(std::move(request));
  }

 private:
  BlockIo& base_;
};

class Device {
 public:
  Device() : counts_(counts_of(harness_.dataset())), expected_(harness_.run({.workers = 1})) {}

  Harness& harness() { return harness_; }
  const Result& expected() const { return expected_; }
  Plan plan(const PlanOptions& options, const HostShape& shape) {
    return HostPlanner(harness_.plan(options), counts_, shape).make();
  }

  // Three runs: their results and bytes are checked.
  Result run(const PlanOptions& options, const HostShape& shape) {
    const Plan planned = plan(options, shape);
    const auto device =
        make_virtual_cpu_device("cpu:0", planned.devices[0].arena_bytes + (64 << 10));
    Result result = harness_.open(*device, planned, options.workers)->run(3);
    check_same(result, expected_);
    check_bytes(result, planned);
    return result;
  }

  void check_bytes(const Result& result, const Plan& planned) {
    const std::vector<TierBytes> walked = TierWalk(planned, counts_).run();
    REQUIRE(result.passes.size() == walked.size());
    RunCounters sum;
    for (std::size_t i = 0; i < walked.size(); ++i) {
      INFO("pass " << i);
      const Pass& pass = planned.sections[0].passes[i];
      const RunCounters& counted = result.passes[i].counters;
      CHECK(counted.bytes_read == walked[i].read);
      CHECK(counted.bytes_written == walked[i].written);
      CHECK(counted.bytes_to_device == walked[i].to_device);
      CHECK(counted.bytes_from_device == walked[i].from_device);
      // What would have been storage's is the link's.
      CHECK(counted.bytes_to_device == pass.bytes_read);
      CHECK(counted.bytes_from_device == pass.bytes_written);
      sum += counted;
    }
    CHECK(result.runs.back().bytes_read == sum.bytes_read);
    CHECK(result.runs.back().bytes_to_device == sum.bytes_to_device);
  }

 private:
  Harness harness_;
  GraphCounts counts_;
  Result expected_;
};

}  // namespace

TEST_CASE("device: everything through staging slots, one or many") {
  Device device;
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLp}) {
    for (const std::int64_t slots : {1, 2, 7}) {
      INFO("strategy " << static_cast<int>(strategy) << ", slots " << slots);
      const PlanOptions options{.strategy = strategy,
                                .memory_bytes = 1 << 20,
                                .workers = 3,
                                .dst_range_blocks = 4,
                                .dst_ranges_at_once = 2};
      const Result result = device.run(options, {.slots = slots});
      CHECK(result.runs[2].bytes_read == result.runs[2].bytes_to_device);
      CHECK(result.runs[2].bytes_written == result.runs[2].bytes_from_device);
      CHECK(result.runs[2].bytes_read > 0);
      CHECK(result.runs[2].bytes_written > 0);
    }
  }
}

TEST_CASE("device: everything in host memory is read from storage once") {
  Device device;
  const PlanOptions options{
      .strategy = Strategy::kNone, .workers = 2, .dst_range_blocks = 4, .dst_ranges_at_once = 2};
  const Result result = device.run(options, {.rows = 1, .edges = 1, .slots = 0});
  CHECK(result.runs[0].bytes_read > 0);
  CHECK(result.runs[1].bytes_read == 0);
  CHECK(result.runs[1].bytes_written == 0);
  CHECK(result.runs[1].bytes_to_device > result.runs[0].bytes_read);
  CHECK(result.outputs.bytes_read == 0);
}

TEST_CASE("device: parts of everything in host memory, below any device plan") {
  Device device;
  int variant = 0;  // through the rest in turn
  for (const Strategy strategy : {Strategy::kNone, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t memory : {1 << 20, 800 << 10}) {
      for (const double share : {0.3, 0.7}) {
        const bool for_good = variant / 3 % 2 == 1;
        const bool stored_too = variant % 3 == 1;
        const std::int64_t slices = variant / 2 % 2;
        ++variant;
        INFO("strategy " << static_cast<int>(strategy) << ", memory " << memory << ", share "
                         << share << (for_good ? ", for good" : "")
                         << (stored_too ? ", stored too" : "") << ", slices " << slices);
        device.run(
            {.strategy = strategy, .memory_bytes = memory, .workers = 2, .slices_at_once = slices},
            {.rows = share,
             .edges = 1 - share,
             .for_good = for_good,
             .stored_too = stored_too,
             .first_io_chunk = stored_too ? 1 : 0,
             .slots = 3});
      }
    }
  }
}

TEST_CASE("device: however long rows are on their way to storage, nothing overtakes them") {
  Device device;
  device.harness().io().faults.write_takes = std::chrono::microseconds(100);
  for (const double share : {0.0, 0.5}) {
    const PlanOptions options{.strategy = Strategy::kNone, .workers = 2, .dst_range_blocks = 4};
    const Plan planned = device.plan(options, {.rows = share, .edges = share, .slots = 4});
    const auto memory = make_virtual_cpu_device("cpu:0", 0);
    const Result result = device.harness().open(*memory, planned, 2)->run(2);
    check_same(result, device.expected());
    device.check_bytes(result, planned);
  }
}

TEST_CASE("device: all of it on the device leaves the link idle behind the first run") {
  Device device;
  const Result result = device.run({.workers = 2}, {});
  CHECK(result.runs[0].bytes_to_device > 0);
  CHECK(result.runs[1].bytes_to_device == 0);
  CHECK(result.runs[1].bytes_from_device == 0);
  CHECK(result.outputs.bytes_from_device == 2 * kVertices * kCols * 4);
  CHECK(result.outputs.bytes_read == 0);
}

TEST_CASE("device: an executor stays within the memory that the plan says, or is refused it") {
  Device device;
  const PlanOptions options{.memory_bytes = 1 << 20, .workers = 2};
  const Plan planned = device.plan(options, {.rows = 0.5});
  const std::int64_t bytes = planned.devices[0].arena_bytes;
  const auto large = make_virtual_cpu_device("cpu:0", 0);
  check_same(device.harness().open(*large, planned, 2)->run(1), device.expected());
  CHECK(large->memory_peak() > planned.devices[0].arena_bytes);
  // How many partial sums wait depends on which task is done first.
  const std::int64_t enough = bytes + (64 << 10);
  CHECK(large->memory_peak() <= enough);
  const auto limited = make_virtual_cpu_device("cpu:0", enough);
  check_same(device.harness().open(*limited, planned, 2)->run(1), device.expected());
  const auto small = make_virtual_cpu_device("cpu:0", bytes - 1);
  CHECK_THROWS_AS(device.harness().open(*small, planned, 2), BudgetError);
}

TEST_CASE("device: a failing read or write ends the run, and the next one is right") {
  Device device;
  FaultyBlockIo& io = device.harness().io();
  for (const double share : {0.0, 0.5}) {
    const PlanOptions options{
        .strategy = Strategy::kNone, .workers = 2, .dst_range_blocks = 4, .dst_ranges_at_once = 2};
    const Plan planned = device.plan(options, {.rows = share, .edges = share, .slots = 2});
    const auto memory = make_virtual_cpu_device("cpu:0", 0);
    const auto session = device.harness().open(*memory, planned, 2);
    for (const std::int64_t first : {1, 20, 45}) {
      for (const bool write : {false, true}) {
        INFO("share " << share << ", " << (write ? "write " : "read ") << first);
        (write ? io.faults.first_failing_write : io.faults.first_failing_read) =
            (write ? io.writes : io.reads) + first;
        CHECK_THROWS_AS(session->run(2), IoError);
        io.faults = {};
      }
    }
    const Result result = session->run(2);
    check_same(result, device.expected());
    device.check_bytes(result, planned);
  }
}

TEST_CASE("device: what comes from storage is checked on its way through host memory") {
  for (const double share : {0.0, 1.0}) {
    for (const char* file : {"features", "edges.in", "edges.out"}) {
      INFO(file << ", share " << share);
      Harness harness;  // none of whose chunks has been checked
      const GraphCounts counts = counts_of(harness.dataset());
      const PlanOptions options{.strategy = Strategy::kNone, .workers = 2};
      const Plan planned =
          HostPlanner(harness.plan(options), counts, {.rows = share, .edges = share}).make();
      const auto memory = make_virtual_cpu_device("cpu:0", 0);
      FlippingBlockIo io(harness.io());
      Session session(*memory, io, harness.dataset(), harness.hops(), planned, 2);
      for (int second = 0; second < 2; ++second) {
        io.flipped = file;
        CHECK_THROWS_AS(session.run(1), DataError);
      }
      io.flipped = "";
      check_same(session.run(2), harness.run({.workers = 1}));
    }
  }
}

TEST_CASE("device: outputs are read from wherever they lie, and given away as stores") {
  Device device;
  const std::int64_t bytes = kVertices * kCols * 4;
  const PlanOptions options{.strategy = Strategy::kNone, .workers = 2, .store_outputs = true};
  const Plan stored = device.plan(options, {});
  const auto memory = make_virtual_cpu_device("cpu:0", 0);
  const auto session = device.harness().open(*memory, stored, 2);
  const Result result = session->run(1);
  check_same(result, device.expected());
  CHECK(result.outputs.bytes_read == bytes);         // c
  CHECK(result.outputs.bytes_from_device == bytes);  // d, of the last pass
  const auto c = session->executor.release_output(0, session->hops.c);
  AlignedBuffer io_chunk(static_cast<std::size_t>(c->io_chunk_blocks() * 128 * kSliceWidth) *
                         sizeof(float));
  BlockWait wait;
  c->read(0, 0, io_chunk.data(), wait.completion());
  wait.wait();
  const auto* row = reinterpret_cast<const float*>(io_chunk.data());
  CHECK(std::equal(row, row + kSliceWidth, device.expected().c.begin()));

  const Plan half = device.plan(options, {.rows = 0.5, .stored_too = true});
  const Result cached = device.harness().open(*memory, half, 2)->run(1);
  check_same(cached, device.expected());
  CHECK(cached.outputs.bytes_read > 0);
  CHECK(cached.outputs.bytes_read < bytes);
}

TEST_CASE("device: stopped anywhere, the next run is right") {
  Device device;
  const PlanOptions options{
      .strategy = Strategy::kNone, .workers = 2, .dst_range_blocks = 4, .dst_ranges_at_once = 2};
  const Plan planned = device.plan(options, {.rows = 0.5, .edges = 0.5, .slots = 1});
  const auto memory = make_virtual_cpu_device("cpu:0", 0);
  const auto session = device.harness().open(*memory, planned, 2);
  std::int64_t stopped = 0;
  for (const std::int64_t read : {1, 3, 17, 40}) {
    stopped += stops(*session, device.harness().io(), read);
  }
  CHECK(stopped > 0);
  const Result result = session->run(2);
  check_same(result, device.expected());
  device.check_bytes(result, planned);
}

}  // namespace ooc::test
