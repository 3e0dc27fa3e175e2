#include "sched/plan/search/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sched/plan/cost/cost.h"
#include "sched/plan/cost/launches.h"
#include "sched/plan/io_chunks.h"
#include "sched/plan/plan.h"
#include "sched/plan/residency/lp.h"
#include "sched/plan/residency/tier.h"
#include "sched/plan/search/choice.h"
#include "sched/plan/search/planned_devices.h"
#include "sched/plan/search/splits.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kPage = 4096;

// The passes work in the device's memory, or in the host's where that is the same.
PlanOptions working_options(PlanOptions options) {
  if (options.device) options.memory_bytes = options.device_memory_bytes;
  return options;
}

class Planner {
 public:
  Planner(const std::vector<const Program*>& programs, const GraphCounts& graph,
          const PlanOptions& options)
      : options_(options),
        working_options_(working_options(options)),
        own_(own_blocks(programs, graph, working_options_)),
        builder_(programs, graph, working_options_, largest_range(own_)),
        edges_(graph, largest_range(own_)),
        all_edges_(graph) {}

  // Nothing: the least working set doesn't fit.
  std::optional<Plan> make(Bounds bounds = Bounds::kFound) const {
    const std::optional<WorkingTier> best = choose_working_tier(builder_, edges_);
    if (!best) return std::nullopt;
    PlanProblem problem(builder_, edges_, best->splits);
    Plan plan = best->tier.plan;
    if (!options_.device) {
      const ResidentSet& kept = best->tier.kept;
      predict(problem, kept, transfers_of(problem, kept, storage_rates(options_.rates)), plan);
      if (bounds == Bounds::kFound) add_bounds(problem, plan);
      return plan;
    }
    const auto devices = PlannedDevices::follow(own_, problem, best->tier, plan);
    if (!devices || !add_host(problem, *devices, bounds, plan)) return std::nullopt;
    return plan;
  }

  // The least memory in which the passes work.
  std::int64_t least_memory() const {
    const PlanProblem problem(builder_, edges_, smallest_splits(builder_));
    std::int64_t bytes = 0;
    for (int pass = 0; pass < problem.draft().pass_count(); ++pass) {
      bytes = std::max(bytes, least_memory_of(problem, pass));
    }
    return bytes + problem.arena().reduction_bytes;
  }

 private:
  // The plan as it is made as if storage were below the devices, and the host's memory in between.
  // False: that doesn't hold one staging slot.
  bool add_host(PlanProblem& problem, const PlannedDevices& devices, Bounds bounds,
                Plan& plan) const {
    HostTier host;
    if (!add_staging(problem, plan, host)) return false;
    std::int64_t limit = 0;
    if (options_.memory_bytes != 0) {  // 1: nothing fits
      limit = std::max<std::int64_t>(options_.memory_bytes - host.staging.bytes, 1);
    }
    PlanProblem below(devices.above(), all_edges_, limit);
    TierPlan tier = plan_tier(below);
    DevicePlan& kept_below = tier.plan.devices[0];
    host.ranges = std::move(kept_below.ranges);
    host.edge_ranges = std::move(kept_below.edge_ranges);
    host.stored_from_block = std::move(kept_below.stored_from_block);
    host.staging.offset = kept_below.arena_bytes;
    host.arena_bytes = host.staging.offset + host.staging.bytes;
    plan.host = std::move(host);
    plan.stored_bytes = tier.plan.stored_bytes;
    if (plan.remark.empty()) plan.remark = tier.plan.remark;
    move_to_link(tier.plan, plan);
    const ResidentSet& kept = devices.kept_of(problem.share().own);
    std::vector<PhaseSeconds> transfers = transfers_of(problem, kept, link_rates(options_.rates));
    const std::vector<PhaseSeconds> storage =
        transfers_of(below, tier.kept, storage_rates(options_.rates));
    for (std::size_t pass = 0; pass < transfers.size(); ++pass) {
      transfers[pass] = slower(transfers[pass], storage[pass]);
    }
    predict(problem, kept, transfers, plan);
    if (bounds == Bounds::kFound) add_bounds(problem, devices, below, plan);
    return true;
  }

