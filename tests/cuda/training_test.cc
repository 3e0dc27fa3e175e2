// Training on an emulated GPU: losses are the CPU's as far as sums in another order let them be,
// and nothing but the GPU's kernels computes them.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/device/cuda_backend.h"
#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"
#include "tests/support/cuda/emulated_machine.h"

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

std::vector<double> losses(TinyTraining& training, const RunConfig& config,
                           const PlanOptions& options) {
  Trainer& trainer = training.start(config, options);
  std::vector<double> losses;
  while (trainer.state().epoch < config.epochs) {
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    losses.insert(losses.end(), {record.loss, record.valid_loss, record.scores.front().test});
  }
  return losses;
}

}  // namespace

TEST_CASE("cuda training: the models' losses are the CPU's") {
  TinyTraining training;
  training.use([] { return make_cuda_backend(0, 0); });
  for (const char* model : {"gcn", "sage", "sgc", "resgcn"}) {
    cuda_emulation::reset({}, cuda_emulation::Order::kShuffled, 3);
    const RunConfig config = config_of(model);
    const std::vector<double> expected = losses(training, config, {});
    REQUIRE(std::isfinite(expected.back()));
    cpu_is_forbidden = true;
    const std::vector<double> found = losses(training, config, on_gpu(0));
    cpu_is_forbidden = false;
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO(model << ", number " << i);
      CHECK(found[i] == Approx(expected[i]).epsilon(1e-4));
    }
  }
}

}  // namespace ooc::test
