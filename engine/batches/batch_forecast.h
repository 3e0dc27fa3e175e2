// What an epoch on sampled batches moves from and to storage, from counts and degrees alone: before
// anything is read or written. It follows what SuperbatchMaker and BatchLoader do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/batches/batch_options.h"
#include "engine/batches/sampled_counts.h"

namespace ooc {

// Of all batches of some seeds; bytes are from storage and to it.
struct BatchForecast {
  std::int64_t batches = 0, superbatches = 0;
  double batch_vertices = 0, batch_edges = 0;  // of one, expected
  double hot_rows = 0;                         // that the first superbatch' batches ask for
  double hot_share = 0;                        // of rows that its batches ask for, those
  std::int64_t edge_readings = 0;              // of the file of edges
  double edge_bytes = 0;
  double list_bytes_read = 0, list_bytes_written = 0;  // of vertices and edges
  double input_bytes = 0;
  double cold_bytes = 0;  // written, and read back
  double scratch = 0;     // of a superbatch' files

  std::int64_t bytes_read() const {
    return static_cast<std::int64_t>(edge_bytes + list_bytes_read + input_bytes + cold_bytes);
  }
  std::int64_t bytes_written() const {
    return static_cast<std::int64_t>(list_bytes_written + cold_bytes);
  }
};

// Whose rows stay in memory, by class.
struct HotChoice {
  std::vector<double> shares;  // of its vertices
  std::vector<double> cold;    // how many of the batches that choose ask for a vertex and find none
};

// `options`: with memory. `seeds`: which are those.
// What samplers other than the uniform one choose counts as that one's would: labor reaches fewer
// vertices. The first superbatch chooses.
HotChoice forecast_hot(const SampledCounts& counts, const BatchLoaderOptions& options,
                       double DegreeClass::*seeds);

// Where hot rows are chosen and here, or the first superbatch of these chooses: each, where they
// aren't alike.
BatchForecast forecast_batches(const SampledCounts& counts, const BatchLoaderOptions& options,
                               double DegreeClass::*seeds, const HotChoice& hot, bool chooses);

// What temporary files take, and how many batches are then prepared together.
struct ScratchNeed {
  std::int64_t bytes = 0, together = 1;
};
// Has fewer batches prepared together, by `memory.batches`, until what is needed has room in
// `free_bytes` of `directory`. IoError where one at a time has none.
void fit_scratch(std::int64_t free_bytes, const std::string& directory,
                 const std::function<ScratchNeed(const BatchMemory&)>& needed, BatchMemory& memory);

}  // namespace ooc
