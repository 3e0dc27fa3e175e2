#include "engine/minibatch/batch_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/minibatch/judged_rows.h"
#include "engine/minibatch/prepared_batches.h"
#include "engine/train/training_plan.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
// Without a limit there is as much as anything takes.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 50;

std::int64_t bytes_of(const Dataset& dataset, const BatchInput& input, std::int64_t rows) {
  const VertexTensorFile* const file = dataset.tensor(input.name);
  const std::int64_t cols = file == nullptr ? 1 : file->layout().cols;
  return batch_rows_bytes({.name = input.name, .cols = cols, .dtype = input.dtype}, rows);
}

// A batch's rows as they come, and as programs read them; its edges and their tiles.
std::int64_t batch_bytes(const Dataset& dataset, const BatchLoaderOptions& options) {
  constexpr std::int64_t kComing = 2, kWordBytes = 8, kEdgeBytes = 56;
  const std::vector<std::int64_t> rows =
      most_level_rows(options, dataset.vertices(), dataset.edges());
  std::int64_t bytes = 0, record = 0, edges = 0;
  for (const BatchInput& input : options.inputs) {
    const std::int64_t level_rows = rows[static_cast<std::size_t>(input.level)];
    bytes += bytes_of(dataset, input, level_rows);
    record += bytes_of(dataset, input, 64) / 64;
  }
  for (std::size_t hop = 0; hop < options.hops.size(); ++hop) {
    const HopSampling& sampling = options.hops[hop];
    const std::int64_t asks = rows[hop] - (hop > 0 ? rows[hop - 1] : 0);
    const bool all = sampling.fanout == HopSampling::kAll;
    const std::int64_t drawn = all ? dataset.edges() : asks * sampling.fanout;
    edges += sampling.replace ? drawn : std::min(drawn, dataset.edges());
  }
  if (edges > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(fmt::format("batches of up to {} edges", edges), dataset.path(),
                     "give a smaller --batch-size or smaller --fanouts");
  }
  const auto edge_bytes =
      kEdgeBytes + 3 * static_cast<std::int64_t>(dataset.manifest().edges.data.bytes());
  return bytes + kComing * rows.back() * (kWordBytes + record) + edges * edge_bytes;
}

// What stays whatever is loaded: programs and parameters, the largest batch, what is kept of every
// vertex and seed.
std::int64_t fixed_bytes(const Dataset& dataset, const BatchPrograms& programs,
                         const SampledRun& training, const SampledRun& evaluation,
                         const RunBudget& budget) {
  constexpr std::int64_t kCopies = 8;       // in use, of the state, the best, checkpoints
  constexpr std::int64_t kVertexBytes = 9;  // a name, a degree, a split
  // Seeds in their order, those of the batches at hand and to come, and 16 bytes to shuffle by.
  constexpr std::int64_t kSeedBytes = 4 * 4 + 16 + 16;
  const Manifest& manifest = dataset.manifest();
  const std::int64_t judged = manifest.split_counts[1] + manifest.split_counts[2];
  std::int64_t bytes = budget.resident_bytes + kVertexBytes * dataset.vertices() +
                       kSeedBytes * (manifest.split_counts[0] + judged);
  bytes += process_reserve(training.loading.workers,
                           kCopies * parameter_bytes(programs.training, Mode::kTrain),
                           counts_of(dataset));
  for (const SampledRun* run : {&training, &evaluation}) {
    const BatchLoaderOptions& options = run->loading;
    bytes +=
        run->executor.arena_bytes(most_level_rows(options, dataset.vertices(), dataset.edges())) +
        options.workers * run->executor.scratch_bytes() + run->executor.reduction_bytes();
  }
  bytes +=
      std::max(batch_bytes(dataset, training.loading), batch_bytes(dataset, evaluation.loading));
  const TensorId logits = programs.evaluation.evaluated().logits;
  if (logits >= 0 && programs.evaluation.value(logits) >= 0) {
    const std::int64_t classes = programs.evaluation.model().graph.shape(logits).cols;
    bytes += judged * JudgedRows::row_bytes(dataset, classes, programs.evaluation.real());
  }
  return bytes;
}

