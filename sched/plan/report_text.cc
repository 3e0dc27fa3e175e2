// The plan as tables (--plan).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "sched/plan/report.h"
#include "storage/base/byte_size.h"

namespace ooc {
namespace {

// A memory's part of the plan.
struct TierView {
  const std::vector<ResidentRange>& ranges;
  const std::vector<EdgeRange>& edge_ranges;
  const char* leaves;  // what happens to rows of made tensors that do not stay
};

// Blocks of one tensor that stay for the same passes.
struct Stay {
  int first_pass, last_pass;
  std::int64_t blocks;
};

std::vector<Stay> stays_of(const TierView& tier, int tensor) {
  std::vector<Stay> stays;
  for (const ResidentRange& range : tier.ranges) {
    if (range.tensor != tensor) continue;
    const std::int64_t blocks = range.end_block - range.first_block;
    const auto same = std::find_if(stays.begin(), stays.end(), [&](const Stay& stay) {
      return stay.first_pass == range.first_pass && stay.last_pass == range.last_pass;
    });
    if (same != stays.end()) {
      same->blocks += blocks;
    } else {
      stays.push_back({range.first_pass, range.last_pass, blocks});
    }
  }
  std::sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) {
    return std::tie(a.first_pass, a.last_pass) < std::tie(b.first_pass, b.last_pass);
  });
  return stays;
}

std::string split_text(const Pass& pass) {
  if (pass.kind == PassKind::kRow) return "";
  const std::int64_t slices =
      std::max<std::int64_t>(ceil_div(pass.slice_local_cols, kSliceWidth), 1);
  const std::int64_t groups = ceil_div(slices, pass.slices_at_once);
  std::string text = pass.dst_ranges > 1 ? fmt::format("{} parts", pass.dst_ranges) : "";
  if (groups > 1) text += fmt::format("{}{} slices", pass.dst_ranges > 1 ? " x " : "", groups);
  if (pass.dst_ranges_at_once > 1) text += fmt::format(", {} at once", pass.dst_ranges_at_once);
  return text.empty() ? "whole" : text;
}

std::string describe(const Program& program, const Pass& pass) {
  if (pass.kind == PassKind::kRow) return pass.name;
  std::vector<std::string> names;
  for (const EdgeFold& fold : pass.propagation.folds) {
    names.push_back(value_name(program, fold.accumulators[0]));
  }
  return fmt::format("{}: edges {}{} -> {}", pass.name, direction_name(pass.propagation.direction),
                     pass.propagation.splits < 0 ? "" : " of train rows", fmt::join(names, ", "));
}

std::string bytes(std::int64_t count) { return format_byte_size(count); }
std::string seconds(double time) { return fmt::format("{:.3g} s", time); }

bool is_for_good(const Plan& plan, int first_pass, int last_pass) {
  return first_pass == 0 && last_pass == pass_count(plan) - 1;
}

std::string tensor_text(const Plan& plan, const TierView& tier, std::size_t index,
                        std::int64_t stored_from_block) {
  const PlannedTensor& tensor = plan.tensors[index];
  const std::int64_t blocks = tensor.layout.block_count();
  const auto percent = [&](std::int64_t dst_range) {
    return fmt::format("{:.0f}%",
                       100.0 * static_cast<double>(dst_range) / static_cast<double>(blocks));
  };
  std::vector<std::string> stays;
  for (const Stay& stay : stays_of(tier, static_cast<int>(index))) {
    const bool good = is_for_good(plan, stay.first_pass, stay.last_pass);
    stays.push_back(
        percent(stay.blocks) +
        (good ? " for good"
              : fmt::format(" in passes {}-{}", stay.first_pass + 1, stay.last_pass + 1)));
  }
  if (!tensor.kept.all()) {
    stays.push_back(
        fmt::format("{} of 4 rows, the others are computed again", tensor.kept.quarters));
  }
  const std::string stored =
      tensor.input ? "input"
                   : fmt::format("{} {}", percent(blocks - stored_from_block), tier.leaves);
  return fmt::format("  {:<28} {:>10}  {:<12} {}\n", tensor.name, bytes(tensor_bytes(tensor)),
                     stored,
                     stays.empty() ? "streamed" : fmt::format("{}", fmt::join(stays, ", ")));
}

std::string edges_text(const TierView& tier) {
  std::string text;
  for (const EdgeRange& range : tier.edge_ranges) {
    text += fmt::format("  {:<28} {:>10}  {:<12} {} chunks for good\n",
                        fmt::format("edges {}", direction_name(range.direction)),
                        bytes(range.memory.bytes), "input", range.end_chunk - range.first_chunk);
  }
  return text;
}

// Whether any of it crosses the link after the first epoch.
bool crosses(const Plan& plan, std::size_t index) {
  const PlannedTensor& tensor = plan.tensors[index];
  const std::int64_t blocks = tensor.layout.block_count();
  if (!tensor.input) return plan.devices[0].stored_from_block[index] < blocks;
  std::int64_t kept = 0;
  for (const ResidentRange& range : plan.devices[0].ranges) {
    if (range.tensor != static_cast<int>(index)) continue;
    if (!is_for_good(plan, range.first_pass, range.last_pass)) continue;
    kept += range.end_block - range.first_block;
  }
  return kept < blocks;
}

