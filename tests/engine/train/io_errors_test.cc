// Disks that fail in the middle of a run: what it says, what is left, and that it goes on from
// there as if nothing had been.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <sstream>

#include "engine/train/trainer.h"
#include "engine/train/training_run.h"
#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"

using namespace ooc;
using test::FaultyBlockIo;
using test::MemoryFileSystem;

namespace {

constexpr const char* kRun = "/run";
constexpr const char* kScratch = "(temporary file)";
constexpr const char* kFeatures = "/tiny.ooc/features";
constexpr std::int64_t kGood = 2;  // epochs before the disk fails

enum class Memories {
  kHost,
  kDevice,         // a device's above the host's, which keeps nothing
  kCachingDevice,  // the host's keeps what it can: storage is idle after the first epoch
};

// One dataset, and a run on it in so little memory that every epoch reads and writes scratch.
// Unless it is told otherwise it has checkpoints where it ends or fails alone.
class Fixture {
 public:
  static constexpr int kNever = 1000;
  explicit Fixture(Memories memories, int checkpoint_every = kNever) : memories_(memories) {
    dataset_.emplace(test::write_tiny_dataset(files, test::graph_of_three_spans()));
    config_.dataset = "/tiny.ooc";
    config_.model.hidden = 24;
    config_.model.input_dropout = 0.3;  // the features are read in every epoch
    config_.cache_policy = memories == Memories::kCachingDevice ? Strategy::kLp : Strategy::kNone;
    config_.epochs = 4;
    config_.checkpoint_every = checkpoint_every;
  }

  // As `ooc-train` and `ooc-train --resume`: a fresh process for each call.
  RunResult run(BlockIo& io, const std::function<void(std::int64_t)>& behind_epoch = {}) {
    const auto backend =
        memories_ != Memories::kHost ? make_virtual_cpu_device("cpu:1", 0) : make_cpu_backend();
    RunDirectory directory = files.exists("/run/config.toml")
                                 ? RunDirectory::open(files, kRun)
                                 : RunDirectory::create(files, kRun, config_, false);
    TrainerOptions options;
    options.budget.plan.memory_bytes = kMemory;
    if (memories_ != Memories::kHost) {
      options.budget.plan.device = true;
      options.budget.plan.device_memory_bytes = kMemory;
    }
    Trainer trainer(*backend, io, *dataset_, directory.config(), options);
    return run_training(directory, trainer, nullptr, [&](const EpochRecord& record) {
      if (behind_epoch) behind_epoch(record.epoch);
    });
  }

  RunResult run_on_a_healthy_disk() {
    test::MemoryBlockIo io(files);
    return run(io);
  }

  TrainingState state(const std::string& name) {
    return read_checkpoint(files, std::string(kRun) + "/" + name, DType::kF32).state;
  }

  // [epoch, loss, train, valid, test, valid_loss] of every line.
  std::vector<nlohmann::json> curve() {
    const std::vector<std::byte> text = read_file(files, "/run/metrics.jsonl");
    std::istringstream in(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(in, line);) {
      const auto json = nlohmann::json::parse(line);
      lines.push_back({json.at("epoch"), json.at("loss"), json.at("train"), json.at("valid"),
                       json.at("test"), json.at("valid_loss")});
    }
    return lines;
  }

  MemoryFileSystem files;

 private:
  static constexpr std::int64_t kMemory = 1 << 20;
  Memories memories_;
  RunConfig config_;
  std::optional<Dataset> dataset_;
};

bool same(const std::vector<ParameterValues>& a, const std::vector<ParameterValues>& b) {
  return !a.empty() && std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.name == y.name && x.value == y.value && x.m == y.m && x.v == y.v;
  });
}

// To the last bit. As a bool: nobody reads thousands of bytes.
bool same(const TrainingState& a, const TrainingState& b) {
  return a.epoch == b.epoch && same(a.parameters, b.parameters);
}

