#include "engine/batches/batch_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/batches/prepared_batches.h"
#include "engine/train/training_plan.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::int64_t bytes_of(const BatchInput& input, std::int64_t rows) {
  return batch_rows_bytes({.name = input.name, .cols = input.cols, .dtype = input.dtype}, rows);
}

// Of a batch, at most.
struct LargestBatch {
  std::int64_t rows = 0, edges = 0;
  std::int64_t input_bytes = 0;   // of its rows, as programs read them
  std::int64_t record_bytes = 0;  // of a row, as it comes
};

LargestBatch largest_batch(const SampledCounts& counts, const BatchLoaderOptions& options) {
  const std::vector<std::int64_t> rows =
      most_level_rows(options, counts.vertices(), counts.edges());
  LargestBatch largest;
  largest.rows = rows.back();
  for (const BatchInput& input : options.inputs) {
    const std::int64_t level_rows = rows[static_cast<std::size_t>(input.level)];
    largest.input_bytes += bytes_of(input, level_rows);
    largest.record_bytes += bytes_of(input, 64) / 64;
  }
  for (std::size_t hop = 0; hop < options.hops.size(); ++hop) {
    const HopSampling& sampling = options.hops[hop];
    const std::int64_t asks = rows[hop] - (hop > 0 ? rows[hop - 1] : 0);
    const bool all = sampling.fanout == HopSampling::kAll;
    const std::int64_t drawn = all ? counts.edges() : asks * sampling.fanout;
    largest.edges += sampling.replace ? drawn : std::min(drawn, counts.edges());
  }
  if (largest.edges > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(fmt::format("batches of up to {} edges", largest.edges), counts.name,
                     "give a smaller --batch-size or smaller --fanouts");
  }
  return largest;
}

// A batch's rows as they come, and as programs read them; its edges and their tiles.
std::int64_t batch_bytes(const SampledCounts& counts, const BatchLoaderOptions& options) {
  constexpr std::int64_t kComing = 2, kWordBytes = 8, kEdgeBytes = 56;
  const LargestBatch largest = largest_batch(counts, options);
  const auto edge_bytes =
      kEdgeBytes + 3 * static_cast<std::int64_t>(counts.graph.edges.data.bytes());
  return largest.input_bytes + kComing * largest.rows * (kWordBytes + largest.record_bytes) +
         largest.edges * edge_bytes;
}

// As it lies in a file.
std::int64_t stored_bytes(const SampledCounts& counts, const BatchLoaderOptions& options) {
  const LargestBatch largest = largest_batch(counts, options);
  const auto edge_bytes =
      static_cast<std::int64_t>(sizeof(BatchEdge) + counts.graph.edges.data.bytes());
  return largest.input_bytes + largest.edges * edge_bytes;
}

// What stays when no batch is at hand: programs and parameters, what is kept of every vertex and
// seed.
std::int64_t kept_bytes(const SampledCounts& counts, std::int64_t parameter_bytes,
                        std::int64_t workers, const RunBudget& budget) {
  constexpr std::int64_t kCopies = 8;       // in use, of the state, the best, checkpoints
  constexpr std::int64_t kVertexBytes = 9;  // a name, a degree, a split
  // Seeds in their order, those of the batches at hand and to come, and 16 bytes to shuffle by.
  constexpr std::int64_t kSeedBytes = 4 * 4 + 16 + 16;
  return budget.resident_bytes + kVertexBytes * counts.vertices() +
         kSeedBytes * (counts.train + counts.judged) +
         process_reserve(workers, kCopies * parameter_bytes, counts.graph);
}

// Of the largest batch of any kind, and of what computes.
std::int64_t batch_bytes(const SampledCounts& counts, const BatchWork& work) {
  std::int64_t bytes = 0, largest = 0;
  for (const SampledRun& run : work.runs) {
    const BatchLoaderOptions& options = run.loading;
    bytes += run.executor.arena_bytes(most_level_rows(options, counts.vertices(), counts.edges())) +
             options.workers * run.executor.scratch_bytes() + run.executor.reduction_bytes();
    largest = std::max(largest, batch_bytes(counts, options));
  }
  return bytes + largest;
}

// Of what a budget leaves: while one superbatch is trained on the next one is made, with lists of
// its own. Rates hardly depend on what is on its way once it is as much.
class Shares {
 public:
  Shares(const SampledCounts& counts, const BatchLoaderOptions& loading)
      : counts_(counts), loading_(loading), sizes_(row_sizes(stored_inputs(counts, loading))) {}

