// Counts that decide how the memory of batches is shared out and what they move: those of a
// dataset, or of a graph that isn't there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/batches/batch_options.h"
#include "engine/sampling/degree_classes.h"
#include "engine/train/absent_graph.h"
#include "sched/plan/options.h"
#include "sched/sampling/packed_rows.h"
#include "storage/dataset/dataset.h"

namespace ooc {

// Rows of an input, as they are stored.
struct InputRows {
  DType dtype = DType::kF32;
  TensorLayout layout;
  std::int64_t io_chunk_blocks = 1;

  std::int64_t chunks() const { return ceil_div(layout.block_count(), io_chunk_blocks); }
  std::int64_t bytes() const;         // of the file
  std::int64_t record_bytes() const;  // of a row among row records
  std::int64_t slot_bytes() const;    // of memory for an I/O chunk
};

struct SampledCounts {
  std::string name;  // for errors
  GraphCounts graph;
  std::int64_t largest_chunk = 0;      // of edges.out, in memory
  std::int64_t train = 0, judged = 0;  // vertices, of which the latter are validation and test
  bool is_named = false;               // vertices aren't in the order of their original ids
  LabelKind labels = LabelKind::kSingle;
  std::int64_t classes = 0;
  std::map<std::string, InputRows> tensors = {};  // by name, of the dataset
  std::vector<DegreeClass> degrees = {};          // for forecasts, and for likely batches

  std::int64_t vertices() const { return graph.edges.vertices; }
  std::int64_t edges() const { return graph.edges.edges; }
};

SampledCounts sampled_counts(const Dataset& dataset);  // without degrees
SampledCounts sampled_counts(const AbsentGraph& graph);

// What is packed of every vertex: inputs of the dataset, and those that are computed once a run.
std::vector<InputRows> stored_inputs(const SampledCounts& counts,
                                     const BatchLoaderOptions& options);
// In files: of the latter.
std::int64_t computed_bytes(const SampledCounts& counts, const BatchLoaderOptions& options);
RowSizes row_sizes(const std::vector<InputRows>& inputs);

}  // namespace ooc