// Of what a budget leaves: while one superbatch is trained on the next one is made. Rates hardly
// depend on what is on its way once it is as much.
class Shares {
 public:
  Shares(const Dataset& dataset, const SampledRun& training, const GraphInputs& inputs)
      : dataset_(dataset),
        training_(training),
        record_(packed_inputs(training.loading, inputs)),
        whole_spans_(dataset.manifest().order != "natural") {}

  BatchMemory of(std::int64_t bytes) const {
    BatchMemory memory;
    memory.ranges = std::clamp(bytes / 16, 4 * kMiB, 256 * kMiB);
    memory.edge_slots = std::clamp(bytes / 32, 4 * kMiB, 64 * kMiB);
    memory.writes = std::clamp(bytes / 10, 16 * kMiB, 256 * kMiB);
    memory.lists = std::max(bytes / 12, 8 * kMiB);
    memory.run_places = std::clamp<std::int64_t>(bytes / 1024, 1 << 14, 4 << 20);
    memory.input_slots = 6;
    while (memory.input_slots > 2 && working_bytes(memory) > bytes / 3) --memory.input_slots;
    const std::int64_t rest = std::max<std::int64_t>(bytes - taken(memory), 0) / kAtOnce;
    memory.hot_rows = rest / 4 * 3;
    memory.cold_rows = rest / 4;
    return memory;
  }
  // All but rows.
  std::int64_t taken(const BatchMemory& memory) const {
    constexpr std::int64_t kLoaders = 2;
    const BatchLoaderOptions& loading = training_.loading;
    const std::int64_t edges =
        edge_slot_bytes(dataset_.edge_file(Direction::kOut), memory.edge_slots, whole_spans_);
    const std::int64_t lists =
        loading.workers * ExpandPass::worker_bytes(dataset_.manifest().edges.data, whole_spans_);
    return kLoaders * edges + lists + memory.ranges + working_bytes(memory) +
           kAtOnce * 2 * memory.lists;
  }

 private:
  static constexpr std::int64_t kAtOnce = 2;

  std::int64_t working_bytes(const BatchMemory& memory) const {
    constexpr std::int64_t kRuns = 16;  // of a list of vertices, about
    const std::int64_t batches =
        std::min(most_batches(memory),
                 ceil_div(dataset_.manifest().split_counts[0], training_.loading.batch_size));
    return PackedRows::working_bytes(record_, packing_options(memory),
                                     std::max(batches, std::int64_t{1}), kRuns,
                                     training_.loading.workers);
  }

  const Dataset& dataset_;
  const SampledRun& training_;
  RowRecord record_;
  bool whole_spans_;
};

}  // namespace

BatchBudget share_memory(const Dataset& dataset, const BatchPrograms& programs,
                         const SampledRun& training, const SampledRun& evaluation,
                         const GraphInputs& inputs, const RunBudget& budget) {
  const std::int64_t fixed = fixed_bytes(dataset, programs, training, evaluation, budget);
  if (budget.host_bytes == 0) {
    return {fixed, {kNoLimit, kNoLimit, 1 << 30, 256 * kMiB, 64 * kMiB, 256 * kMiB}};
  }
  const Shares shares(dataset, training, inputs);
  const std::int64_t least = fixed + shares.taken(shares.of(0));
  if (budget.host_bytes < least) {
    BudgetError error(
        fmt::format("a memory budget of {} MiB is too small: the least that works is {} MiB, for "
                    "batches of up to {} vertices",
                    budget.host_bytes / kMiB, ceil_div(least, kMiB),
                    most_level_rows(training.loading, dataset.vertices(), dataset.edges()).back()),
        "--host-memory", "give more, or a smaller --batch-size or smaller --fanouts");
    error.least_bytes = least;
    throw error;
  }
  return {fixed, shares.of(budget.host_bytes - fixed)};
}

}  // namespace ooc
