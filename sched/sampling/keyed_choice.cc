#include "sched/sampling/keyed_choice.h"

#include <algorithm>
#include <utility>

namespace ooc {

KeyedChoice::KeyedChoice(std::vector<std::size_t> begins, std::size_t data_bytes)
    : begins_(std::move(begins)),
      data_bytes_(data_bytes),
      kept_(begins_.back()),
      counts_(begins_.size() - 1),
      records_(begins_.back() * data_bytes + 1) {}

std::int64_t KeyedChoice::bytes(std::int64_t most, std::size_t data_bytes) {
  return most * static_cast<std::int64_t>(sizeof(Candidate) + data_bytes) +
         static_cast<std::int64_t>(sizeof(std::uint32_t) + sizeof(std::size_t));
}

std::byte* KeyedChoice::keep(std::size_t ask, std::uint64_t key, std::uint32_t neighbour) {
  if (key == kNeverTaken) return nullptr;
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(begins_[ask]);
  std::uint32_t& count = counts_[ask];
  Candidate candidate{key, neighbour, count};
  if (count == begins_[ask + 1] - begins_[ask]) {
    if (count == 0 || !(candidate < *begin)) return nullptr;
    std::pop_heap(begin, begin + count);
    candidate.place = (begin + count - 1)->place;
  } else {
    ++count;
  }
  *(begin + count - 1) = candidate;
  std::push_heap(begin, begin + count);
  return record(ask, candidate.place);
}

void KeyedChoice::sort(std::size_t ask) {
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(begins_[ask]);
  std::sort_heap(begin, begin + counts_[ask]);
}

}  // namespace ooc
