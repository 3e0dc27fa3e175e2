#include "sched/devices/ring_loader.h"

namespace ooc {

void RingLoader::load(std::int64_t item, std::byte* data, ComingItem& coming) {
  if (from_host(item)) return RowsLoader::load(item, data, coming);
  count_passed_on(item);
  ring_.take(device_, {use_, in_graph_order(item)}, data, item_bytes(item), coming.read({}));
}

}  // namespace ooc