  // What passes read and wrote crosses the link; from and to storage goes what `host` says.
  static void move_to_link(const Plan& host, Plan& plan) {
    for (std::size_t s = 0; s < plan.sections.size(); ++s) {
      for (std::size_t p = 0; p < plan.sections[s].passes.size(); ++p) {
        Pass& pass = plan.sections[s].passes[p];
        pass.bytes_to_device = pass.bytes_read;
        pass.bytes_from_device = pass.bytes_written;
        pass.bytes_read = host.sections[s].passes[p].bytes_read;
        pass.bytes_written = host.sections[s].passes[p].bytes_written;
      }
    }
    plan.bytes_to_device = plan.bytes_read;
    plan.bytes_from_device = plan.bytes_written;
    plan.bytes_read = host.bytes_read;
    plan.bytes_written = host.bytes_written;
  }

  // As many slots as overlap transfers well, in at most a quarter of the memory.
  bool add_staging(const PlanProblem& problem, const Plan& plan, HostTier& host) const {
    constexpr std::int64_t kOfDevice = 16;
    const std::int64_t most = kOfDevice * options_.devices;
    const std::int64_t slot = staging_slot(problem, plan);
    const std::int64_t memory = options_.memory_bytes;
    if (memory != 0 && memory < slot) return false;
    host.staging_slots = most;
    if (memory != 0) {
      host.staging_slots = std::clamp<std::int64_t>(memory / 4 / slot, 1, most);
    }
    host.staging.bytes = host.staging_slots * slot;
    return true;
  }

  // The largest of what crosses the link in one transfer, in the first epoch too.
  std::int64_t staging_slot(const PlanProblem& problem, const Plan& plan) const {
    std::int64_t bytes = kPage;
    for (const PlannedTensor& tensor : plan.tensors) {
      const auto index = static_cast<std::size_t>(&tensor - plan.tensors.data());
      const bool leaves =
          std::any_of(plan.devices.begin(), plan.devices.end(), [&](const DevicePlan& device) {
            return device.stored_from_block[index] < tensor.layout.block_count();
          });
      if (tensor.input || leaves) bytes = std::max(bytes, io_chunk_bytes(tensor, 0, 0));
    }
    for (const PassDraft& pass : problem.draft().passes) {
      const StageShape& stage = builder_.stages()[static_cast<std::size_t>(pass.stage)];
      if (pass.edges) bytes = std::max(bytes, all_edges_.largest(stage.edge_file, 0));
    }
    return bytes;
  }

  void predict(const PlanProblem& problem, const ResidentSet& kept,
               const std::vector<PhaseSeconds>& transfers, Plan& plan) const {
    const std::vector<PhaseSeconds> compute =
        compute_of(problem, kept, transfers, windows_of(plan));
    std::size_t index = 0;
    for (Section& section : plan.sections) {
      for (Pass& pass : section.passes) {
        const PassDraft& draft = problem.draft().passes[index];
        const StageShape& stage = builder_.stages()[static_cast<std::size_t>(draft.stage)];
        double moved = draft.edges ? stage.edge_bytes_moved : 0;
        for (const UseDraft& use : draft.uses) {
          if (use.role == UseRole::kStreamed || use.tensor < 0) continue;
          const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
          moved += static_cast<double>(payload_bytes(tensor, 0, tensor.layout.block_count()));
        }
        pass.bytes_moved = static_cast<std::int64_t>(moved);
        pass.multiply_adds = (draft.edges ? stage.edge_multiply_adds : 0) +
                             (draft.rows ? stage.row_multiply_adds : 0);
        pass.transfer_seconds = transfers[index].sum();
        std::int64_t most_launches = 0;
        for (const DevicePlan& device : plan.devices) {
          const std::int64_t launches = launches_of(builder_, all_edges_, plan, stage, pass,
                                                    device.own, device.passes[index]);
          pass.launches += launches;
          most_launches = std::max(most_launches, launches);
        }
        // Sums of devices are folded by one of them.
        const std::int64_t folds = (options_.devices - 1) * std::ssize(pass.reductions);
        if (pass.launches > 0) pass.launches += folds;
        plan.launches += pass.launches;
        const double launching =
            builder_.options().compute.launch_seconds * static_cast<double>(most_launches);
        pass.compute_seconds = compute[index].sum() + launching;
        const double with_launches = pass.compute_seconds / std::max(compute[index].sum(), 1e-12);
        pass.edge_seconds = with_launches * compute[index].edges / builder_.edge_share();
        pass.row_seconds = with_launches * compute[index].rows / builder_.row_share();
        if (pass.steps.empty()) pass.edge_seconds += std::exchange(pass.row_seconds, 0);
        pass.seconds = launching +
                       overlapped_seconds(transfers[index], compute[index],
                                          slot_depth(plan, builder_.graph().edges, options_.workers,
                                                     static_cast<int>(index), pass),
                                          pipelined_dst_ranges(draft));
        plan.bytes_moved += pass.bytes_moved;
        plan.seconds += pass.seconds;
        ++index;
      }
    }
  }

