#include "engine/minibatch/batch_trainer.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "engine/train/trainer.h"
#include "kernels/device/cpu_backend.h"
#include "tests/engine/minibatch/batch_world.h"
#include "tests/engine/train/all_models.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc {
namespace {

using test::TinyDataset;

struct World {
  explicit World(const TinyDataset& spec)
      : dataset(test::write_tiny_dataset(files, spec)), io(files), backend(make_cpu_backend()) {}

  test::MemoryFileSystem files;
  Dataset dataset;
  test::MemoryBlockIo io;
  std::unique_ptr<Backend> backend;
};

RunConfig sampled(const std::string& model, const std::vector<std::int64_t>& fanouts) {
  RunConfig config = test::config_of(model);
  config.sampling.fanouts.hops = fanouts;
  config.model.dropout = 0.3;
  return config;
}

std::vector<EpochRecord> run(EpochTrainer& trainer) {
  std::vector<EpochRecord> records;
  while (trainer.state().epoch < trainer.config().epochs) {
    records.push_back(trainer.run_epoch(nullptr).value());
  }
  return records;
}

void check_parameters(const EpochTrainer& a, const EpochTrainer& b, double within) {
  REQUIRE(a.state().parameters.size() == b.state().parameters.size());
  for (std::size_t i = 0; i < a.state().parameters.size(); ++i) {
    const ParameterValues &p = a.state().parameters[i], &q = b.state().parameters[i];
    INFO(p.name);
    for (std::size_t at = 0; at < p.value.size(); at += sizeof(double)) {
      double x = 0, y = 0;
      std::memcpy(&x, p.value.data() + at, sizeof x);
      std::memcpy(&y, q.value.data() + at, sizeof y);
      REQUIRE(x == Approx(y).margin(within).epsilon(within));
    }
  }
}

// With all in-edges and all training vertices in one batch.
void check_same_maths(const TinyDataset& spec, RunConfig config) {
  World world(spec);
  RunConfig full = config;
  full.sampling = {};
  TrainerOptions full_options;
  full_options.real = DType::kF64;
  Trainer whole(*world.backend, world.io, world.dataset, full, full_options);
  BatchTrainerOptions options;
  options.real = DType::kF64;
  options.scratch = "/";
  BatchTrainer batches(*world.backend, world.io, world.files, world.dataset, config, options);
  const std::vector<EpochRecord> a = run(whole), b = run(batches);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("epoch " << i + 1);
    CHECK(b[i].loss == Approx(a[i].loss).epsilon(1e-5));
    if (spec.all_train) continue;
    CHECK(b[i].valid_loss == Approx(a[i].valid_loss).epsilon(1e-5));
    CHECK(b[i].scores.front().valid == a[i].scores.front().valid);
    CHECK(b[i].scores.front().test == a[i].scores.front().test);
  }
  check_parameters(whole, batches, 1e-5);
}

TEST_CASE("batch_trainer: one batch with all in-edges is the whole graph's step") {
  for (const char* const model : test::kAllModels) {
    for (const bool carries : {false, true}) {
      TinyDataset spec = test::batch_graph(carries);
      // A norm's sums are over the rows of a batch: the whole graph's where all vertices are seeds.
      spec.all_train = std::string(model) == "gin";
      INFO(model << (carries ? " with edge data" : ""));
      RunConfig config = sampled(model, {-1, -1});
      config.epochs = 20;
      check_same_maths(spec, config);
    }
  }
}

}  // namespace
}  // namespace ooc
