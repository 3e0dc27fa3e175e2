// Places in the arena: at its bottom what stays for good, then each pass's uses, then bundles of
// ranges, in destination ranges where the holes ask for it. Where one finds no place, other orders
// are tried.
#include <algorithm>
#include <optional>
#include <random>
#include <tuple>

#include "sched/plan/io_chunks.h"
#include "sched/plan/liveness/memory.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kPage = 4096;

bool live_in(int first, int last, int pass) {
  return first <= last ? pass >= first && pass <= last : pass >= first || pass <= last;
}

// What placing one range or one pass's uses after the other can be told.
struct Choice {
  std::vector<std::size_t> order;  // of the bundles
  std::vector<bool> up;            // by bundle: from the bottom up, rather than from the top down
  std::vector<bool> top;           // by pass: its uses lie at the top
};

struct Places {
  std::vector<ResidentRange> ranges;
  std::vector<std::int64_t> offsets;  // of edge ranges, then pass by pass
  std::int64_t end = 0;
  std::vector<std::pair<std::size_t, Bundle>> left;  // by number: what found no place

  std::int64_t left_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& [number, bundle] : left) bytes += bundle.bytes();
    return bytes;
  }
};

class Placer {
 public:
  Placer(const std::vector<PlannedTensor>& tensors, const std::vector<Timeline>& timelines,
         const std::vector<Bundle>& bundles, std::int64_t limit, const DevicePlan& device)
      : tensors_(tensors),
        timelines_(timelines),
        bundles_(bundles),
        limit_(limit),
        device_(device),
        passes_(static_cast<int>(device.passes.size())) {}

  Places run(const Choice& choice) {
    for (const EdgeRange& range : device_.edge_ranges) {
      out_.offsets.push_back(put(range.memory.bytes, 0, passes_ - 1, false));
    }
    for (const Bundle& bundle : bundles_) {
      if (length(bundle) == passes_) put_whole(bundle);
    }
    put_uses(choice.top);
    for (const std::size_t at : choice.order) {
      if (length(bundles_[at]) < passes_) put_bundle(bundles_[at], at, choice.up[at]);
    }
    return std::move(out_);
  }
  int passes() const { return passes_; }
  int length(const Bundle& bundle) const {
    return (bundle.last_pass() - bundle.first_pass() + passes_) % passes_ + 1;
  }

 private:
  struct Placed {
    std::int64_t offset, end;
    int first_pass, last_pass;
  };
  struct Hole {
    std::int64_t offset, end;
    std::int64_t bytes() const { return end - offset; }
  };

  static bool together(const Placed& placed, int first, int last) {
    return live_in(placed.first_pass, placed.last_pass, first) ||
           live_in(first, last, placed.first_pass);
  }

  void put_uses(const std::vector<bool>& top) {
    for (int pass = 0; pass < passes_; ++pass) {
      const PassMemory& memory = device_.passes[static_cast<std::size_t>(pass)];
      const bool at_top = limit_ > 0 && top[static_cast<std::size_t>(pass)];
      const auto put_region = [&](const Region& region) {
        out_.offsets.push_back(put(region.bytes, pass, pass, at_top));
      };
      for (const UseMemory& use : memory.uses) put_region(use);
      put_region(memory.edges);
      put_region(memory.worker_scratch);
    }
  }

  // Free in all of the passes; the last one ends at the limit, or is open.
  std::vector<Hole> holes(int first, int last) const {
    std::vector<Hole> found;
    std::int64_t at = 0;
    for (const Placed& placed : placed_) {
      if (!together(placed, first, last)) continue;
      if (placed.offset > at) found.push_back({at, placed.offset});
      at = std::max(at, placed.end);
    }
    found.push_back({at, limit_ > 0 ? std::max(limit_, at) : std::int64_t{1} << 62});
    return found;
  }