  // Whatever moves, and with all spans at once.
  std::vector<double> compute_seconds_of(const PlanProblem& problem) const {
    const std::int64_t spans = builder_.graph().edges.span_count();
    std::vector<double> seconds;
    for (const PassDraft& pass : problem.draft().passes) {
      seconds.push_back(compute_seconds(builder_, pass, spans).sum());
    }
    return seconds;
  }

  static std::int64_t bound(const PlanProblem& problem, std::int64_t moved) {
    return std::min(static_cast<std::int64_t>(least_bytes(problem).value_or(0)), moved);
  }

  void add_bounds(const PlanProblem& problem, Plan& plan) const {
    plan.bound_bytes = bound(problem, plan.bytes_read + plan.bytes_written);
    plan.bound_seconds =
        std::min(least_seconds(problem, compute_seconds_of(problem), storage_rates(options_.rates)),
                 plan.seconds);
  }

  // For storage, all memories are taken as one.
  void add_bounds(PlanProblem& problem, const PlannedDevices& devices, const PlanProblem& host,
                  Plan& plan) const {
    const double seconds =
        least_seconds(problem, compute_seconds_of(problem), link_rates(options_.rates));
    std::int64_t link_bytes = 0;
    for (const WorkingMemory& device : devices.above()) {
      link_bytes += static_cast<std::int64_t>(least_bytes(device.problem).value_or(0));
    }
    plan.bound_link_bytes = std::min(link_bytes, plan.bytes_to_device + plan.bytes_from_device);
    const bool limited = problem.arena().bytes > 0 && host.arena().bytes > 0;
    const std::int64_t all =
        limited ? options_.devices * problem.arena().bytes + host.arena().bytes : 0;
    if (options_.devices == 1) {
      problem.arena().bytes = all;
      add_bounds(problem, plan);
    } else {
      const PlanProblem below(devices.above_without_residency(), all_edges_, all);
      plan.bound_bytes = bound(below, plan.bytes_read + plan.bytes_written);
      plan.bound_seconds =
          std::min(least_seconds(below, std::vector<double>(below.draft().passes.size()),
                                 storage_rates(options_.rates)),
                   plan.seconds);
    }
    plan.bound_seconds = std::max(plan.bound_seconds, std::min(seconds, plan.seconds));
  }

  const PlanOptions& options_;
  PlanOptions working_options_;
  std::vector<BlockRange> own_;  // by device
  PassBuilder builder_;          // of the one that has the most
  EdgeTable edges_;              // likewise
  EdgeTable all_edges_;
};

// Says which budget is too small, and what would do, in MiB as users write it.
class BudgetSearch {
 public:
  BudgetSearch(const std::vector<const Program*>& programs, const GraphCounts& graph,
               const PlanOptions& options)
      : programs_(programs), graph_(graph), options_(options) {}

