// A graph in memory, and runs on batches of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/minibatch/batch_trainer.h"
#include "kernels/device/cpu_backend.h"
#include "storage/base/errors.h"
#include "tests/engine/train/all_models.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {

// Directed, with parallel edges, loops and what edges may carry.
inline TinyDataset batch_graph(bool carries, std::int64_t vertices = 150) {
  TinyDataset spec;
  spec.vertices = vertices;
  spec.feature_cols = 40;
  spec.edges = random_edges(vertices - 10, 6 * vertices, 5);
  for (std::size_t i = 0; i < 60; ++i) spec.edges.push_back(spec.edges[3 * i]);
  spec.edges.insert(spec.edges.end(), {{3, 3}, {3, 3}, {10, 10}});
  spec.span_rows = 32;
  spec.panel_blocks = 2;
  if (carries) {
    spec.edge_weights = true;
    spec.edge_types = 2;
    spec.edge_feature_cols = 3;
  }
  return spec;
}

// Of many batches of few seeds, with dropout.
inline RunConfig batch_config(const std::string& model, std::vector<std::int64_t> fanouts = {3, 2},
                              std::int64_t batch_size = 7) {
  RunConfig config = config_of(model);
  config.sampling.fanouts.hops = std::move(fanouts);
  config.sampling.batch_size = batch_size;
  config.model.dropout = 0.3;
  config.epochs = 3;
  return config;
}

struct BatchWorld {
  explicit BatchWorld(const TinyDataset& spec)
      : dataset(write_tiny_dataset(files, spec)),
        disk(files),
        io(disk),
        backend(make_cpu_backend()) {}

  // With a limit on memory, so that it takes less from the machine; all fits.
  BatchTrainerOptions options() const {
    BatchTrainerOptions options;
    options.scratch = "/";
    options.budget.host_bytes = 512 << 20;
    return options;
  }
  BatchTrainer trainer(const RunConfig& config, const BatchTrainerOptions& options) {
    return {*backend, io, files, dataset, config, options};
  }

  MemoryFileSystem files;
  Dataset dataset;
  MemoryBlockIo disk;
  FaultyBlockIo io;
  std::unique_ptr<Backend> backend;
};

// A budget of the least that the trainer asks for.
inline RunBudget least_budget(BatchWorld& world, const RunConfig& config) {
  BatchTrainerOptions options = world.options();
  options.budget.host_bytes = 1;
  try {
    world.trainer(config, options);
  } catch (const BudgetError& error) {
    options.budget.host_bytes = error.least_bytes;
  }
  return options.budget;
}

inline void add_bits(std::vector<std::byte>& bits, const void* data, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(data);
  bits.insert(bits.end(), at, at + bytes);
}

// Of a training program's last run: the loss and the gradients.
inline void add_bits(std::vector<std::byte>& bits, const BatchExecutor& executor,
                     const ModelProgram& program) {
  const TensorId of = program.evaluated().loss;
  const TensorShape& loss = program.model().graph.shape(of);
  add_bits(bits, executor.reduction(program.value(of)),
           static_cast<std::size_t>(loss.rows * loss.cols) * sizeof(double));
  for (const ModelParameter& parameter : program.model().parameters) {
    if (!parameter.trainable) continue;
    const auto elements = static_cast<std::size_t>(parameter.rows * parameter.cols);
    for (const ValueId part : program.gradient_parts(parameter)) {
      add_bits(bits, executor.reduction(part), elements * dtype_bytes(program.real()));
    }
  }
}

// All that an epoch says but times and bytes.
inline std::vector<std::byte> bits_of(const EpochRecord& record) {
  std::vector<double> numbers{static_cast<double>(record.epoch), record.loss, record.lr,
                              record.valid_loss};
  for (const Scores& scores : record.scores) {
    numbers.insert(numbers.end(), {scores.valid, scores.test});
  }
  std::vector<std::byte> bits;
  add_bits(bits, numbers.data(), numbers.size() * sizeof numbers[0]);
  return bits;
}

// Of the parameters and the optimiser's moments.
inline std::vector<std::byte> bits_of(const TrainingState& state) {
  std::vector<std::byte> bits;
  for (const ParameterValues& parameter : state.parameters) {
    for (const auto* values : {&parameter.value, &parameter.m, &parameter.v}) {
      bits.insert(bits.end(), values->begin(), values->end());
    }
  }
  return bits;
}

inline std::vector<EpochRecord> run_all(EpochTrainer& trainer) {
  std::vector<EpochRecord> records;
  while (trainer.state().epoch < trainer.config().epochs) {
    records.push_back(trainer.run_epoch(nullptr).value());
  }
  return records;
}

// Of every epoch, and of what it ends with.
inline std::vector<std::byte> bits_of_run(EpochTrainer& trainer) {
  std::vector<std::byte> bits;
  for (const EpochRecord& record : run_all(trainer)) {
    const std::vector<std::byte> more = bits_of(record);
    bits.insert(bits.end(), more.begin(), more.end());
  }
  const std::vector<std::byte> state = bits_of(trainer.state());
  bits.insert(bits.end(), state.begin(), state.end());
  return bits;
}

}  // namespace ooc::test
