#include "sched/sampling/keyed_choice.h"

#include <algorithm>

#include "kernels/sampling/neighbour_keys.h"

namespace ooc {

KeyedChoice::KeyedChoice(std::size_t asks, std::size_t most, std::size_t data_bytes)
    : most_(most),
      data_bytes_(data_bytes),
      kept_(asks * most),
      counts_(asks),
      records_(asks * most * data_bytes + 1) {}

std::int64_t KeyedChoice::bytes(std::int64_t most, std::size_t data_bytes) {
  return most * static_cast<std::int64_t>(sizeof(Candidate) + data_bytes) +
         static_cast<std::int64_t>(sizeof(std::uint32_t));
}

std::byte* KeyedChoice::offer(std::size_t ask, std::uint64_t key, std::uint32_t neighbour) {
  if (key == kNeverTaken) return nullptr;
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(ask * most_);
  std::uint32_t& count = counts_[ask];
  Candidate candidate{key, neighbour, count};
  if (count == most_) {
    if (!(candidate < *begin)) return nullptr;
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
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(ask * most_);
  std::sort_heap(begin, begin + counts_[ask]);
}

}  // namespace ooc