  [[noreturn]] void fail() {
    if (!options_.device) fail(Planner(programs_, graph_, options_).least_memory());
    const std::int64_t host_bytes = options_.memory_bytes;
    options_.memory_bytes = 0;
    const std::optional<Plan> roomy = make(options_);
    options_.memory_bytes = host_bytes;
    if (roomy) fail(roomy->host->staging.bytes / roomy->host->staging_slots);
    bytes_ = &PlanOptions::device_memory_bytes;
    reserved_ = &PlanOptions::device_reserved_bytes;
    fail(Planner(programs_, graph_, options_).least_memory());
  }

 private:
  // Nothing works with less than `least` bytes.
  [[noreturn]] void fail(std::int64_t least) {
    const bool device = bytes_ == &PlanOptions::device_memory_bytes;
    const std::int64_t reserved = options_.*reserved_;
    const std::int64_t given = (options_.*bytes_ + reserved) / kMiB;
    const std::int64_t fixed = ceil_div(reserved, kMiB);
    std::int64_t works = ceil_div(least + reserved, kMiB);
    const std::int64_t host_bytes = options_.memory_bytes;
    if (device) options_.memory_bytes = 0;
    while (!seconds(works)) ++works;
    if (device) options_.memory_bytes = host_bytes;
    if (device && !seconds(works)) options_.memory_bytes = 0;  // both are too small
    options_.*bytes_ = 0;
    const double unlimited = make(options_)->seconds;
    BudgetError error(
        fmt::format("a {}memory budget of {} MiB is too small: the least that works is {} MiB ({} "
                    "for the plan, {} for what else the process holds)",
                    device ? "device " : "", given, works, works - fixed, fixed),
        device ? "--device-memory" : "--host-memory",
        fmt::format(
            "give {} MiB or more; with {} MiB {} is predicted to take at most twice as long "
            "as with all data in memory",
            works, good(works, 2 * unlimited),
            options_.store_outputs ? "what comes before the first epoch" : "an epoch"));
    error.least_bytes = works << 20;
    throw error;
  }

  std::optional<Plan> make(const PlanOptions& options) const {
    return Planner(programs_, graph_, options).make(Bounds::kLeftOut);
  }

  // Of a predicted epoch; nothing: it doesn't fit.
  std::optional<double> seconds(std::int64_t budget) const {
    PlanOptions options = options_;
    options.*bytes_ = budget * kMiB - options.*reserved_;
    if (options.*bytes_ <= 0) return std::nullopt;
    const std::optional<Plan> plan = make(options);
    if (!plan) return std::nullopt;
    return plan->seconds;
  }

  // A budget within so many seconds; a few percent below it is none.
  std::int64_t good(std::int64_t least, double limit) const {
    std::int64_t low = least, high = least;
    while (seconds(high).value_or(2 * limit + 1) > limit) {
      low = high;
      high *= 2;
    }
    while (high - low > std::max<std::int64_t>(high / 50, 1)) {
      const std::int64_t middle = (low + high) / 2;
      (seconds(middle).value_or(2 * limit + 1) <= limit ? high : low) = middle;
    }
    return high;
  }

  const std::vector<const Program*>& programs_;
  const GraphCounts& graph_;
  PlanOptions options_;
  // The budget that is too small.
  std::int64_t PlanOptions::*bytes_ = &PlanOptions::memory_bytes;
  std::int64_t PlanOptions::*reserved_ = &PlanOptions::reserved_bytes;
};

}  // namespace

std::optional<Plan> try_plan(const std::vector<const Program*>& programs, const GraphCounts& graph,
                             const PlanOptions& options, Bounds bounds) {
  return Planner(programs, graph, options).make(bounds);
}

Plan make_plan(const std::vector<const Program*>& programs, const GraphCounts& graph,
               const PlanOptions& options) {
  std::optional<Plan> plan = try_plan(programs, graph, options);
  if (!plan) BudgetSearch(programs, graph, options).fail();
  return std::move(*plan);
}

}  // namespace ooc
