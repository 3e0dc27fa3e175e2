// A training of a task on a tiny dataset, in memory.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/infer/inference.h"
#include "engine/model/parts/task.h"
#include "engine/model/parts/words.h"
#include "engine/train/seed_runs.h"
#include "engine/train/trainer.h"
#include "kernels/device/cpu_backend.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {

inline constexpr std::int64_t kVertices = 157;

inline TinyDataset graph_of(Task task) {
  TinyDataset spec;
  spec.vertices = kVertices;
  spec.feature_cols = 12;
  spec.permute = true;
  spec.classes = task == Task::kBinary ? 2 : 4;
  spec.multi_label = task == Task::kMultiLabel;
  spec.targets = task == Task::kRegression ? 3 : 0;
  spec.edges = random_edges(spec.vertices, 500, 8);
  return spec;
}

inline RunConfig config_of(Task task) {
  RunConfig config;
  config.dataset = "/tiny.ooc";
  config.model.hidden = 12;
  config.model.task = task;
  config.model.loss = default_loss(task);
  config.metrics = {default_metric(task)};
  config.epochs = 12;
  config.checkpoint_every = 5;
  return config;
}

// A dataset of the task, in memory.
struct TaskFixture {
  explicit TaskFixture(Task task)
      : spec(graph_of(task)),
        config(config_of(task)),
        backend(make_cpu_backend()),
        io(std::make_unique<MemoryBlockIo>(files)),
        dataset(std::make_unique<Dataset>(write_tiny_dataset(files, spec))) {}

  // The parameters after an epoch, by name.
  std::map<std::string, std::vector<float>> after_epochs(std::int64_t epochs) {
    Trainer trainer(*backend, *io, *dataset, config);
    for (std::int64_t e = 0; e < epochs; ++e) last = trainer.run_epoch(nullptr).value();
    std::map<std::string, std::vector<float>> parameters;
    for (const ParameterValues& p : trainer.state().parameters) {
      const auto* values = reinterpret_cast<const float*>(p.value.data());
      parameters[p.name].assign(values, values + p.rows * p.cols);
    }
    return parameters;
  }

  RunResult run(bool resume, std::int64_t stop_after = -1) {
    RunDirectory directory = resume ? RunDirectory::open(files, "/run")
                                    : RunDirectory::create(files, "/run", config, false);
    std::atomic<bool> stop{stop_after == 0};
    std::int64_t epochs = 0;
    const auto train = [&](RunDirectory& run) {
      Trainer trainer(*backend, *io, *dataset, run.config());
      return run_training(run, trainer, &stop, [&](const EpochRecord&) {
        if (++epochs == stop_after) stop = true;
      });
    };
    return config.runs > 1 ? run_seeds(files, directory, train) : train(directory);
  }

  std::vector<nlohmann::json> lines(const std::string& run = "/run") {
    const auto bytes = read_file(files, run + "/metrics.jsonl");
    std::istringstream in(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    std::vector<nlohmann::json> result;
    for (std::string line; std::getline(in, line);) result.push_back(nlohmann::json::parse(line));
    return result;
  }

  MemoryFileSystem files;
  TinyDataset spec;
  RunConfig config;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<BlockIo> io;
  std::unique_ptr<Dataset> dataset;
  EpochRecord last;
};

// fp32 rows of an .npy file with a header of 128 bytes.
inline std::vector<float> rows_of(MemoryFileSystem& files, const std::string& path) {
  const auto bytes = read_file(files, path);
  const auto* values = reinterpret_cast<const float*>(bytes.data() + 128);
  return {values, values + (bytes.size() - 128) / sizeof(float)};
}

inline constexpr std::uint8_t kSplitOf[] = {1, 2, 1, 3,
                                            0};  // of tiny datasets, by original id modulo 5

}  // namespace ooc::test
