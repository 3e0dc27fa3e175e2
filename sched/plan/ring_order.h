// The ring of devices: in which order each one takes what edges read span by span, and from where
// (NGra §4.2).
//
// N devices in a ring, L of them loaders, at positions 0, G, 2G and so on with G = N / L. A sweep's
// spans, in items, go in batches of N: of each batch loader l owns G items, which it takes from the
// host, then it takes those of the loaders l - 1, l - 2, ... from the device before it. The device
// at offset j after loader l takes the same items j steps later, all of them from the one before
// it. So each item comes from the host once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "storage/format/tensor_layout.h"

namespace ooc {

struct RingShape {
  std::int64_t devices = 1, loaders = 1;

  std::int64_t group() const { return devices / loaders; }
  bool is_loader(std::int64_t device) const { return device % group() == 0; }
  // The loader's position.
  std::int64_t owner(std::int64_t item) const { return item % devices / group() * group(); }
  bool from_host(std::int64_t device, std::int64_t item) const { return device == owner(item); }
  std::int64_t before(std::int64_t device) const { return (device + devices - 1) % devices; }
  // Whether the next device takes an item from this one.
  bool passes_on(std::int64_t device, std::int64_t item) const {
    return devices > 1 && (device + 1) % devices != owner(item);
  }
};

// Of a sweep of so many items.
class RingOrder {
 public:
  RingOrder(const RingShape& shape, std::int64_t device, std::int64_t items)
      : shape_(shape), loader_(device / shape.group()), items_(items) {}

  // What the device takes as its item number `position`.
  std::int64_t item_at(std::int64_t position) const {
    const std::int64_t batch = position / shape_.devices * shape_.devices;
    if (batch + shape_.devices > items_) return of_last(batch, position - batch);
    return batch + in_batch(position - batch);
  }

 private:
  std::int64_t in_batch(std::int64_t position) const {
    const std::int64_t group = shape_.group(), loaders = shape_.loaders;
    const std::int64_t owner = (loader_ - position / group + loaders) % loaders;
    return owner * group + position % group;
  }
  // Of a batch that isn't full the items that there are.
  std::int64_t of_last(std::int64_t batch, std::int64_t position) const {
    for (std::int64_t at = 0; at < shape_.devices; ++at) {
      const std::int64_t item = batch + in_batch(at);
      if (item < items_ && position-- == 0) return item;
    }
    return -1;  // there are fewer
  }

  RingShape shape_;
  std::int64_t loader_, items_;
};

// The order in which a device takes a sweep's spans, of which `item_spans` are passed on at once.
inline std::vector<std::int64_t> ring_spans(const RingShape& shape, std::int64_t device,
                                            std::int64_t spans, std::int64_t item_spans) {
  const std::int64_t items = ceil_div(spans, item_spans);
  const RingOrder order(shape, device, items);
  std::vector<std::int64_t> taken;
  for (std::int64_t position = 0; position < items; ++position) {
    const std::int64_t first = order.item_at(position) * item_spans;
    for (std::int64_t span = first; span < std::min(first + item_spans, spans); ++span) {
      taken.push_back(span);
    }
  }
  return taken;
}

}  // namespace ooc