  BatchMemory of(std::int64_t bytes) const {
    BatchMemory memory;
    memory.ranges = std::clamp(bytes / 16, 4 * kMiB, 256 * kMiB);
    memory.edge_slots = std::clamp(bytes / 32, 4 * kMiB, 64 * kMiB);
    memory.writes = std::clamp(bytes / 10, 16 * kMiB, 256 * kMiB);
    memory.lists = std::max(bytes / 24, 8 * kMiB);
    memory.run_places = std::clamp<std::int64_t>(bytes / 1024, 1 << 14, 4 << 20);
    memory.input_slots = 6;
    while (memory.input_slots > 2 && working_bytes(memory) > bytes / 3) --memory.input_slots;
    memory.hot_rows = std::max<std::int64_t>(bytes - taken(memory), 0);
    // More than all rows take is for lists.
    const std::int64_t all_rows = counts_.vertices() * sizes_.record;
    const std::int64_t spare = std::max<std::int64_t>(memory.hot_rows - all_rows, 0);
    memory.hot_rows -= spare;
    memory.lists += spare / (2 * kAtOnce);
    return memory;
  }
  // All but rows.
  std::int64_t taken(const BatchMemory& memory) const {
    constexpr std::int64_t kLoaders = 2;
    const EdgeLayout& layout = counts_.graph.edges;
    const std::int64_t edges =
        counts_.largest_chunk *
        edge_slot_count(layout, counts_.largest_chunk, memory.edge_slots, counts_.is_named);
    const std::int64_t lists =
        loading_.workers * ExpandPass::worker_bytes(layout.data, counts_.is_named);
    return kLoaders * edges + lists + memory.ranges + working_bytes(memory) +
           HotRows::table_bytes(counts_.vertices()) + kAtOnce * 2 * memory.lists;
  }

 private:
  static constexpr std::int64_t kAtOnce = 2;

  std::int64_t working_bytes(const BatchMemory& memory) const {
    constexpr std::int64_t kRuns = 16;  // of a list of vertices, about
    const std::int64_t batches =
        std::min(most_batches(memory), ceil_div(counts_.train, loading_.batch_size));
    return PackedRows::working_bytes(sizes_, packing_options(memory),
                                     std::max(batches, std::int64_t{1}), kRuns, loading_.workers);
  }

  const SampledCounts& counts_;
  const BatchLoaderOptions& loading_;
  RowSizes sizes_;
};

// Of what is left beside `fixed` bytes. BudgetError naming `option`, where that is too little.
BatchMemory share_rest(const SampledCounts& counts, const BatchLoaderOptions& loading,
                       std::int64_t fixed, std::int64_t host_bytes, const char* option) {
  if (host_bytes == 0) return unlimited_memory();
  const Shares shares(counts, loading);
  const std::int64_t least = fixed + shares.taken(shares.of(0));
  if (host_bytes >= least) return shares.of(host_bytes - fixed);
  BudgetError error(
      fmt::format("a memory budget of {} MiB is too small: the least that works is {} MiB, for "
                  "batches of up to {} vertices",
                  host_bytes / kMiB, ceil_div(least, kMiB),
                  most_level_rows(loading, counts.vertices(), counts.edges()).back()),
      option, "give more, or a smaller --batch-size or smaller --fanouts");
  error.least_bytes = least;
  throw error;
}

}  // namespace

BatchMemory unlimited_memory() {
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 50;
  return {kNoLimit, 1 << 30, 256 * kMiB, 64 * kMiB, 256 * kMiB};
}

BatchBudget share_memory(const SampledCounts& counts, const BatchWork& work,
                         const RunBudget& budget) {
  const BatchLoaderOptions& loading = work.runs.front().loading;
  const std::int64_t kept = kept_bytes(counts, work.parameter_bytes, loading.workers, budget);
  const std::int64_t fixed = kept + batch_bytes(counts, work) + work.own_bytes;
  return {kept, fixed, share_rest(counts, loading, fixed, budget.host_bytes, "--host-memory")};
}

BatchMemory share_sampling_memory(const SampledCounts& counts, const BatchLoaderOptions& loading,
                                  const RunBudget& budget) {
  const std::int64_t fixed = kept_bytes(counts, 0, loading.workers, budget) +
                             batch_bytes(counts, loading) + stored_bytes(counts, loading);
  return share_rest(counts, loading, fixed, budget.host_bytes, "--memory");
}

}  // namespace ooc
