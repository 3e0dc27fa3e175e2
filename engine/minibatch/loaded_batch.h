// A batch in memory, as a BatchExecutor takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/minibatch/batch_options.h"
#include "engine/train/graph_inputs.h"
#include "kernels/device/host_buffer.h"
#include "sched/batch/batch_executor.h"
#include "sched/sampling/packed_rows.h"
#include "sched/sampling/superbatch.h"

namespace ooc {

// What is packed of every vertex for batches that a program of `real` numbers reads; of inputs that
// are there already.
std::vector<RowInput> packed_inputs(const BatchLoaderOptions& options, const GraphInputs& inputs);

// One batch after the other takes the same memory. One thread.
class LoadedBatch {
 public:
  // `inputs` has what the options name; all of it outlives this. `data`: of the dataset's edges.
  LoadedBatch(const BatchLoaderOptions& options, const GraphInputs& inputs, const EdgeData& data);

  // What is packed for it, of every vertex.
  const std::vector<RowInput>& packed() const { return packed_; }
  // Makes it this batch, whose rows come. Errors of storage pass through.
  void assemble(const Superbatch& superbatch, const PackedRows& rows, ComingRows& coming,
                std::int64_t batch);

  const BatchGraph& graph() const { return graph_; }
  const BatchInputs& inputs() const { return inputs_; }
  std::span<const std::int64_t> level_rows() const { return level_rows_; }
  // The rows of level 0 of an input of the dataset.
  MatrixView seed_rows(const std::string& name) const;

 private:
  struct Input {
    std::size_t packed = 0;
    int level = 0;
    std::string name;
  };

  std::size_t packed_at(const std::string& name) const;
  std::int64_t rows_of(int level) const { return level_rows_[static_cast<std::size_t>(level)]; }
  std::int64_t expanding_rows() const;
  std::vector<RowOutput> place_rows();
  void find_scales(const SlicedRows& degrees);
  void find_loops(const SlicedRows& degrees);

  const BatchLoaderOptions& options_;
  const EdgeData& data_;
  std::vector<RowInput> packed_;
  std::vector<Input> wanted_;
  std::optional<std::size_t> packed_degrees_;
  std::vector<std::int64_t> level_rows_;
  std::vector<BatchEdge> edges_;
  AlignedVector<std::byte> records_;  // of the edges
  std::optional<HostBuffer> memory_;  // of rows
  std::vector<double> scales_;        // as options_.real
  std::vector<std::uint64_t> loops_;  // a bit a row
  BatchGraph graph_;
  BatchInputs inputs_;
};

}  // namespace ooc
