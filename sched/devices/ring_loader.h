// Streamed rows as the items of a stream on a device of a ring: from the host, where it is the
// item's loader, else from the device before it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sched/devices/device_ring.h"
#include "sched/stream/rows_loader.h"

namespace ooc {

class RingLoader final : public RowsLoader {
 public:
  // `items`: each run is a sweep, in the device's order. `use`: its number in the pass.
  // `ring_items`: of a sweep's items, so many are passed on at once.
  RingLoader(const TensorAccess& access, const RowsItems& items, DeviceRing& ring,
             std::int64_t device, std::size_t use, std::int64_t ring_items)
      : RowsLoader(access, items),
        ring_(ring),
        device_(device),
        use_(use),
        ring_items_(ring_items),
        order_(items.order) {}

  bool must_wait(std::int64_t item) const override {
    return from_host(item) && RowsLoader::must_wait(item);
  }
  void load(std::int64_t item, std::byte* data, ComingItem& coming) override;
  bool passes_on(std::int64_t item) const override {
    return ring_.shape().passes_on(device_, ring_item(item));
  }
  void offer(std::int64_t item, const std::byte* data, BlockCompletion passed_on) override {
    ring_.offer(device_, {use_, in_graph_order(item)}, data, std::move(passed_on));
  }

 private:
  std::int64_t sweep_items() const { return std::ssize(order_); }
  std::int64_t in_graph_order(std::int64_t item) const {
    const std::int64_t place = item % sweep_items();
    return item - place + order_[static_cast<std::size_t>(place)];
  }
  std::int64_t ring_item(std::int64_t item) const {
    return order_[static_cast<std::size_t>(item % sweep_items())] / ring_items_;
  }
  bool from_host(std::int64_t item) const {
    return ring_.shape().from_host(device_, ring_item(item));
  }

  DeviceRing& ring_;
  std::int64_t device_;
  std::size_t use_;
  std::int64_t ring_items_;
  std::vector<std::int64_t> order_;
};

}  // namespace ooc