  void occupy(const Region& memory, int first, int last) {
    const Placed placed{memory.offset, memory.offset + memory.bytes, first, last};
    placed_.insert(
        std::upper_bound(placed_.begin(), placed_.end(), placed,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
        placed);
    out_.end = std::max(out_.end, placed.end);
  }

  // Whole, in the first hole that takes it, from the bottom or from the top; beyond the limit where
  // none does. Returns its offset.
  std::int64_t put(std::int64_t bytes, int first, int last, bool at_top) {
    if (bytes == 0) return 0;
    std::vector<Hole> found = holes(first, last);
    std::int64_t offset = found.back().offset;
    if (at_top) std::reverse(found.begin(), found.end());
    for (const Hole& hole : found) {
      if (hole.bytes() < bytes) continue;
      offset = at_top ? (hole.end - bytes) / kPage * kPage : hole.offset;
      break;
    }
    occupy({offset, bytes}, first, last);
    return offset;
  }

  void put_whole(const Bundle& bundle) {
    const std::int64_t offset = put(bundle.bytes(), bundle.first_pass(), bundle.last_pass(), false);
    for (ResidentRange range : bundle.ranges) {
      range.memory.offset = offset;
      out_.ranges.push_back(range);
    }
  }

  void put_bundle(Bundle bundle, std::size_t number, bool up) {
    if (limit_ == 0) return put_whole(bundle);
    std::vector<Hole> found = holes(bundle.first_pass(), bundle.last_pass());
    if (!up) std::reverse(found.begin(), found.end());
    const ResidentRange& first = bundle.ranges.front();
    const auto whole = std::find_if(found.begin(), found.end(), [&](const Hole& hole) {
      return hole.bytes() >= bundle.bytes();
    });
    if (whole != found.end()) return put_dst_range(bundle, first.end_block, *whole, up);
    const std::int64_t quantum = timeline_of(timelines_, first.tensor, first.first_block).quantum;
    const std::int64_t step =
        bytes_to(first, std::min(first.first_block + quantum, first.end_block));
    for (const Hole& hole : found) {
      const std::int64_t blocks = hole.bytes() / step * quantum;
      if (blocks == 0) continue;
      const std::int64_t end = std::min(first.first_block + blocks, first.end_block);
      put_dst_range(bundle, end, hole, up);
      if (end == first.end_block) return;
      for (ResidentRange& range : bundle.ranges) range.first_block = end;
    }
    for (ResidentRange& range : bundle.ranges)
      range.memory.bytes = bytes_to(range, range.end_block);
    out_.left.emplace_back(number, std::move(bundle));
  }

  std::int64_t bytes_to(const ResidentRange& range, std::int64_t end_block) const {
    const PlannedTensor& tensor = tensors_[static_cast<std::size_t>(range.tensor)];
    return rows_bytes(tensor, range.first_block, end_block, 0, tensor.layout.slice_count());
  }

  // The blocks before end_block, at an end of a hole.
  void put_dst_range(const Bundle& bundle, std::int64_t end_block, const Hole& hole, bool up) {
    const std::int64_t bytes = bytes_to(bundle.ranges.front(), end_block);
    const std::int64_t offset = up ? hole.offset : (hole.end - bytes) / kPage * kPage;
    for (ResidentRange dst_range : bundle.ranges) {
      dst_range.end_block = end_block;
      dst_range.memory = {offset, bytes};
      out_.ranges.push_back(dst_range);
    }
    occupy({offset, bytes}, bundle.first_pass(), bundle.last_pass());
  }

  const std::vector<PlannedTensor>& tensors_;
  const std::vector<Timeline>& timelines_;
  const std::vector<Bundle>& bundles_;
  std::int64_t limit_;
  const DevicePlan& device_;
  int passes_;
  std::vector<Placed> placed_;  // by offset
  Places out_;
};

// Seen from a pass on, what is there already, then bundles in the order in which they begin: for
// intervals, and without uses, that leaves no gaps.
Choice choice_from(int first_pass, bool up, const Placer& placer,
                   const std::vector<Bundle>& bundles) {
  const int passes = placer.passes();
  Choice choice{{},
                std::vector<bool>(bundles.size(), up),
                std::vector<bool>(static_cast<std::size_t>(passes))};
  const auto rank = [&](std::size_t at) {
    const int begin = (bundles[at].first_pass() - first_pass + passes) % passes;
    const int length = placer.length(bundles[at]);
    return std::tuple(begin + length > passes ? 0 : 1, begin, -length);
  };
  for (std::size_t i = 0; i < bundles.size(); ++i) choice.order.push_back(i);
  std::stable_sort(choice.order.begin(), choice.order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return choice;
}

// What found no place comes first the next time, perhaps from the other side, perhaps with the uses
// of one of its passes on the other side.
void change(const std::vector<std::pair<std::size_t, Bundle>>& left, const Placer& placer,
            std::minstd_rand& random, Choice& choice) {
  for (const auto& [number, bundle] : left) {
    const auto at = std::find(choice.order.begin(), choice.order.end(), number);
    std::rotate(choice.order.begin(), at, at + 1);
    if (random() % 2 == 0) choice.up[number] = !choice.up[number];
    if (random() % 2 == 0) continue;
    const auto offset = static_cast<int>(random() % static_cast<unsigned>(placer.length(bundle)));
    const auto pass = static_cast<std::size_t>((bundle.first_pass() + offset) % placer.passes());
    choice.top[pass] = !choice.top[pass];
  }
}

void apply(const Places& places, DevicePlan& device) {
  auto offset = places.offsets.begin();
  for (EdgeRange& range : device.edge_ranges) range.memory.offset = *offset++;
  for (PassMemory& memory : device.passes) {
    for (UseMemory& use : memory.uses) use.offset = *offset++;
    memory.edges.offset = *offset++;
    memory.worker_scratch.offset = *offset++;
  }
  device.ranges = places.ranges;
  device.arena_bytes = places.end;
}

}  // namespace

std::vector<ResidentRange> place(const std::vector<PlannedTensor>& tensors,
                                 const std::vector<Timeline>& timelines,
                                 const std::vector<InPlaceAlias>& aliases, std::int64_t limit,
                                 DevicePlan& device) {
  constexpr int kChanges = 60;
  const std::vector<Bundle> bundles = make_bundles(aliases, device.ranges);
  const Placer probe(tensors, timelines, bundles, limit, device);
  const int orders = 2 * probe.passes();
  std::minstd_rand random(1);
  Choice choice, best_choice;
  std::optional<Places> best;
  for (int i = 0; i < orders + kChanges; ++i) {
    if (i < orders) choice = choice_from(i / 2, i % 2 == 0, probe, bundles);
    if (i == orders) choice = best_choice;
    Places places = Placer(tensors, timelines, bundles, limit, device).run(choice);
    const Choice tried = choice;
    if (i >= orders) change(places.left, probe, random, choice);
    if (limit > 0 && places.end > limit) continue;
    if (best && places.left_bytes() >= best->left_bytes()) continue;
    best = std::move(places);
    best_choice = tried;
    if (best->left.empty()) break;
  }
  OOC_CHECK(best.has_value());
  apply(*best, device);
  std::vector<ResidentRange> left;
  for (const auto& [number, bundle] : best->left) {
    left.insert(left.end(), bundle.ranges.begin(), bundle.ranges.end());
  }
  return left;
}

}  // namespace ooc
