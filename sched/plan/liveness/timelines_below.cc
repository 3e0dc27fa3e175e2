// What memories leave to the one below them.
#include <algorithm>
#include <iterator>
#include <set>

#include "sched/plan/liveness/access.h"

namespace ooc {
namespace {

std::int64_t stored_from(const Timeline& timeline, const ResidentPrefix& levels) {
  if (timeline.always_stored || timeline.leaves) return timeline.first_block;
  std::int64_t from = timeline.end_block;
  for (const std::int64_t keep : levels.keep) from = std::min(from, keep);
  return from;
}

Access first_sweep(const Access& access) {
  const std::int64_t resident = std::min<std::int64_t>(access.resident, 1);
  const std::int64_t streamed = std::min<std::int64_t>(access.streamed, 1 - resident);
  return {access.pass, false, false, 1, false, 1, resident, streamed};
}

// What of a timeline's accesses the memory below sees of blocks from `block` on, up to the next
// level.
Timeline timeline_below(const Timeline& timeline, const ResidentPrefix& levels,
                        std::int64_t block) {
  Timeline below = timeline;
  below.accesses.clear();
  below.leaves = false;
  for (std::size_t i = 0; i < timeline.accesses.size(); ++i) {
    Access access = timeline.accesses[i];
    access.pins = false;
    if (access.writes) {
      if (block < stored_from(timeline, levels)) continue;
    } else {
      if (block < (i > 0 ? levels.keep[i - 1] : levels.keep.back())) continue;
      if (block < levels.during[i]) access = first_sweep(access);
    }
    below.accesses.push_back(access);
  }
  if (timeline.tail_pass >= 0 && block < levels.keep.back()) below.tail_pass = -1;
  return below;
}

}  // namespace

namespace {

// Accesses of another device to the same blocks.
void merge(const std::vector<Access>& more, std::vector<Access>& accesses) {
  for (const Access& access : more) {
    const auto at =
        std::lower_bound(accesses.begin(), accesses.end(), access.pass,
                         [](const Access& before, int pass) { return before.pass < pass; });
    if (at == accesses.end() || at->pass != access.pass) {
      accesses.insert(at, access);
      continue;
    }
    if (access.crosses_tiles && at->crosses_tiles) at->devices += access.devices;
    at->writes |= access.writes;
    at->crosses_tiles |= access.crosses_tiles;
    at->sweeps += access.sweeps;
    at->resident += access.resident;
    at->streamed += access.streamed;
  }
}

}  // namespace

std::vector<Timeline> timelines_below(const Draft& draft,
                                      const std::vector<KeptOnDevice>& devices) {
  std::vector<Timeline> out;
  std::vector<std::vector<std::vector<Access>>> apart;
  for (const KeptOnDevice& device : devices) {
    // The loaders of a ring take each item once, all together.
    const bool counted = device.share.ring_loaders > 0 && device.share.index > 0;
    apart.push_back(counted ? std::vector<std::vector<Access>>(draft.tensors.size())
                            : streamed_apart(draft, device.share));
  }
  for (std::size_t t = 0; t < draft.tensors.size(); ++t) {
    const PlannedTensor& tensor = draft.tensors[t];
    std::set<std::int64_t> borders{0, tensor.layout.block_count()};
    for (const KeptOnDevice& device : devices) {
      const ResidentPrefix& levels = device.residency.tensors[t];
      borders.insert({device.timelines[t].first_block, device.timelines[t].end_block});
      borders.insert(levels.keep.begin(), levels.keep.end());
      borders.insert(levels.during.begin(), levels.during.end());
    }
    for (auto first = borders.begin(); std::next(first) != borders.end(); ++first) {
      Timeline below;
      below.tensor = static_cast<int>(t);
      for (std::size_t d = 0; d < devices.size(); ++d) {
        const Timeline& timeline = devices[d].timelines[t];
        if (timeline.first_block <= *first && *first < timeline.end_block) {
          const Timeline own = timeline_below(timeline, devices[d].residency.tensors[t], *first);
          below.cyclic = own.cyclic;
          below.always_stored |= own.always_stored;
          below.tail_pass = std::max(below.tail_pass, own.tail_pass);
          merge(own.accesses, below.accesses);
        }
        merge(apart[d][t], below.accesses);
      }
      if (below.accesses.empty()) continue;
      below.first_block = *first;
      below.end_block = *std::next(first);
      below.quantum = tensor.io_chunk_blocks;
      const bool same = !out.empty() && out.back().tensor == below.tensor &&
                        out.back().end_block == below.first_block &&
                        out.back().accesses == below.accesses &&
                        out.back().tail_pass == below.tail_pass;
      if (same) {
        out.back().end_block = below.end_block;
      } else {
        out.push_back(std::move(below));
      }
    }
  }
  return out;
}

std::vector<std::int64_t> stored_from(const Draft& draft, const std::vector<Timeline>& timelines,
                                      const ResidentSet& residency) {
  std::vector<std::int64_t> from;
  for (const PlannedTensor& tensor : draft.tensors) from.push_back(tensor.layout.block_count());
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    const std::int64_t own = stored_from(timelines[t], residency.tensors[t]);
    std::int64_t& first = from[static_cast<std::size_t>(timelines[t].tensor)];
    if (own < timelines[t].end_block) first = std::min(first, own);
  }
  return from;
}

}  // namespace ooc
