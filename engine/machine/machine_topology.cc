#include "engine/machine/machine_topology.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

// What a link's protocol leaves of it, and what one has of which nothing is known.
constexpr double kOfLink = 0.8, kUnknown = 16e9;

using Hwloc = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

// Null where it can't be found out.
Hwloc load() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return {nullptr, &hwloc_topology_destroy};
  Hwloc loaded(topology, &hwloc_topology_destroy);
  // Not what plugins find: some of them ask drivers.
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) != 0) loaded.reset();
  return loaded;
}

// What a device's link can do, in bytes a second; 0: the system doesn't say. What it does now may
// be less, since idle devices save power.
double most_of(const hwloc_obj_attr_u::hwloc_pcidev_attr_s& device) {
  const std::string path = fmt::format("/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.{:x}/max_link_",
                                       device.domain, device.bus, device.dev, device.func);
  double transfers = 0, lanes = 0;  // in 10^9 a second
  if (!(std::ifstream(path + "speed") >> transfers) || !(std::ifstream(path + "width") >> lanes)) {
    return 0;
  }
  const double of_bits = transfers > 5 ? 128.0 / 130 : 8.0 / 10;
  return 1e9 * transfers * of_bits / 8 * lanes;
}

// The link above a device or a bridge; 0: it has none, as the one on a processor.
double link_rate(hwloc_obj_t object) {
  const bool is_device = object->type == HWLOC_OBJ_PCI_DEVICE;
  if (!is_device && object->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI) return 0;
  const hwloc_obj_attr_u::hwloc_pcidev_attr_s& link =
      is_device ? object->attr->pcidev : object->attr->bridge.upstream.pci;
  double rate = most_of(link);
  if (rate <= 0) rate = 1e9 * static_cast<double>(link.linkspeed);
  return rate > 0 ? kOfLink * rate : kUnknown;
}

// The GPUs and the bridges above them.
class Tree {
 public:
  void add(hwloc_obj_t gpu, int device) {
    devices_[gpu].push_back(device);
    hwloc_obj_t below = gpu;
    for (hwloc_obj_t above = gpu->parent; above != nullptr; above = above->parent) {
      std::vector<hwloc_obj_t>& children = children_[above];
      if (std::find(children.begin(), children.end(), below) != children.end()) return;
      children.push_back(below);
      below = above;
    }
    root_ = below;
  }

  Json json() const { return {{"children", children_of(root_)}}; }

 private:
  // A bridge with one child is a longer link; where there is no link, what is below hangs higher.
  Json children_of(hwloc_obj_t object) const {
    Json nodes = Json::array();
    const auto below = children_.find(object);
    for (const hwloc_obj_t child : below->second) {
      for (Json& node : nodes_of(child)) nodes.push_back(std::move(node));
    }
    return nodes;
  }

  Json nodes_of(hwloc_obj_t object) const {
    const auto gpu = devices_.find(object);
    Json nodes = Json::array();
    if (gpu != devices_.end()) {
      for (const int device : gpu->second) nodes.push_back({{"device", device}});
    } else {
      nodes = children_of(object);
    }
    const bool is_link = object->type == HWLOC_OBJ_PCI_DEVICE || object->type == HWLOC_OBJ_BRIDGE;
    const double rate = is_link ? link_rate(object) : 0;
    if (rate == 0) return nodes;
    for (Json& node : nodes) narrow(node, rate);
    if (nodes.size() == 1) return nodes;
    Json shared{{"to_device", rate}, {"from_device", rate}, {"children", nodes}};
    return Json::array({shared});
  }

  static void narrow(Json& node, double rate) {
    for (const char* way : {"to_device", "from_device"}) {
      node[way] = node.contains(way) ? std::min(rate, node[way].get<double>()) : rate;
    }
  }

  hwloc_obj_t root_ = nullptr;
  std::map<hwloc_obj_t, std::vector<int>> devices_;
  std::map<hwloc_obj_t, std::vector<hwloc_obj_t>> children_;
};

}  // namespace

std::string machine_topology(const std::vector<GpuPlace>& gpus) {
  const Hwloc machine = load();
  if (!machine) return "";
  Tree tree;
  Json peers = Json::array();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const hwloc_obj_t gpu =
        hwloc_get_pcidev_by_busidstring(machine.get(), gpus[i].pci_address.c_str());
    if (gpu == nullptr) return "";
    tree.add(gpu, static_cast<int>(i));
    for (std::size_t other = 0; other < i; ++other) {
      if (gpus[i].peers[other] <= 0) continue;
      peers.push_back({{"devices", {other, i}}, {"rate", gpus[i].peers[other]}});
    }
  }
  Json topology{{"tree", tree.json()}};
  if (!peers.empty()) topology["peers"] = peers;
  return topology.dump(2) + "\n";
}

}  // namespace ooc
