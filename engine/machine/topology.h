// How devices hang on the host's memory: a tree of links, as `--topology FILE.json` describes it.
//
//   {"tree": {"children": [{"to_device": 12e9, "from_device": 12e9, "children": [
//       {"device": 0, "to_device": 12e9, "from_device": 12e9}, ...]}, ...]},
//    "peers": [{"devices": [0, 1], "rate": 25e9}, ...]}
//
// Rates are bytes a second. A node's are those of the link above it, which all devices below it
// share; the root has none. Devices are numbered from 0 in the order of --devices. `peers`: links
// of their own between two devices, with so much each way; other devices reach each other over the
// tree.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/virtual_device.h"
#include "sched/run/executor.h"
#include "storage/io/file.h"

namespace ooc {

class Topology {
 public:
  // UsageError, with the place in the file, where it isn't one of so many devices.
  static Topology read(FileSystem& files, const std::string& path, std::int64_t devices);
  // The same of a text; `where` names it in errors.
  static Topology parse(const std::string& text, const std::string& where, std::int64_t devices);

  // Of the ring: devices as they come in the tree, or, where all of them can go round over links of
  // their own, the cycle over these with the widest narrowest link, of those that begin with device
  // 0 and take the widest link at a time.
  const std::vector<int>& ring() const { return ring_; }
  // Of the ring: as many as are even in it of the devices whose links the tree's inner links can
  // fill (NGra §4.2: its maximal fat tree).
  std::int64_t loaders() const;
  // What of its links' rates a device has, where so many, spread evenly in the ring, use them at
  // once: the least of any.
  double to_device(std::int64_t at_once) const;
  double from_device() const;  // where all use them
  struct LinkBytes {
    std::string link;  // its place in the file
    double rate = 0;   // bytes a second
    std::int64_t bytes = 0;
  };
  // What crossed each link, of what devices moved, by position in the ring.
  std::vector<LinkBytes> bytes_of_links(const std::vector<RunCounters>& devices) const;
  // For a virtual device at a position of the ring: links that it shares with the others.
  VirtualLinks links_of(std::size_t position) const;

 private:
  struct Node {
    int parent = -1;
    int device = -1;  // of a leaf
    std::string where;
    double to_device = 0, from_device = 0;
    std::vector<int> children;
    std::shared_ptr<SharedLink> in, out;
  };
  class Reader;

  void choose_ring();
  std::vector<int> path_of(int device) const;  // nodes from the device up, without the root
  std::int64_t below(int node, const std::vector<int>& devices) const;
  int remaining_loaders(int node) const;
  LinkPath path_between(int from, int to) const;

  std::vector<Node> nodes_;  // the root first
  std::vector<int> leaves_;  // by device
  std::map<std::pair<int, int>, double> peers_;
  std::map<std::pair<int, int>, std::shared_ptr<SharedLink>> peer_links_;
  std::vector<int> ring_;
};

}  // namespace ooc
