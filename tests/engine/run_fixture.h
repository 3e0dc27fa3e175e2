// A run directory of a small training, on file systems and disks that are made up.
#pragma once

#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/train/trainer.h"
#include "engine/train/training_run.h"
#include "kernels/device/cpu_backend.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {

inline constexpr const char* kRun = "/run";

class RunFixture {
 public:
  RunFixture() : backend_(make_cpu_backend()), io_(std::make_unique<MemoryBlockIo>(files)) {
    TinyDataset spec;
    spec.vertices = 120;
    spec.permute = true;
    spec.edges = random_edges(120, 500, 8);
    dataset_ = std::make_unique<Dataset>(write_tiny_dataset(files, spec));
    config.dataset = "/tiny.ooc";
    config.model.hidden = 12;
    config.model.norm = Norm::kBatch;
    config.epochs = 12;
    config.checkpoint_every = 5;
  }

  // As `ooc-train`: a fresh process for each call. Stops as soon as epoch `stop_after` is done.
  RunResult run(FileSystem& fs, bool resume, std::int64_t stop_after = -1, bool force = false) {
    RunDirectory directory =
        resume ? RunDirectory::open(fs, kRun) : RunDirectory::create(fs, kRun, config, force);
    Trainer trainer(*backend_, *io_, *dataset_, directory.config());
    std::atomic<bool> stop{stop_after == 0};
    return run_training(directory, trainer, &stop, [&](const EpochRecord& record) {
      if (record.epoch == stop_after) stop = true;
    });
  }

  std::string text(const std::string& name) {
    const auto bytes = read_file(files, std::string(kRun) + "/" + name);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::vector<nlohmann::json> lines() {
    std::vector<nlohmann::json> lines;
    std::istringstream in(text("metrics.jsonl"));
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  // [loss, train, valid, test, valid_loss] of every line.
  std::vector<nlohmann::json> curve() {
    std::vector<nlohmann::json> curve;
    for (const nlohmann::json& line : lines()) {
      curve.push_back({line.at("epoch"), line.at("loss"), line.at("train"), line.at("valid"),
                       line.at("test"), line.at("valid_loss")});
    }
    return curve;
  }

  MemoryFileSystem files;
  RunConfig config;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<BlockIo> io_;
  std::unique_ptr<Dataset> dataset_;
};

}  // namespace ooc::test
