// How devices pass on to each other what edges read span by span: each takes an item from the one
// before it in the ring once that has it, and frees its own copy when the next one has taken it
// (NGra §4.2; the order is RingOrder's). There is no barrier: an item moves as soon as both are
// ready.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "sched/plan/ring_order.h"
#include "sched/tiers/link.h"

namespace ooc {

// An item of a pass: of which of its uses, and which of all sweeps, in the order of the graph.
struct RingItem {
  std::size_t use = 0;
  std::int64_t item = 0;
  auto operator<=>(const RingItem&) const = default;
};

// Many threads; with or without a driver's lock. Its own is taken under the drivers', and nothing
// is called under it but the link, which calls nobody.
class DeviceRing {
 public:
  // By position; they outlive it.
  DeviceRing(const RingShape& shape, std::vector<PeerLink*> links)
      : shape_(shape), links_(std::move(links)), offered_(links_.size()), wanted_(links_.size()) {}

  const RingShape& shape() const { return shape_; }

  // The device has the item at `data`, until `passed_on` is called: then the next one has it, too.
  void offer(std::int64_t device, const RingItem& item, const std::byte* data,
             BlockCompletion passed_on);
  // Copies it to `to`, as it lies, from the device before this one, once that has it.
  void take(std::int64_t device, const RingItem& item, std::byte* to, std::size_t bytes,
            BlockCompletion done);
  // Where a pass is given up on some device: nobody waits for another any more, and what is asked
  // for from now on comes at once, as anything.
  void give_up();
  // Before a pass, while nothing is under way.
  void begin_pass();

 private:
  struct Offered {
    const std::byte* data = nullptr;
    BlockCompletion passed_on;
  };
  struct Wanted {
    std::byte* to = nullptr;
    std::size_t bytes = 0;
    BlockCompletion done;
  };
  void copy(std::int64_t to, const Offered& offered, const Wanted& wanted);
  static std::size_t at(std::int64_t device) { return static_cast<std::size_t>(device); }

  const RingShape shape_;
  std::vector<PeerLink*> links_;
  std::mutex mutex_;
  bool given_up_ = false;
  std::vector<std::map<RingItem, Offered>> offered_;  // by device that has it
  std::vector<std::map<RingItem, Wanted>> wanted_;    // by device that is to have it, to be taken
};

}  // namespace ooc
