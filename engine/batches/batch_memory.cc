#include "engine/batches/batch_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/batches/batch_forecast.h"
#include "engine/batches/loaded_batch.h"
#include "engine/batches/prepared_batches.h"
#include "engine/sampling/reached_batch.h"
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

LargestBatch largest_batch(const SampledCounts& counts, const BatchLoaderOptions& options,
                           const std::vector<std::int64_t>& rows) {
  LargestBatch largest;
  largest.rows = rows.back();
  for (const BatchInput& input : options.inputs) {
    largest.input_bytes += bytes_of(input, rows[static_cast<std::size_t>(input.level)]);
  }
  for (const BatchInput& input : packed_inputs(options)) {
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
std::int64_t batch_bytes(const SampledCounts& counts, const BatchLoaderOptions& options,
                         const std::vector<std::int64_t>& rows) {
  constexpr std::int64_t kWordBytes = 8, kEdgeBytes = 56;
  const LargestBatch largest = largest_batch(counts, options, rows);
  const auto edge_bytes =
      kEdgeBytes + 3 * static_cast<std::int64_t>(counts.graph.edges.data.bytes());
  return largest.input_bytes + largest.rows * (kWordBytes + largest.record_bytes) +
         largest.edges * edge_bytes;
}

// As it lies in a file.
std::int64_t stored_bytes(const SampledCounts& counts, const BatchLoaderOptions& options,
                          const std::vector<std::int64_t>& rows) {
  const LargestBatch largest = largest_batch(counts, options, rows);
  const auto edge_bytes =
      static_cast<std::int64_t>(sizeof(BatchEdge) + counts.graph.edges.data.bytes());
  return largest.input_bytes + largest.edges * edge_bytes;
}

std::vector<std::int64_t> any_rows(const SampledCounts& counts, const BatchLoaderOptions& options) {
  return most_level_rows(options, counts.vertices(), counts.edges());
}

// What batches of such seeds reach on average, an eighth more, and 4 times by how much that varies
// at most: a batch's seeds are independent, and what each reaches, of at most `most`, varies most
// if it is all or none. No more than `any`.
std::vector<std::int64_t> likely_rows(const SampledCounts& counts,
                                      const BatchLoaderOptions& options, double DegreeClass::*seeds,
                                      const std::vector<std::int64_t>& any) {
  constexpr double kMore = 1.125, kDeviations = 4;
  const auto batch = static_cast<double>(any.front());
  const ReachedBatch reached = reach_batch(options.hops, batch, counts.degrees, seeds);
  double most = 1;
  std::vector<std::int64_t> rows = any;
  for (std::size_t level = 1; level < rows.size(); ++level) {
    most += static_cast<double>(any[level] - any[level - 1]) / batch;
    const double mean = reached.level_rows[level] / batch;
    const double deviation = std::sqrt(batch * mean * std::max(most - mean, 0.0));
    const double likely = kMore * reached.level_rows[level] + kDeviations * deviation;
    rows[level] = std::min(rows[level], static_cast<std::int64_t>(likely));
  }
  return rows;
}

// By level, the largest likely batch of a kind; any one where degrees don't say what is likely.
std::vector<std::int64_t> likely_rows(const SampledCounts& counts, const SampledRun& run) {
  constexpr double kLeastSeen = 1000;  // seeds, where not all vertices were looked at
  const BatchLoaderOptions& options = run.loading;
  const std::vector<std::int64_t> any = any_rows(counts, options);
  const bool are_uniform =
      std::all_of(options.hops.begin(), options.hops.end(), [](const HopSampling& hop) {
        return hop.fanout != HopSampling::kAll && hop.choice != HopSampling::Choice::kWeighted;
      });
  if (!are_uniform || run.seeds.empty()) return any;
  const double seen = static_cast<double>(kMostClassified) / static_cast<double>(counts.vertices());
  std::vector<std::int64_t> rows(any.size());
  for (double DegreeClass::*const seeds : run.seeds) {
    double count = 0;
    for (const DegreeClass& of : counts.degrees) count += of.*seeds;
    if (seen < 1 && seen * count < kLeastSeen) return any;
    const std::vector<std::int64_t> likely = likely_rows(counts, options, seeds, any);
    for (std::size_t level = 0; level < rows.size(); ++level) {
      rows[level] = std::max(rows[level], likely[level]);
    }
  }
  return rows;
}

// What stays when no batch is at hand: programs and parameters, what is kept of every vertex and
// seed.
std::int64_t kept_bytes(const SampledCounts& counts, std::int64_t parameter_bytes,
                        std::int64_t workers, const RunBudget& budget) {
  constexpr std::int64_t kCopies = 8;  // in use, of the state, the best, checkpoints
  // Seeds in their order, those of the batches at hand and to come, and 16 bytes to shuffle by.
  constexpr std::int64_t kSeedBytes = 4 * 4 + 16 + 16;
  const std::int64_t vertex_bytes = 4 + (counts.is_named ? 4 : 0);  // a degree, a name
  return budget.resident_bytes + vertex_bytes * counts.vertices() +
         kSeedBytes * (counts.train + counts.judged) +
         process_reserve(workers, kCopies * parameter_bytes, counts.graph);
}

// Of one batch of the largest kind, and of what computes.
std::int64_t batch_bytes(const SampledCounts& counts, const BatchWork& work,
                         const std::vector<BatchLimits>& limits) {
  std::int64_t reductions = 0, most = 0;
  for (std::size_t i = 0; i < work.runs.size(); ++i) {
    const auto& [options, executor, seeds] = work.runs[i];
    const std::vector<std::int64_t>& rows = limits[i].level_rows;
    reductions += executor.reduction_bytes();
    most = std::max(most, executor.arena_bytes(rows) + options.workers * executor.scratch_bytes() +
                              batch_bytes(counts, options, rows));
  }
  return reductions + most;
}

// Of a batch, about: vertices, and edges of the hop with most of them.
struct ExpectedBatch {
  double rows = 0, edges = 0;
};

// Of one of these kinds of seeds, or of any, the largest on average and some more; any, where
// nothing is known of degrees.
ExpectedBatch expected_batch(const SampledCounts& counts, const BatchLoaderOptions& loading,
                             const std::vector<double DegreeClass::*>& seeds) {
  constexpr double kMore = 1.125;
  const std::vector<std::int64_t> any = any_rows(counts, loading);
  ExpectedBatch most{static_cast<double>(any.back()),
                     static_cast<double>(largest_batch(counts, loading, any).edges)};
  if (counts.degrees.empty()) return most;
  ExpectedBatch expected;
  const std::vector<double DegreeClass::*> all{&DegreeClass::vertices};
  for (double DegreeClass::*const kind : seeds.empty() ? all : seeds) {
    const ReachedBatch reached =
        reach_batch(loading.hops, static_cast<double>(any.front()), counts.degrees,
                    seen_seeds(counts.degrees, kind, counts.vertices()));
    expected.rows = std::max(expected.rows, kMore * reached.level_rows.back());
    for (const double edges : reached.edges) {
      expected.edges = std::max(expected.edges, kMore * edges);
    }
  }
  return {std::min(expected.rows, most.rows), std::min(expected.edges, most.edges)};
}

// Of what a budget leaves: while one superbatch is trained on the next one is made, with lists of
// its own. Rates hardly depend on what is on its way once it is as much.
class Shares {
 public:
  // `kind`: of the seeds whose batches count; `seeds`: of all batches that may go together.
  Shares(const SampledCounts& counts, const BatchLoaderOptions& loading, double DegreeClass::*kind,
         std::int64_t seeds, const ExpectedBatch& batch)
      : counts_(counts),
        loading_(loading),
        kind_(kind),
        seeds_(seeds),
        batch_(batch),
        sizes_(row_sizes(stored_inputs(counts, loading))) {
    for (std::int64_t step = kMiB; step < kMost; step += step / 4) steps_.push_back(step);
  }

  // Of at least least() bytes. Where the shares of these take more, those of other sizes with which
  // the fewest bytes move.
  BatchMemory of(std::int64_t bytes) const {
    BatchMemory memory = with_rows(shares_of(bytes), bytes);
    if (memory.hot_rows < 0) {
      memory = with_rows(shares_of(least_step()), bytes);
      double least = moved_bytes(memory);
      for (const std::int64_t step : steps_) {
        const BatchMemory other = with_rows(shares_of(step), bytes);
        if (step > bytes || other.hot_rows < 0) continue;
        const double moved = moved_bytes(other);
        if (moved < least) memory = other;
        least = std::min(least, moved);
      }
    }
    // More than all rows take is for lists.
    const std::int64_t all_rows = counts_.vertices() * sizes_.record * (loading_.are_alike ? 1 : 2);
    const std::int64_t spare = std::max<std::int64_t>(memory.hot_rows - all_rows, 0);
    memory.hot_rows -= spare;
    memory.lists += spare / (2 * kAtOnce);
    return memory;
  }
  std::int64_t least() const { return taken(shares_of(least_step())); }

 private:
  static constexpr std::int64_t kAtOnce = 2;
  static constexpr std::int64_t kMost = std::int64_t{1} << 44;

  // All but rows.
  BatchMemory shares_of(std::int64_t bytes) const {
    BatchMemory memory;
    memory.edge_slots = std::clamp(bytes / 32, 4 * kMiB, 64 * kMiB);
    memory.writes = std::clamp(bytes / 10, 4 * kMiB, 256 * kMiB);
    memory.lists = std::max(bytes / 24, 8 * kMiB);
    memory.run_places = std::clamp<std::int64_t>(bytes / 1024, 1 << 14, 4 << 20);
    memory.input_slots = 6;
    while (memory.input_slots > 2 && working_bytes(memory) > bytes / 3) --memory.input_slots;
    memory.ranges = ranges_of(memory, bytes / 16);
    // Of longer lists there are fewer runs, and what is read of all of them at once takes less.
    for (BatchMemory longer = memory; list_bytes(longer) < taken(memory); longer.lists *= 2) {
      longer.ranges = ranges_of(longer, bytes / 16);
      if (taken(longer) < taken(memory)) memory = longer;
    }
    return memory;
  }

  BatchMemory with_rows(BatchMemory memory, std::int64_t bytes) const {
    memory.hot_rows = bytes - taken(memory);
    return memory;
  }

  // In an epoch that isn't the first.
  double moved_bytes(const BatchMemory& memory) const {
    BatchLoaderOptions loading = loading_;
    loading.memory = memory;
    const BatchForecast epoch = forecast_batches(
        counts_, loading, kind_, forecast_hot(counts_, loading, kind_), !loading.are_alike);
    return epoch.edge_bytes + epoch.list_bytes_read + epoch.list_bytes_written + epoch.input_bytes +
           2 * epoch.cold_bytes;
  }

  std::int64_t least_step() const {
    return *std::min_element(steps_.begin(), steps_.end(), [this](std::int64_t a, std::int64_t b) {
      return taken(shares_of(a)) < taken(shares_of(b));
    });
  }

  static std::int64_t list_bytes(const BatchMemory& memory) { return kAtOnce * 2 * memory.lists; }

  std::int64_t taken(const BatchMemory& memory) const {
    constexpr std::int64_t kLoaders = 2;
    const EdgeLayout& layout = counts_.graph.edges;
    const std::int64_t edges =
        counts_.largest_chunk *
        edge_slot_count(layout, counts_.largest_chunk, memory.edge_slots, counts_.is_named);
    const SuperbatchOptions limits = superbatch_limits(memory, layout.data, loading_.workers);
    const std::int64_t lists =
        loading_.workers * ExpandPass::worker_bytes(layout.data, counts_.is_named) +
        limits.expand.ranges_at_once * ExpandPass::range_bytes(layout);
    const std::int64_t buffers =
        kListsAtOnce * RecordBuffers::least_bytes(layout.data.bytes(), loading_.workers) -
        list_buffer_bytes(memory);
    return kLoaders * edges + lists + memory.ranges + working_bytes(memory) +
           kAtOnce * HotRows::table_bytes(counts_.vertices()) + list_bytes(memory) +
           std::max(buffers, std::int64_t{0});
  }

  std::int64_t batches(const BatchMemory& memory) const {
    return std::max<std::int64_t>(
        std::min(most_batches(memory), ceil_div(seeds_, loading_.batch_size)), 1);
  }

  // That a list of so many records a batch comes to.
  double runs(const BatchMemory& memory, double records) const {
    const SuperbatchOptions limits =
        superbatch_limits(memory, counts_.graph.edges.data, loading_.workers);
    return records * static_cast<double>(batches(memory)) /
           static_cast<double>(limits.resolve.buffer_records);
  }

  // About as much as is given, but for one range, as large as the runs make it on average; no more
  // than all workers' ranges take.
  std::int64_t ranges_of(const BatchMemory& memory, std::int64_t bytes) const {
    // Of each run a range has so many records fewer than its bound, on average.
    constexpr double kInexact = 256;
    const double records =
        (static_cast<double>(kLeastOfRun) - kInexact) * runs(memory, batch_.edges);
    const auto range =
        static_cast<std::int64_t>(records) * resolved_bytes(counts_.graph.edges.data);
    const std::int64_t least = std::max(range, 4 * kMiB);
    return std::clamp(bytes, least, std::max(256 * kMiB, (loading_.workers + 2) * least));
  }

  std::int64_t working_bytes(const BatchMemory& memory) const {
    // Of each run a stretch has half as many words as its bound is too large by, on average.
    constexpr double kOfRun = 0.5;
    const auto of_rows = static_cast<std::int64_t>(std::ceil(kOfRun * runs(memory, batch_.rows)));
    return PackedRows::working_bytes(sizes_, packing_options(memory), batches(memory), of_rows,
                                     loading_.workers);
  }

  const SampledCounts& counts_;
  const BatchLoaderOptions& loading_;
  double DegreeClass::*kind_;
  std::int64_t seeds_;
  ExpectedBatch batch_;
  RowSizes sizes_;
  std::vector<std::int64_t> steps_;
};

// Of what is left beside `fixed` bytes. BudgetError naming `option`, where that is too little for
// batches of so many vertices.
BatchMemory share_rest(const Shares& shares, std::int64_t fixed, std::int64_t host_bytes,
                       std::int64_t rows, const char* option) {
  if (host_bytes == 0) return unlimited_memory();
  const std::int64_t least = fixed + shares.least();
  if (host_bytes >= least) return shares.of(host_bytes - fixed);
  BudgetError error(
      fmt::format("a memory budget of {} MiB is too small: the least that works is {} MiB, for "
                  "batches of up to {} vertices",
                  host_bytes / kMiB, ceil_div(least, kMiB), rows),
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
  BatchBudget shares;
  ExpectedBatch expected;
  for (const SampledRun& run : work.runs) {
    const ExpectedBatch of = expected_batch(counts, run.loading, run.seeds);
    expected = {std::max(expected.rows, of.rows), std::max(expected.edges, of.edges)};
  }
  const std::vector<double DegreeClass::*>& seeds = work.runs.front().seeds;
  const Shares rest(counts, loading, seeds.empty() ? &DegreeClass::vertices : seeds.front(),
                    std::max(counts.train, counts.judged), expected);
  shares.kept_bytes = kept_bytes(counts, work.parameter_bytes, loading.workers, budget);
  for (const SampledRun& run : work.runs) shares.limits.push_back({any_rows(counts, run.loading)});
  const std::int64_t any =
      shares.kept_bytes + batch_bytes(counts, work, shares.limits) + work.own_bytes + rest.least();
  constexpr std::int64_t kAmple = 2;
  if (budget.host_bytes > 0 && budget.host_bytes < kAmple * any) {
    for (std::size_t i = 0; i < work.runs.size(); ++i) {
      shares.limits[i] = {likely_rows(counts, work.runs[i]), kAmple * any};
    }
  }
  std::int64_t rows = 0;
  for (const BatchLimits& limits : shares.limits) rows = std::max(rows, limits.level_rows.back());
  shares.fixed_bytes =
      shares.kept_bytes + batch_bytes(counts, work, shares.limits) + work.own_bytes;
  shares.loading = share_rest(rest, shares.fixed_bytes, budget.host_bytes, rows, "--host-memory");
  return shares;
}

BatchMemory share_sampling_memory(const SampledCounts& counts, const BatchLoaderOptions& loading,
                                  const std::vector<double DegreeClass::*>& seeds,
                                  const RunBudget& budget) {
  const std::vector<std::int64_t> rows = any_rows(counts, loading);
  const std::int64_t fixed = kept_bytes(counts, 0, loading.workers, budget) +
                             batch_bytes(counts, loading, rows) +
                             stored_bytes(counts, loading, rows);
  const Shares rest(counts, loading, seeds.empty() ? &DegreeClass::vertices : seeds.front(),
                    counts.train, expected_batch(counts, loading, seeds));
  return share_rest(rest, fixed, budget.host_bytes, rows.back(), "--memory");
}

}  // namespace ooc