// An undisturbed run, and how many requests for the files `of` its third epoch submits.
struct Undisturbed {
  explicit Undisturbed(Memories memories, const std::string& of = {}) : fixture(memories, 1) {
    test::MemoryBlockIo io(fixture.files);
    FaultyBlockIo counting(io);
    counting.faults.of = of;
    fixture.run(counting, [&](std::int64_t epoch) {
      if (epoch == 1) first_reads = counting.reads;
      const std::int64_t sign = epoch == kGood ? -1 : epoch == kGood + 1 ? 1 : 0;
      reads += sign * counting.reads;
      writes += sign * counting.writes;
    });
    curve = fixture.curve();
    REQUIRE(curve.size() == 4);
  }

  // Everything that a run leaves is that of this one.
  void check_the_same(Fixture& other) {
    CHECK(other.curve() == curve);
    CHECK(same(other.state("checkpoint-4.h5"), fixture.state("checkpoint-4.h5")));
    CHECK(same(other.state("best.h5"), fixture.state("best.h5")));
  }

  // The run as it was left after its second epoch, and that it goes on as if nothing had been.
  void check_stopped_and_resumed(Fixture& other) {
    CHECK(other.files.exists("/run/checkpoint-2.h5"));
    CHECK_FALSE(other.files.exists("/run/checkpoint-3.h5"));
    CHECK(same(other.state("checkpoint-2.h5"), fixture.state("checkpoint-2.h5")));
    CHECK(other.state("checkpoint-2.h5").epoch == kGood);
    CHECK(other.curve() == std::vector(curve.begin(), curve.begin() + kGood));
    CHECK_FALSE(other.files.exists("/run/summary.json"));
    CHECK(other.run_on_a_healthy_disk().outcome == RunOutcome::kFinished);
    check_the_same(other);
  }

  Fixture fixture;
  std::int64_t reads = 0, writes = 0;
  std::int64_t first_reads = 0;  // of the first epoch, and of what is computed once before it
  std::vector<nlohmann::json> curve;
};

// A run on a disk that fails from a certain request of the third epoch on, at several of them; it
// ends in an Expected whose message, a line, matches.
template <class Expected>
void check_fault(Memories memories, const test::BlockFaults& faults, const std::string& message) {
  Undisturbed undisturbed(memories, faults.of);
  const bool reading = faults.first_failing_read > 0;
  const std::int64_t requests = reading ? undisturbed.reads : undisturbed.writes;
  REQUIRE(requests > 4);
  for (const std::int64_t request : {std::int64_t{1}, requests / 2, requests}) {
    INFO("memories " << static_cast<int>(memories) << ", request " << request << " of "
                     << requests);
    Fixture fixture(memories);
    std::string said;
    {
      test::MemoryBlockIo io(fixture.files);
      FaultyBlockIo faulty(io);
      faulty.faults.of = faults.of;
      const auto break_disk = [&](std::int64_t epoch) {
        if (epoch != kGood) return;
        faulty.faults = faults;
        if (reading) faulty.faults.first_failing_read = faulty.reads + request;
        if (!reading) faulty.faults.first_failing_write = faulty.writes + request;
      };
      try {
        fixture.run(faulty, break_disk);
      } catch (const Expected& error) {
        said = error.what();
      }
    }
    CHECK_THAT(said, Catch::Matchers::Matches(message));
    undisturbed.check_stopped_and_resumed(fixture);
  }
}

template <class Expected>
void check_fault(const test::BlockFaults& faults, const std::string& message) {
  for (const Memories memories : {Memories::kHost, Memories::kDevice}) {
    check_fault<Expected>(memories, faults, message);
  }
}

const std::string kScratchPlace = R"(\./\(temporary file\) at byte \d+)";
const std::string kFeaturesPlace = R"(/tiny\.ooc/features\S* at byte \d+)";

}  // namespace

