#include "engine/machine/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "storage/base/errors.h"

namespace ooc {

using Json = nlohmann::json;

// Checks what it reads, and says where it is wrong.
class Topology::Reader {
 public:
  Reader(std::string path, std::int64_t devices) : path_(std::move(path)), devices_(devices) {}

  Topology read(const std::string& text) {
    Json json;
    try {
      json = Json::parse(text);
    } catch (const Json::parse_error& error) {
      wrong("", fmt::format("not JSON (byte {})", error.byte));
    } catch (const Json::exception&) {
      wrong("", "a number that is too large");
    }
    only(json, "", {"tree", "peers", "comment"});
    if (!json.contains("tree")) wrong("/tree", "missing");
    topology_.leaves_.assign(static_cast<std::size_t>(devices_), -1);
    only(json["tree"], "/tree", {"children", "device", "comment"});
    add(json["tree"], "/tree", -1);
    for (std::int64_t device = 0; device < devices_; ++device) {
      if (topology_.leaves_[static_cast<std::size_t>(device)] >= 0) continue;
      wrong("/tree", fmt::format("device {} of {} is missing", device, devices_));
    }
    if (json.contains("peers")) add_peers(json["peers"]);
    return std::move(topology_);
  }

 private:
  [[noreturn]] void wrong(const std::string& where, const std::string& what) const {
    throw UsageError(fmt::format("{}: {}", where.empty() ? "/" : where, what), path_,
                     "docs/topologies has examples");
  }

  void only(const Json& json, const std::string& where, const std::set<std::string>& keys) const {
    if (!json.is_object()) wrong(where, "not an object");
    for (const auto& [key, value] : json.items()) {
      if (!keys.contains(key)) wrong(where + "/" + key, "unknown");
    }
  }

  double rate(const Json& json, const std::string& where, const char* key) const {
    if (!json.contains(key)) wrong(where + "/" + key, "missing");
    const Json& value = json[key];
    if (!value.is_number() || value.get<double>() <= 0) {
      wrong(where + "/" + key, "not a rate in bytes a second");
    }
    return value.get<double>();
  }

  int device(const Json& value, const std::string& where) const {
    if (!value.is_number_integer()) wrong(where, "not the number of a device");
    const auto number = value.get<std::int64_t>();
    if (number < 0 || number >= devices_) {
      wrong(where, fmt::format("device {} of {}", number, devices_));
    }
    return static_cast<int>(number);
  }

  void add(const Json& json, const std::string& where, int parent) {
    const auto index = static_cast<int>(topology_.nodes_.size());
    Node node;
    node.parent = parent;
    node.where = where;
    if (parent >= 0) {
      only(json, where, {"children", "device", "to_device", "from_device", "comment"});
      node.to_device = rate(json, where, "to_device");
      node.from_device = rate(json, where, "from_device");
      node.in = std::make_shared<SharedLink>(node.to_device);
      node.out = std::make_shared<SharedLink>(node.from_device);
      topology_.nodes_[static_cast<std::size_t>(parent)].children.push_back(index);
    }
    if (json.contains("device") == json.contains("children")) {
      wrong(where, "neither a device nor a node with children, or both");
    }
    if (json.contains("device")) {
      node.device = device(json["device"], where + "/device");
      int& leaf = topology_.leaves_[static_cast<std::size_t>(node.device)];
      if (leaf >= 0) wrong(where + "/device", fmt::format("device {} again", node.device));
      leaf = index;
    }
    topology_.nodes_.push_back(std::move(node));
    if (!json.contains("children")) return;
    const Json& children = json["children"];
    if (!children.is_array() || children.empty()) wrong(where + "/children", "not a list of nodes");
    for (std::size_t i = 0; i < children.size(); ++i) {
      add(children[i], fmt::format("{}/children/{}", where, i), index);
    }
  }

  void add_peers(const Json& peers) {
    if (!peers.is_array()) wrong("/peers", "not a list");
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const std::string where = fmt::format("/peers/{}", i);
      only(peers[i], where, {"devices", "rate", "comment"});
      if (!peers[i].contains("devices") || !peers[i]["devices"].is_array() ||
          peers[i]["devices"].size() != 2) {
        wrong(where + "/devices", "not two devices");
      }
      const int a = device(peers[i]["devices"][0], where + "/devices/0");
      const int b = device(peers[i]["devices"][1], where + "/devices/1");
      if (a == b) wrong(where + "/devices", "one device twice");
      const double between = rate(peers[i], where, "rate");
      for (const auto& pair : {std::pair(a, b), std::pair(b, a)}) {
        topology_.peers_[pair] = between;
        topology_.peer_links_[pair] = std::make_shared<SharedLink>(between);
      }
    }
  }

  std::string path_;
  std::int64_t devices_;
  Topology topology_;
};

Topology Topology::read(FileSystem& files, const std::string& path, std::int64_t devices) {
  if (!files.exists(path)) throw UsageError("no such file", path, "name the topology's file");
  const std::vector<std::byte> bytes = read_file(files, path);
  return parse(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path,
               devices);
}

Topology Topology::parse(const std::string& text, const std::string& where, std::int64_t devices) {
  Topology topology = Reader(where, devices).read(text);
  topology.choose_ring();
  return topology;
}

