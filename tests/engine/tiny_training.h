// A small dataset in memory, to train on in many ways.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/train/trainer.h"
#include "kernels/device/cpu_backend.h"
#include "kernels/device/virtual_device.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/poisoned_map.h"
#include "tests/support/strict_device.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {

// Twelve blocks in three spans; features of two slices.
inline TinyDataset graph_of_three_spans() {
  TinyDataset spec;
  spec.vertices = 1500;
  spec.feature_cols = 40;
  spec.block_rows = 128;
  spec.span_rows = 512;
  spec.panel_blocks = 4;
  spec.edges = random_edges(spec.vertices, 9000, 21);
  return spec;
}

class TinyTraining {
 public:
  explicit TinyTraining(const TinyDataset& spec = graph_of_three_spans())
      : dataset_(write_tiny_dataset(files_, spec)), io_(files_) {}

  const Dataset& dataset() const { return dataset_; }
  BlockIo& io() { return maps_ ? static_cast<BlockIo&>(mapped_) : io_; }
  // What is started from now on uses the dataset in a mapping.
  PoisonedMapBlockIo& map() {
    maps_ = true;
    return mapped_;
  }
  MemoryFileSystem& files() { return files_; }
  const Trainer& trainer() const { return *trainer_; }
  Backend& backend() { return *backend_; }  // of what was started last

  // What is started from now on runs on the strict device, where the plan asks for a device.
  void be_strict(std::uint64_t seed) {
    use([seed] { return make_strict_device(seed, 0); });
  }
  // Likewise on what this makes.
  void use(std::function<std::unique_ptr<Backend>()> device) { device_ = std::move(device); }

  // As a process of its own would train, on the CPU or the virtual devices that the plan asks for.
  // One at a time.
  Trainer& start(const RunConfig& config, const TrainerOptions& options = {}) {
    stop();
    if (!options.budget.plan.device) {
      backend_ = make_cpu_backend();
    } else {
      backend_ = device_();
    }
    TrainerOptions with_others = options;
    for (std::int64_t i = 1; i < options.budget.plan.devices; ++i) {
      others_.push_back(device_());
      with_others.others.push_back(others_.back().get());
    }
    trainer_ = std::make_unique<Trainer>(*backend_, io(), dataset_, config, with_others);
    return *trainer_;
  }
  Trainer& start(const RunConfig& config, const PlanOptions& plan) {
    TrainerOptions options;
    options.budget.plan = plan;
    return start(config, options);
  }
  // Ends what was started last: before its device is taken away.
  void stop() {
    trainer_.reset();
    others_.clear();
    backend_.reset();
  }

 private:
  MemoryFileSystem files_;
  Dataset dataset_;
  MemoryBlockIo io_;
  PoisonedMapBlockIo mapped_{io_};
  bool maps_ = false;
  std::function<std::unique_ptr<Backend>()> device_ = [] {
    return make_virtual_cpu_device("cpu:1", 0);
  };
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Backend>> others_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace ooc::test
