// Plans as they were when they were last looked at, by fixed rates: whoever changes what planning
// chooses sees here what it changes. tests/golden/plans.json; OOC_WRITE_GOLDEN=1 writes it anew.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/train/absent_graph.h"
#include "engine/train/training_plan.h"
#include "tests/support/cases.h"
#include "tests/support/device_memory.h"

using namespace ooc;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

struct Case {
  std::string name, graph, model;
  std::int64_t layers = 2, host_mib = 0, device_mib = 0;  // 0: no device
  Strategy strategy = Strategy::kDp;
  double compute = 1;  // times as fast
};

std::vector<Case> cases() {
  const std::string large = "vertices=4M,edges=120M,features=128,classes=16";
  const std::string reddit = "vertices=232965,edges=114600K,features=602,classes=41";
  const std::string walk = "vertices=50M,edges=1.5G,features=128,classes=64";
  std::vector<Case> all;
  for (const char* model : {"gcn", "sage"}) {
    for (const std::int64_t layers : {2, 3}) {
      for (const std::int64_t mib : {1024, 512, 256}) {
        all.push_back({fmt::format("{}-{} {} MiB", model, layers, mib), large, model, layers, mib});
      }
    }
  }
  for (const char* model : {"gat", "ggnn"}) {
    all.push_back({fmt::format("{}-2 512 MiB", model), large, model, 2, 512});
  }
  for (const std::int64_t mib : {256, 384, 512, 768, 864, 896}) {
    all.push_back({fmt::format("device {} MiB", mib), reddit, "gcn", 2, 1 << 16, mib});
    all.push_back(
        {fmt::format("device {} MiB, lp", mib), reddit, "gcn", 2, 1 << 16, mib, Strategy::kLp});
  }
  for (const char* model : {"gcn", "sage"}) {
    all.push_back(
        {fmt::format("{}-3 1024 MiB, lp", model), large, model, 3, 1024, 0, Strategy::kLp});
  }
  all.push_back({"50 M vertices 8 GiB", walk, "gcn", 2, 8192});
  // Shares of training vertices where edges from outside are passed over, and where not.
  for (const char* train : {"400K", "800K"}) {
    all.push_back({fmt::format("gcn-2 512 MiB, train {}", train),
                   fmt::format("{},train={}", large, train), "gcn", 2, 512});
  }
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < count; ++i) {
    Case fast = all[i];
    fast.name += ", compute x 10";
    fast.compute = 10;
    all.push_back(fast);
  }
  // Where compute takes about as long as the disk, some rows are stored and others made again.
  for (const std::int64_t mib : {1024, 256}) {
    all.push_back({fmt::format("sage-2 {} MiB, compute x 1.7", mib), large, "sage", 2, mib, 0,
                   Strategy::kDp, 1.7});
  }
  return all;
}

// Of two cores and a disk of 3 GB/s, but for compute.
MachineRates rates_of(double compute) {
  MachineRates rates;
  rates.storage_read = 3.0e9;
  rates.storage_write = 3.5e9;
  rates.storage_both = 3.2e9;
  rates.gather = 2.5e10 * compute;
  rates.elementwise = 3.0e10 * compute;
  rates.dropout = 2.0e9 * compute;
  rates.packing = 1.2e10 * compute;
  rates.multiply_adds = 1.0e11 * compute;
  rates.row_sums = 9.0e10 * compute;
  return rates;
}

TrainingPlan plan_of(const Case& of) {
  RunConfig config;
  config.model.model = of.model;
  config.model.layers = of.layers;
  if (of.model == "gat") {
    config.model.hidden = 16;
    config.model.heads = 8;
  }
  config.cache_policy = of.strategy;
  config.epochs = 100;
  const AbsentGraph graph = absent_graph(of.graph);
  RunBudget budget;
  budget.host_bytes = of.host_mib * kMiB;
  budget.resident_bytes = 16 * kMiB;
  budget.device_bytes = of.device_mib * kMiB;
  budget.plan.device = of.device_mib > 0;
  budget.plan.workers = 2;
  budget.plan.rates = rates_of(of.compute);
  return {config, graph.facts, graph.counts, DType::kF32, budget};
}

// A line a pass, and one a range that stays.
Json digest(const Plan& plan) {
  Json out;
  out["seconds"] = fmt::format("{:.4g}", plan.seconds);
  out["bytes"] = {plan.bytes_read, plan.bytes_written};
  if (plan.host) out["link_bytes"] = {plan.bytes_to_device, plan.bytes_from_device};
  out["arena"] = plan.devices[0].arena_bytes;
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) {
      std::string line = fmt::format(
          "{}: {} x {} blocks, {} at once, slices {}, window {} of {} blocks, edge slots {}, slots",
          pass.name, pass.dst_ranges, pass.dst_range_blocks, pass.dst_ranges_at_once,
          pass.slices_at_once, pass.span_group, pass.group_blocks,
          test::memory_of(plan, pass).edges.slots);
      for (const TensorUse& use : pass.uses)
        line += fmt::format(" {}", test::memory_of(plan, pass, use).slots);
      out["passes"].push_back(line);
    }
  }
  const auto name_of = [&](int tensor) {
    const PlannedTensor& planned = plan.tensors[static_cast<std::size_t>(tensor)];
    const std::string quarters =
        planned.kept.all() ? "" : fmt::format(" ({} of 4)", planned.kept.quarters);
    return planned.name + quarters;
  };
  const auto add = [&](const char* tier, const std::vector<ResidentRange>& ranges,
                       const std::vector<EdgeRange>& edges) {
    for (const ResidentRange& range : ranges) {
      out[tier].push_back(fmt::format("{} blocks {} to {}, passes {} to {}", name_of(range.tensor),
                                      range.first_block, range.end_block, range.first_pass,
                                      range.last_pass));
    }
    for (const EdgeRange& range : edges) {
      out[tier].push_back(fmt::format("edges {} to {}", range.first_chunk, range.end_chunk));
    }
  };
  add("resident", plan.devices[0].ranges, plan.devices[0].edge_ranges);
  if (plan.host) add("host", plan.host->ranges, plan.host->edge_ranges);
  return out;
}

}  // namespace

TEST_CASE("golden plans: by fixed rates every case is planned as before") {
  const char* write = std::getenv("OOC_WRITE_GOLDEN");
  Json golden;
  if (write == nullptr) golden = Json::parse(std::ifstream(OOC_GOLDEN_PLANS));
  Json now;
  test::Cases some(16);
  for (const Case& of : cases()) {
    if (!some.next()) continue;
    const TrainingPlan plan = plan_of(of);
    now[of.name]["epoch"] = digest(plan.epoch_plan());
    if (!plan.precompute().empty()) now[of.name]["precompute"] = digest(plan.precompute_plan());
    if (write != nullptr) continue;
    INFO(of.name << "\nwas " << golden[of.name].dump(1) << "\nis " << now[of.name].dump(1));
    CHECK(now[of.name] == golden[of.name]);
  }
  if (write != nullptr) std::ofstream(OOC_GOLDEN_PLANS) << now.dump(1) << "\n";
}
