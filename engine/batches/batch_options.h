// How batches are loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/batches/seeds.h"
#include "sched/sampling/expand_pass.h"
#include "sched/sampling/hot_rows.h"
#include "storage/base/types.h"

namespace ooc {

// What programs read of a batch's vertices.
struct BatchInput {
  std::string name;
  DType dtype = DType::kF32;  // as they read it
  int level = 0;              // rows of levels up to this one
  std::int64_t cols = 1;
};

// Of memory, in bytes.
struct BatchMemory {
  std::int64_t hot_rows = 0;    // that stay; others go to a file
  std::int64_t lists = 0;       // of vertices and edges of a superbatch; what is over goes to files
  std::int64_t ranges = 0;      // of who asks, worked on together
  std::int64_t edge_slots = 0;  // edge chunks on their way
  std::int64_t writes = 0;      // of rows on their way to that file
  std::int64_t input_slots = 6;                  // I/O chunks of every input, on their way
  std::int64_t run_places = 4 << 20;             // words of a run of places
  std::int64_t batches = std::int64_t{1} << 40;  // that are made together, at most
};

// What memory is planned for. Batches that reach more, against all likelihood, are refused.
struct BatchLimits {
  std::vector<std::int64_t> level_rows;  // of a batch, at most; empty: any
  std::int64_t any_host_bytes = 0;       // a budget from which on any batch has memory
};

struct BatchLoaderOptions {
  std::vector<HopSampling> hops;
  std::int64_t batch_size = 0;
  std::int64_t batch_dependency = 1;  // batches in turn whose choices follow from one key
  std::vector<BatchInput> inputs;
  // What is packed of every vertex where batches of other programs have the same hot rows: what any
  // of them wants. Empty: what these want (wanted_inputs() in loaded_batch.h).
  std::vector<BatchInput> packed = {};
  // Whether a program reads the in-edges of vertices by those sampled (kSampleScaleInput), and of
  // which level; and whether it adds loops where the data has none.
  std::optional<int> sample_scale;
  bool adds_loops = false;
  bool out_edges = true;         // whether edges are folded into their sources: gradients
  std::string name = "batches";  // what files there begin with
  std::string scratch;           // a directory
  BatchMemory memory;
  BatchLimits limits = {};
  std::int64_t workers = 1;
  // Told by who waits for batches what share of making them is done.
  std::function<void(double share)> on_wait = {};
  DType real = DType::kF32;                              // of kSampleScaleInput
  std::shared_ptr<const SampledVertices> vertices = {};  // null: of its own
  std::shared_ptr<HotRows> hot = {};                     // likewise
  // Whether batches of one superbatch ask for rows as those of another do, as those of seeds in a
  // random order: then hot rows stay, else each superbatch has its own, in half of their memory.
  bool are_alike = true;
};

// Of a batch, at most: rows of each level.
std::vector<std::int64_t> most_level_rows(const BatchLoaderOptions& options, std::int64_t vertices,
                                          std::int64_t edges);

}  // namespace ooc
