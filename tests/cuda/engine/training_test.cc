// Training on an emulated GPU: losses are the CPU's as far as sums in another order let them be,
// and nothing but the GPU's kernels computes them.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "kernels/device/cuda_backend.h"
#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"
#include "tests/support/cuda/emulated_machine.h"
#include "tests/support/fake_block_io.h"

namespace {

bool cpu_is_forbidden = false;

}  // namespace

// In place of the CPU's backend, the one road to the CPU's kernels.
extern "C" std::unique_ptr<ooc::Backend> __real__ZN3ooc16make_cpu_backendEv();
extern "C" std::unique_ptr<ooc::Backend> __wrap__ZN3ooc16make_cpu_backendEv() {
  OOC_CHECK(!cpu_is_forbidden);
  return __real__ZN3ooc16make_cpu_backendEv();
}

namespace ooc::test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

RunConfig config_of(const std::string& model) {
  RunConfig config;
  config.model.model = model;
  config.model.hidden = 24;
  config.epochs = 5;
  return config;
}

PlanOptions on_gpu(std::int64_t memory_bytes) {
  PlanOptions options;
  options.memory_bytes = memory_bytes == 0 ? 0 : 2 * memory_bytes;
  options.workers = 2;
  options.device = true;
  options.device_memory_bytes = memory_bytes;
  options.compute = kCudaShape;
  return options;
}

struct Run {
  std::vector<double> losses;                 // and scores
  std::vector<std::byte> trained;             // parameters and moments, epoch after epoch
  std::vector<std::int64_t> launches;         // by epoch
  std::int64_t planned_launches = 0;          // of an epoch
  std::int64_t parameters = 0;                // what they take of the device's memory
  std::int64_t peak = 0, planned_peak = 0;    // of the device's memory
  std::int64_t pinned = 0, planned_host = 0;  // of the host's, below it
};

Run run(TinyTraining& training, const RunConfig& config, const PlanOptions& options) {
  Trainer& trainer = training.start(config, options);
  Run run;
  while (trainer.state().epoch < config.epochs) {
    const std::int64_t before = cuda_emulation::counters().launches;
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    run.losses.insert(run.losses.end(),
                      {record.loss, record.valid_loss, record.scores.front().test});
    for (const ParameterValues& parameter : trainer.state().parameters) {
      for (const auto* values : {&parameter.value, &parameter.m, &parameter.v}) {
        run.trained.insert(run.trained.end(), values->begin(), values->end());
      }
    }
    run.launches.push_back(cuda_emulation::counters().launches - before);
  }
  const TrainingPlan& plan = trainer.plan();
  run.planned_launches = plan.launches();
  run.peak = trainer.peak_device_bytes();
  for (const Plan* part : {&plan.epoch_plan(), &plan.precompute_plan()}) {
    for (const DevicePlan& device : part->devices) {
      run.planned_peak = std::max(run.planned_peak, device.arena_bytes + device.reduction_bytes);
    }
  }
  run.planned_peak += kCudaRingBytes;
  for (const Plan* part : {&plan.epoch_plan(), &plan.precompute_plan()}) {
    if (part->host) run.planned_host = std::max(run.planned_host, part->host->arena_bytes);
  }
  run.pinned = static_cast<std::int64_t>(cuda_emulation::counters().pinned_peak);
  run.parameters = device_reserve(plan.training(), Mode::kTrain, counts_of(training.dataset()));
  return run;
}

// What is started from now on finds nothing allocated there: what ran before is gone by then.
void on_machine(TinyTraining& training, cuda_emulation::Order order, std::uint64_t seed) {
  training.use([order, seed] {
    cuda_emulation::reset({}, order, seed);
    return make_cuda_backend(0, 0);
  });
}

class NoCpu {
 public:
  NoCpu() { cpu_is_forbidden = true; }
  ~NoCpu() { cpu_is_forbidden = false; }
};

}  // namespace

TEST_CASE("cuda training: the models' losses are the CPU's, by as many launches as planned") {
  TinyTraining training;
  on_machine(training, cuda_emulation::Order::kShuffled, 3);
  for (const char* model : {"gcn", "sage", "sgc", "resgcn"}) {
    INFO(model);
    const RunConfig config = config_of(model);
    const Run expected = run(training, config, {});
    REQUIRE(std::isfinite(expected.losses.back()));
    const NoCpu no_cpu;
    const Run found = run(training, config, on_gpu(0));
    REQUIRE(found.losses.size() == expected.losses.size());
    for (std::size_t i = 0; i < found.losses.size(); ++i) {
      CHECK(found.losses[i] == Approx(expected.losses[i]).epsilon(1e-4));
    }
    // The first epoch may run the first step of the second one, or compute what is needed once.
    REQUIRE(found.planned_launches > 0);
    for (std::size_t epoch = 1; epoch < found.launches.size(); ++epoch) {
      if (!cuda_emulation::is_emulated()) break;
      CHECK(found.launches[epoch] == found.planned_launches);
    }
  }
}