void Topology::choose_ring() {
  // Depth first: nodes are numbered so.
  for (const Node& node : nodes_) {
    if (node.device >= 0) ring_.push_back(node.device);
  }
  if (peers_.empty() || ring_.size() < 2) return;
  std::vector<int> cycle{0};
  while (cycle.size() < ring_.size()) {
    int next = -1;
    double widest = 0;
    for (const int device : ring_) {
      const auto link = peers_.find({cycle.back(), device});
      const bool taken = std::find(cycle.begin(), cycle.end(), device) != cycle.end();
      if (taken || link == peers_.end() || link->second <= widest) continue;
      widest = link->second;
      next = device;
    }
    if (next < 0) return;
    cycle.push_back(next);
  }
  if (peers_.contains({cycle.back(), cycle.front()})) ring_ = std::move(cycle);
}

std::vector<int> Topology::path_of(int device) const {
  std::vector<int> path;
  for (int node = leaves_[static_cast<std::size_t>(device)]; node > 0;
       node = nodes_[static_cast<std::size_t>(node)].parent) {
    path.push_back(node);
  }
  return path;
}

// From the leaves up: an inner link that carries less than the links of those below it together
// drops some of these.
int Topology::remaining_loaders(int index) const {
  const Node& node = nodes_[static_cast<std::size_t>(index)];
  if (node.device >= 0) return 1;
  int remaining = 0;
  double together = 0, narrowest = std::numeric_limits<double>::infinity();
  for (const int child : node.children) {
    const int loaders = remaining_loaders(child);
    remaining += loaders;
    const double rate = nodes_[static_cast<std::size_t>(child)].to_device;
    together += rate;
    narrowest = std::min(narrowest, rate / loaders);
  }
  if (node.parent < 0) return remaining;
  while (remaining > 1 && together > node.to_device) {
    together -= narrowest;
    --remaining;
  }
  return remaining;
}

std::int64_t Topology::loaders() const {
  const auto devices = static_cast<std::int64_t>(ring_.size());
  std::int64_t loaders = remaining_loaders(0);
  while (devices % loaders != 0) --loaders;
  return loaders;
}

std::int64_t Topology::below(int node, const std::vector<int>& devices) const {
  return std::count_if(devices.begin(), devices.end(), [&](int device) {
    const std::vector<int> path = path_of(device);
    return std::find(path.begin(), path.end(), node) != path.end();
  });
}

double Topology::to_device(std::int64_t at_once) const {
  std::vector<int> devices;
  const std::size_t apart = ring_.size() / static_cast<std::size_t>(at_once);
  for (std::size_t at = 0; at < ring_.size(); at += apart) devices.push_back(ring_[at]);
  double least = std::numeric_limits<double>::infinity();
  for (int node = 1; node < static_cast<int>(nodes_.size()); ++node) {
    const auto sharing = static_cast<double>(below(node, devices));
    if (sharing == 0) continue;
    least = std::min(least, nodes_[static_cast<std::size_t>(node)].to_device / sharing);
  }
  return least;
}

double Topology::from_device() const {
  double least = std::numeric_limits<double>::infinity();
  for (int node = 1; node < static_cast<int>(nodes_.size()); ++node) {
    const auto sharing = static_cast<double>(below(node, ring_));
    least = std::min(least, nodes_[static_cast<std::size_t>(node)].from_device / sharing);
  }
  return least;
}

// Up the tree and down again, to where both paths part.
LinkPath Topology::path_between(int from, int to) const {
  const auto own = peer_links_.find({from, to});
  if (own != peer_links_.end()) return {own->second};
  std::vector<int> up = path_of(from), down = path_of(to);
  while (!up.empty() && !down.empty() && up.back() == down.back()) {
    up.pop_back();
    down.pop_back();
  }
  LinkPath path;
  for (const int node : up) path.push_back(nodes_[static_cast<std::size_t>(node)].out);
  for (const int node : down) path.push_back(nodes_[static_cast<std::size_t>(node)].in);
  return path;
}

std::vector<Topology::LinkBytes> Topology::bytes_of_links(
    const std::vector<RunCounters>& devices) const {
  std::map<const SharedLink*, std::int64_t> bytes;
  for (std::size_t position = 0; position < devices.size(); ++position) {
    const VirtualLinks links = links_of(position);
    const RunCounters& device = devices[position];
    for (const auto& link : links.in) bytes[link.get()] += device.bytes_to_device;
    for (const auto& link : links.out) bytes[link.get()] += device.bytes_from_device;
    for (const auto& link : links.peer) bytes[link.get()] += device.bytes_between_devices;
  }
  std::vector<LinkBytes> all;
  const auto add = [&](const std::string& where, const std::shared_ptr<SharedLink>& link) {
    all.push_back({where, link->rate(), bytes[link.get()]});
  };
  for (const Node& node : nodes_) {
    if (node.parent < 0) continue;
    add(node.where + " to_device", node.in);
    add(node.where + " from_device", node.out);
  }
  for (const auto& [pair, link] : peer_links_) {
    add(fmt::format("peers {} to {}", pair.first, pair.second), link);
  }
  return all;
}

VirtualLinks Topology::links_of(std::size_t position) const {
  VirtualLinks links;
  const int device = ring_[position];
  for (const int node : path_of(device)) {
    links.in.push_back(nodes_[static_cast<std::size_t>(node)].in);
    links.out.push_back(nodes_[static_cast<std::size_t>(node)].out);
  }
  const int before = ring_[(position + ring_.size() - 1) % ring_.size()];
  if (before != device) links.peer = path_between(before, device);
  return links;
}

}  // namespace ooc
