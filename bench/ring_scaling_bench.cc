// NGra's figure 16, simulated: how much faster an epoch is on 2, 4 and 8 devices than on one, with
// the ring and without, for five models and two graphs, on PCIe under two bridges and with NVLink
// between all devices. The executor runs the plans' passes on a simulated clock.
//
//   ring_scaling_bench > bench/results/ring-scaling.json     minutes on two cores
//
// Devices are P100s: 16 GiB, 732 GB/s of which sums get 80 %, 4.65 T multiply-adds a second of
// which products get 30 %. Nothing stays on a device between passes, propagations have 8 or 16
// destination ranges of all columns, as NGra's chunks do, nothing is hoisted, and storage takes no
// time: all data lies in the host's memory.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/train/absent_graph.h"
#include "engine/train/simulation.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBandwidth = 732e9, kMultiplyAdds = 4.65e12;

MachineRates p100() {
  MachineRates rates;
  rates.storage_read = rates.storage_write = rates.storage_both = 1e15;
  rates.gather = rates.elementwise = 0.8 * kBandwidth;
  rates.dropout = rates.gather / 8;
  rates.multiply_adds = rates.row_sums = 0.3 * kMultiplyAdds;
  return rates;
}

// Four devices under each of two bridges at 12 GB/s, of which the first `devices` are there; with
// NVLink at 20 GB/s between any two of them.
Json topology(int devices, bool nvlink) {
  constexpr double kPcie = 12e9, kNvlink = 20e9;
  const auto node = [&] { return Json{{"to_device", kPcie}, {"from_device", kPcie}}; };
  Json tree, peers = Json::array();
  for (int device = 0; device < devices; ++device) {
    if (device % 4 == 0) tree["children"].push_back(node());
    Json leaf = node();
    leaf["device"] = device;
    tree["children"].back()["children"].push_back(leaf);
    for (int other = 0; nvlink && other < device; ++other) {
      peers.push_back({{"devices", {other, device}}, {"rate", kNvlink}});
    }
  }
  Json json{{"tree", tree}};
  if (nvlink) json["peers"] = peers;
  return json;
}

struct Case {
  std::string model, graph;
  std::int64_t ranges = 8;
  int devices = 1;
  bool ring = false, nvlink = false;
};

double epoch_seconds(const Case& one) {
  RunConfig config;
  config.model.model = one.model;
  config.rewrites = "-hoisting";
  config.cache_policy = Strategy::kNone;
  const AbsentGraph graph = absent_graph(one.graph, std::nullopt);
  RunBudget budget;
  budget.topology = std::make_shared<const Topology>(
      Topology::parse(topology(one.devices, one.nvlink).dump(), "the bench", one.devices));
  PlanOptions& plan = budget.plan;
  plan.device = true;
  plan.devices = one.devices;
  plan.compute = kCudaShape;
  plan.rates = p100();
  plan.ring_loaders = one.ring && one.devices > 1 ? budget.topology->loaders() : 0;
  plan.rates.to_device = budget.topology->to_device(1);
  plan.rates.from_device = budget.topology->from_device();
  plan.dst_range_blocks = ceil_div(graph.counts.edges.block_count(), one.ranges);
  plan.slices_at_once = 1000;
  budget.device_bytes = std::int64_t{16} << 30;
  const TrainingPlan training(config, graph.facts, graph.counts, DType::kF32, budget);
  SimulatedClock clock;
  return simulate_epoch(training, graph.counts, budget, clock, {"P100"}).value().seconds;
}

// Of one model, graph and number of ranges.
void run_case(const char* name, const Case& base, Json& results) {
  const double alone = epoch_seconds(base);
  for (const bool nvlink : {false, true}) {
    for (const bool ring : {false, true}) {
      if (nvlink && !ring) continue;  // nobody uses it
      for (const int devices : {2, 4, 8}) {
        Case one = base;
        one.devices = devices;
        one.ring = ring;
        one.nvlink = nvlink;
        const double seconds = epoch_seconds(one);
        std::fprintf(
            stderr, "%s %s %ld ranges, %d devices, ring %d, NVLink %d: %.2f s, %.2f times\n", name,
            base.model.c_str(), base.ranges, devices, ring, nvlink, seconds, alone / seconds);
        results.push_back({{"graph", name},
                           {"model", base.model},
                           {"ranges", base.ranges},
                           {"devices", devices},
                           {"ring", ring},
                           {"nvlink", nvlink},
                           {"seconds", seconds},
                           {"speedup", alone / seconds}});
      }
    }
  }
}

void run() {
  Json results = Json::array();
  for (const auto& [name, graph] :
       {std::pair("enwiki", "vertices=3.2M,edges=222M,features=300,classes=12"),
        std::pair("reddit_full", "vertices=2.2M,edges=571M,features=300,classes=50")}) {
    for (const std::int64_t ranges : {8, 16}) {
      for (const char* model : {"gcn", "commnet", "ggnn", "mpgcn", "ggcn"}) {
        run_case(name, {model, graph, ranges}, results);
      }
    }
  }
  fmt::print("{}\n", results.dump(1));
}

}  // namespace
}  // namespace ooc

int main() {
  try {
    ooc::run();
  } catch (const ooc::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