TEST_CASE("cuda training: bits don't depend on memory, strategies and orders") {
  using cuda_emulation::Order;
  TinyTraining training;
  const std::vector<std::pair<const char*, std::vector<Strategy>>> models{
      {"gcn", {Strategy::kNone, Strategy::kLp}}, {"sage", {Strategy::kLru}}};
  for (const auto& [model, strategies] : models) {
    RunConfig config = config_of(model);
    config.epochs = 2;
    on_machine(training, Order::kEager, 1);
    const Run expected = run(training, config, on_gpu(0));
    std::uint64_t seed = 0;
    for (const std::int64_t memory : {4 * kMiB, 3 * kMiB / 2, kMiB}) {
      for (const Strategy strategy : strategies) {
        INFO(model << ", " << memory << " bytes, strategy " << static_cast<int>(strategy));
        ++seed;
        on_machine(training, seed % 3 == 0 ? Order::kLazy : Order::kShuffled, seed);
        config.cache_policy = strategy;
        const NoCpu no_cpu;
        const Run found = run(training, config, on_gpu(memory));
        CHECK(found.losses == expected.losses);
        CHECK((found.trained == expected.trained));
        if (cuda_emulation::is_emulated()) {
          CHECK(found.launches.back() == found.planned_launches);
        }
        CHECK(found.peak >= found.planned_peak);
        CHECK(found.peak <= found.planned_peak + found.parameters);
        CHECK(found.planned_peak <= memory + kCudaRingBytes);
        if (cuda_emulation::is_emulated()) {
          CHECK(found.pinned == found.planned_host + kCudaRingBytes);
        }
      }
    }
  }
}

// Rows, sums and copies of what was given up may be under way when the epoch begins again.
TEST_CASE("cuda training: epochs that are stopped anywhere are dropped whole") {
  using cuda_emulation::Order;
  TinyTraining training;
  RunConfig config = config_of("gcn");
  config.epochs = 2;
  config.cache_policy = Strategy::kNone;
  on_machine(training, Order::kEager, 1);
  const Run expected = run(training, config, on_gpu(kMiB));
  training.stop();
  for (const Order order : {Order::kLazy, Order::kShuffled}) {
    cuda_emulation::reset({}, order, 9);
    const auto backend = make_cuda_backend(0, 0);
    FaultyBlockIo io(training.io());
    TrainerOptions options;
    options.budget.plan = on_gpu(kMiB);
    Trainer trainer(*backend, io, training.dataset(), config, options);
    std::vector<double> losses;
    int stopped = 0;
    for (std::int64_t read = 7; trainer.state().epoch < config.epochs; read += 90) {
      std::atomic<bool> stop{false};
      io.stop_at_read = io.reads + read;
      io.stop = &stop;
      const std::optional<EpochRecord> record = trainer.run_epoch(&stop);
      io.stop = nullptr;
      stopped += record ? 0 : 1;
      if (!record) continue;
      losses.insert(losses.end(), {record->loss, record->valid_loss, record->scores.front().test});
    }
    CHECK(stopped > 1);
    CHECK(losses == expected.losses);
  }
}

TEST_CASE("cuda training: several GPUs, or one that is named several times, give the bits of one") {
  TinyDataset spec = graph_of_three_spans();
  spec.vertices = 3100;
  spec.edges = random_edges(spec.vertices, 6000, 21);
  TinyTraining training(spec);
  RunConfig config = config_of("gcn");
  config.epochs = 2;
  on_machine(training, cuda_emulation::Order::kEager, 1);
  const Run expected = run(training, config, on_gpu(0));
  for (const auto& [gpus, devices] : {std::pair{2, 2}, std::pair{1, 3}}) {
    INFO(devices << " devices on " << gpus << " GPUs");
    int made = 0;
    training.use([&made, gpus = gpus] {
      if (made == 0) cuda_emulation::reset({.devices = gpus}, cuda_emulation::Order::kShuffled, 7);
      return make_cuda_backend(made++ % std::min(gpus, cuda_emulation::devices()), 0);
    });
    PlanOptions options = on_gpu(devices == 3 ? 0 : 3 * kMiB / 2);
    options.devices = devices;
    const NoCpu no_cpu;
    const Run found = run(training, config, options);
    CHECK(found.losses == expected.losses);
    if (!cuda_emulation::is_emulated()) continue;
    CHECK(found.launches.back() == found.planned_launches);
    CHECK(cuda_emulation::counters().copied_through_host == 0);
  }
}

}  // namespace ooc::test
