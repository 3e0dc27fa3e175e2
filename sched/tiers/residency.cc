#include "sched/tiers/residency.h"

#include <algorithm>

namespace ooc {

Residency::Residency(const Plan& plan, const std::vector<ResidentRange>& ranges, std::byte* arena)
    : plan_(plan),
      all_(ranges),
      arena_(arena),
      pass_count_(pass_count(plan)),
      ranges_(plan.tensors.size()),
      states_(ranges.size()) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const ResidentRange& range = ranges[i];
    const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(range.tensor)];
    ranges_[static_cast<std::size_t>(range.tensor)].push_back(static_cast<int>(i));
    const std::int64_t io_chunks =
        ceil_div(range.end_block - range.first_block, tensor.io_chunk_blocks);
    states_[i].resize(static_cast<std::size_t>(io_chunks * tensor.layout.slice_count()),
                      Presence::kAbsent);
  }
}

std::size_t Residency::state_index(int range, std::int64_t io_chunk, std::int64_t slice) const {
  const ResidentRange& place = all_[index(range)];
  const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(place.tensor)];
  const std::int64_t at = io_chunk - place.first_block / tensor.io_chunk_blocks;
  return static_cast<std::size_t>(at * tensor.layout.slice_count() + slice);
}

bool Residency::is_permanent(const ResidentRange& range) const {
  return (range.last_pass + 1) % pass_count_ == range.first_pass % pass_count_;
}

void Residency::clear(int range) {
  std::vector<Presence>& states = states_[index(range)];
  const ResidentRange& place = all_[index(range)];
  const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(place.tensor)];
  const std::int64_t slices = tensor.layout.slice_count();
  const std::int64_t first_io_chunk = place.first_block / tensor.io_chunk_blocks;
  for (std::size_t i = 0; cleared_ && i < states.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (states[i] == Presence::kThere) cleared_(place, first_io_chunk + at / slices, at % slices);
  }
  std::fill(states.begin(), states.end(), Presence::kAbsent);
}

void Residency::clear_all() {
  for (std::size_t i = 0; i < all_.size(); ++i) clear(static_cast<int>(i));
}

void Residency::begin_pass(int pass) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const ResidentRange& range = all_[i];
    if (is_permanent(range)) continue;
    if (range.first_pass == pass || !is_alive(range, pass)) clear(static_cast<int>(i));
  }
}

void Residency::reset() {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const bool input = plan_.tensors[static_cast<std::size_t>(all_[i].tensor)].input;
    if (!input) clear(static_cast<int>(i));
    for (Presence& state : states_[i]) {
      if (state == Presence::kComing) state = Presence::kAbsent;
    }
  }
}

int Residency::find(int tensor, std::int64_t block, int pass) const {
  for (const int i : ranges_[static_cast<std::size_t>(tensor)]) {
    const ResidentRange& range = all_[index(i)];
    if (range.first_block <= block && block < range.end_block && is_alive(range, pass)) return i;
  }
  return -1;
}

RowsPlace Residency::place(int range) const {
  const ResidentRange& place = all_[index(range)];
  return {arena_ + place.memory.offset, place.first_block, place.end_block, 0};
}

}  // namespace ooc
