// A batch in memory, as a BatchExecutor takes it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/batches/batch_options.h"
#include "engine/train/graph_inputs.h"
#include "kernels/device/host_buffer.h"
#include "kernels/spec/matrix_view.h"
#include "sched/batch/batch_executor.h"
#include "sched/sampling/packed_rows.h"
#include "sched/sampling/superbatch.h"

namespace ooc {

// What batches have to have rows of: what programs read, and degrees where they are needed to find
// scales and loops. Each name once, with the last level that asks for it.
std::vector<BatchInput> wanted_inputs(const BatchLoaderOptions& options);
// What is packed of every vertex.
std::vector<BatchInput> packed_inputs(const BatchLoaderOptions& options);
// What either of two wants, in one order for both.
void pack_alike(BatchLoaderOptions& one, BatchLoaderOptions& other);

// A batch's vertices, edges and rows. It owns nothing.
struct BatchContent {
  std::span<const std::int64_t> level_rows;  // of levels 0 to hops
  std::span<const BatchEdge> edges;          // by destination, then source
  std::span<const std::byte> records;        // what each edge carries
  // By input: as many rows as its level has or more, in slices (kSliceWidth).
  std::map<std::string, MatrixView> rows;
};

// The content of sampled batches: one after the other takes the same memory. One thread.
class SampledBatch {
 public:
  // `inputs` has what the options name; all of it outlives this.
  SampledBatch(const BatchLoaderOptions& options, const GraphInputs& inputs);

  // What is packed for it, of every vertex.
  const std::vector<RowInput>& packed() const { return packed_; }
  // Of this batch, whose rows come; until the next one. Errors of storage pass through.
  const BatchContent& assemble(const Superbatch& superbatch, const PackedRows& rows,
                               ComingRows& coming, std::int64_t batch);
  void release();  // the memory, until the next one

 private:
  static constexpr int kUnwanted = -1;
  std::vector<RowOutput> place_rows();

  std::vector<RowInput> packed_;
  std::vector<int> levels_;  // of what is packed; kUnwanted: only others want it
  std::vector<std::int64_t> level_rows_;
  std::vector<BatchEdge> edges_;
  AlignedVector<std::byte> records_;  // of the edges
  std::optional<HostBuffer> memory_;  // of rows
  BatchContent content_;
};

// One batch after the other takes the same memory. One thread.
class LoadedBatch {
 public:
  // Both outlive this. `data`: of the dataset's edges.
  LoadedBatch(const BatchLoaderOptions& options, const EdgeData& data);

  // Makes it this batch. What the content points to stays as it is until the next one.
  void set(const BatchContent& content);
  void release();  // the memory: there is no batch until the next one

  const BatchContent& content() const { return content_; }
  const BatchGraph& graph() const { return graph_; }
  const BatchInputs& inputs() const { return inputs_; }
  std::span<const std::int64_t> level_rows() const { return content_.level_rows; }
  // The rows of level 0 of an input of the dataset.
  MatrixView seed_rows(const std::string& name) const;

 private:
  std::int64_t rows_of(int level) const {
    return content_.level_rows[static_cast<std::size_t>(level)];
  }
  std::int64_t expanding_rows() const;
  const std::int32_t* degrees() const;
  void find_scales();
  void find_loops();

  const BatchLoaderOptions& options_;
  const EdgeData& data_;
  BatchContent content_;
  std::vector<double> scales_;        // as options_.real
  std::vector<std::uint64_t> loops_;  // a bit a row
  BatchGraph graph_;
  BatchInputs inputs_;
};

}  // namespace ooc