// Pass by pass: what it moves, and what of each memory it uses.
std::string passes_text(const std::vector<const Program*>& programs, const Plan& plan,
                        PlanRuns runs) {
  const auto row = [&](const auto& number, const std::string& name, const std::string& split,
                       const std::string& memory, const std::vector<std::string>& host,
                       const std::string& reads, const std::string& writes,
                       const std::string& time) {
    std::string text = fmt::format("  {:>3} {:<44} {:<18} {:>10}", number, name, split, memory);
    if (plan.host) {
      for (const std::string& column : host) text += fmt::format(" {:>11}", column);
    }
    return text + fmt::format(" {:>10} {:>10} {:>10}\n", reads, writes, time);
  };
  std::string text;
  int index = 0;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    text += fmt::format("{}{}, strategy {}\n", programs[s]->name,
                        runs == PlanRuns::kPrecompute ? "" : ": what an epoch after the first does",
                        strategy_name(plan.strategy));
    text += row("", "pass", "split", plan.host ? "on device" : "memory",
                {"to device", "from device", "in host"}, "reads", "writes", "time");
    for (const Pass& pass : plan.sections[s].passes) {
      const std::int64_t host = plan.host ? host_memory_of(plan, index) : 0;
      text += row(index + 1, describe(*programs[s], pass), split_text(pass),
                  bytes(memory_of(plan.devices[0], index)),
                  {bytes(pass.bytes_to_device), bytes(pass.bytes_from_device), bytes(host)},
                  bytes(pass.bytes_read), bytes(pass.bytes_written), seconds(pass.seconds));
      ++index;
    }
  }
  const std::int64_t host = plan.host ? plan.host->arena_bytes : 0;
  return text + row("", "all", "", bytes(plan.devices[0].arena_bytes),
                    {bytes(plan.bytes_to_device), bytes(plan.bytes_from_device), bytes(host)},
                    bytes(plan.bytes_read), bytes(plan.bytes_written), seconds(plan.seconds));
}

// What sentences about the whole plan are of.
struct Subject {
  const char *this_one, *no_other;
};

// Of several devices: what is whose.
std::string devices_text(const Plan& plan) {
  if (plan.devices.size() == 1) return "";
  std::string text = fmt::format("  {:>6} {:>17} {:>10} {:>10} {:>11} {:>13}\n", "device", "blocks",
                                 "memory", "to device", "from device", "passed on");
  std::int64_t number = 0;
  for (const DevicePlan& device : plan.devices) {
    text += fmt::format("  {:>6} {:>17} {:>10} {:>10} {:>11} {:>13}\n", number++,
                        fmt::format("{} to {}", device.own.first, device.own.end - 1),
                        bytes(device.arena_bytes + device.reduction_bytes), bytes(device.bytes_in),
                        bytes(device.bytes_out), bytes(device.bytes_passed_on));
  }
  if (plan.ring_loaders == 0) return text + "each device reads all that edges read\n";
  return text + fmt::format("what edges read goes round the devices, read by {} of them\n",
                            plan.ring_loaders);
}

// What is in the device's memory, what in the host's, and how good that is.
std::string tiers_text(const Plan& plan, const Subject& subject) {
  const HostTier& host = *plan.host;
  const TierView device{plan.devices[0].ranges, plan.devices[0].edge_ranges, "to host"};
  const TierView below{host.ranges, host.edge_ranges, "stored"};
  std::string text = devices_text(plan);
  text += plan.devices.size() == 1 ? "what stays in the device's memory\n"
                                   : "what stays in the memory of device 0\n";
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    text += tensor_text(plan, device, t, plan.devices[0].stored_from_block[t]);
  }
  text +=
      edges_text(device) + "what stays in the host's memory, of what the device does not keep\n";
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    if (crosses(plan, t)) text += tensor_text(plan, below, t, host.stored_from_block[t]);
  }
  text += edges_text(below);
  text += fmt::format("on the device, besides the {} of its arena: {} for sums\n",
                      bytes(plan.devices[0].arena_bytes), bytes(plan.devices[0].reduction_bytes));
  text += fmt::format(
      "in the host's arena of {}: {} slots of {} for what passes through; {} of files in scratch\n",
      bytes(host.arena_bytes), host.staging_slots, bytes(host.staging.bytes / host.staging_slots),
      bytes(plan.stored_bytes));
  text += fmt::format(
      "{} moves {} over the link and {} from and to storage; with these passes {} moves "
      "less than {} and {}, or takes less than {}\n",
      subject.this_one, bytes(plan.bytes_to_device + plan.bytes_from_device),
      bytes(plan.bytes_read + plan.bytes_written), subject.no_other, bytes(plan.bound_link_bytes),
      bytes(plan.bound_bytes), seconds(plan.bound_seconds));
  return text;
}

std::string memory_text(const Plan& plan, const Subject& subject) {
  const TierView tier{plan.devices[0].ranges, plan.devices[0].edge_ranges, "stored"};
  std::string text = "what stays in memory\n";
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    text += tensor_text(plan, tier, t, plan.devices[0].stored_from_block[t]);
  }
  text += edges_text(tier);
  text += fmt::format("besides the {} of the arena: {} for sums; {} of files in scratch\n",
                      bytes(plan.devices[0].arena_bytes), bytes(plan.devices[0].reduction_bytes),
                      bytes(plan.stored_bytes));
  return text +
         fmt::format("{} moves {}; with these passes {} moves less than {} or takes less than {}\n",
                     subject.this_one, bytes(plan.bytes_read + plan.bytes_written),
                     subject.no_other, bytes(plan.bound_bytes), seconds(plan.bound_seconds));
}

}  // namespace

std::string plan_to_text(const std::vector<const Program*>& programs, const Plan& plan,
                         PlanRuns runs) {
  const Subject subject =
      runs == PlanRuns::kPrecompute ? Subject{"all of it", "no plan"} : Subject{"an epoch", "none"};
  std::string text = passes_text(programs, plan, runs);
  text += plan.host ? tiers_text(plan, subject) : memory_text(plan, subject);
  if (!plan.remark.empty()) text += plan.remark + "\n";
  return text;
}

}  // namespace ooc
