#include "engine/minibatch/batch_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/minibatch/seeds.h"
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
    const std::int64_t fanout = options.hops[hop].fanout;
    const std::int64_t asks = rows[hop] - (hop > 0 ? rows[hop - 1] : 0);
    const bool all = fanout == HopSampling::kAll || asks > dataset.edges() / fanout;
    edges += all ? dataset.edges() : asks * fanout;
  }
  const auto edge_bytes =
      kEdgeBytes + 3 * static_cast<std::int64_t>(dataset.manifest().edges.data.bytes());
  return bytes + kComing * rows.back() * (kWordBytes + record) +
         std::min(edges, dataset.edges()) * edge_bytes;
}

}  // namespace

BatchBudget share_memory(const Dataset& dataset, const BatchPrograms& programs,
                         const BatchExecutor& training_executor,
                         const BatchExecutor& evaluation_executor,
                         const BatchLoaderOptions& training, const BatchLoaderOptions& evaluation,
                         const RunBudget& budget) {
  if (budget.host_bytes == 0) {
    return {0, {kNoLimit, kNoLimit, 1 << 30, 256 * kMiB, 64 * kMiB, 256 * kMiB}};
  }
  constexpr std::int64_t kCopies = 8;  // in use, of the state, the best, checkpoints
  const std::int64_t parameters = kCopies * parameter_bytes(programs.training, Mode::kTrain);
  std::int64_t fixed =
      budget.resident_bytes + process_reserve(training.workers, parameters, counts_of(dataset));
  fixed += (sizeof(std::uint32_t) * 2 + 1) * dataset.vertices();  // names, degrees, a split
  const auto executing = [&](const BatchExecutor& executor, const BatchLoaderOptions& options) {
    return executor.arena_bytes(most_level_rows(options, dataset.vertices(), dataset.edges())) +
           training.workers * executor.scratch_bytes() + executor.reduction_bytes();
  };
  fixed += executing(training_executor, training) + executing(evaluation_executor, evaluation);
  fixed += std::max(batch_bytes(dataset, training), batch_bytes(dataset, evaluation));
  // While one superbatch is trained on the next one is made. Rates hardly depend on what is on its
  // way once it is as much.
  constexpr std::int64_t kAtOnce = 2;
  const std::int64_t left = std::max<std::int64_t>(budget.host_bytes - fixed, 0) / kAtOnce;
  BatchMemory memory;
  memory.ranges = std::clamp(left / 16, 4 * kMiB, 256 * kMiB);
  memory.edge_slots = std::clamp(left / 16, 8 * kMiB, 64 * kMiB);
  memory.writes = std::clamp(left / 8, 16 * kMiB, 256 * kMiB);
  memory.lists = std::max(left / 8, 8 * kMiB);  // of vertices and edges, and of places
  const std::int64_t taken = memory.ranges + memory.edge_slots + memory.writes + 2 * memory.lists;
  const std::int64_t least = fixed + kAtOnce * (4 + 8 + 16 + 2 * 8) * kMiB;
  if (budget.host_bytes < least) {
    BudgetError error(
        fmt::format("a memory budget of {} MiB is too small: the least that works is {} MiB, for "
                    "batches of up to {} vertices",
                    budget.host_bytes / kMiB, ceil_div(least, kMiB),
                    most_level_rows(training, dataset.vertices(), dataset.edges()).back()),
        "--host-memory", "give more, or a smaller --batch-size or smaller --fanouts");
    error.least_bytes = least;
    throw error;
  }
  memory.hot_rows = std::max<std::int64_t>(left - taken, 0) * 3 / 4;
  memory.cold_rows = std::max<std::int64_t>(left - taken, 0) / 4;
  return {fixed, memory};
}

}  // namespace ooc