TEST_CASE("io errors: a failing read of scratch ends the run; it goes on from the checkpoint") {
  check_fault<IoError>({.first_failing_read = 1, .of = kScratch},
                       "cannot read: Input/output error, " + kScratchPlace + "; .+");
}

TEST_CASE("io errors: a failing read of the dataset ends the run; it goes on from the checkpoint") {
  check_fault<IoError>({.first_failing_read = 1, .of = kFeatures},
                       "cannot read: Input/output error, " + kFeaturesPlace + "; .+");
}

TEST_CASE("io errors: a failing write of scratch ends the run; it goes on from the checkpoint") {
  for (const bool torn : {false, true}) {
    check_fault<IoError>(
        {.first_failing_write = 1, .torn_write = torn, .write_error = EIO, .of = kScratch},
        "cannot write: Input/output error, " + kScratchPlace + "; .+");
  }
}

TEST_CASE("io errors: a disk that is full after all ends the run; it goes on from the checkpoint") {
  check_fault<IoError>({.first_failing_write = 1, .of = kScratch},
                       "cannot write: no space left on device, " + kScratchPlace + "; .+");
}

TEST_CASE("io errors: a file of the dataset that ends early is said to be truncated") {
  check_fault<DataError>({.first_failing_read = 1, .short_read = true, .of = kFeatures},
                         R"(truncated file: \d+ bytes wanted, \d+ there, )" + kFeaturesPlace +
                             "; the file is damaged: make it again");
}

TEST_CASE("io errors: a failing read in the first epoch ends the run; it begins again") {
  for (const Memories memories : {Memories::kHost, Memories::kDevice, Memories::kCachingDevice}) {
    Undisturbed undisturbed(memories, kFeatures);
    const std::int64_t requests = undisturbed.first_reads;
    REQUIRE(requests > 4);
    for (const std::int64_t request : {std::int64_t{1}, requests / 2, requests - 1, requests}) {
      INFO("memories " << static_cast<int>(memories) << ", request " << request << " of "
                       << requests);
      Fixture fixture(memories);
      {
        test::MemoryBlockIo io(fixture.files);
        FaultyBlockIo faulty(io);
        faulty.faults = {.first_failing_read = request, .of = kFeatures};
        CHECK_THROWS_WITH(fixture.run(faulty),
                          Catch::Matchers::Matches("cannot read: Input/output error, " +
                                                   kFeaturesPlace + "; .+"));
        CHECK(faulty.reads >= request);
      }
      CHECK(fixture.curve().empty());
      CHECK_FALSE(fixture.files.exists("/run/checkpoint-1.h5"));
      CHECK(fixture.run_on_a_healthy_disk().outcome == RunOutcome::kFinished);
      undisturbed.check_the_same(fixture);
    }
  }
}

TEST_CASE("io errors: without room for scratch a run doesn't begin, nor loses what it has") {
  for (const Memories memories : {Memories::kHost, Memories::kDevice}) {
    Undisturbed undisturbed(memories);
    Fixture fixture(memories);
    test::MemoryBlockIo full(fixture.files, {.disk_bytes = 4096});
    FaultyBlockIo counting(full);
    const auto refused = [&] {
      CHECK_THROWS_AS(fixture.run(counting), IoError);
      CHECK_THROWS_WITH(
          fixture.run(counting),
          Catch::Matchers::Matches(
              R"(cannot reserve .+ for a temporary file: no space left on device, \.; .+)"));
      CHECK(counting.writes == 0);
    };
    refused();
    CHECK(fixture.curve().empty());
    {
      test::MemoryBlockIo io(fixture.files);
      FaultyBlockIo faulty(io);
      CHECK_THROWS_AS(fixture.run(faulty,
                                  [&](std::int64_t epoch) {
                                    if (epoch == kGood) faulty.faults.first_failing_read = 1;
                                  }),
                      IoError);
    }
    refused();
    undisturbed.check_stopped_and_resumed(fixture);
  }
}
