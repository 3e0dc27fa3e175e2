// Of the in-edges that vertices are offered, each keeps those with the smallest keys
// (kernels/sampling/neighbour_keys.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ooc {

// One thread at a time.
class KeyedChoice {
 public:
  // `begins`: of each who asks the first place, then one more; it keeps as many as it has places,
  // with what an edge carries.
  KeyedChoice(std::vector<std::size_t> begins, std::size_t data_bytes);

  // Where what the edge carries is to be put; null: it isn't kept. Of equal keys the smaller
  // neighbour is.
  std::byte* offer(std::size_t ask, std::uint64_t key, std::uint32_t neighbour);

  // visit(neighbour, what the edge carries) of all that are kept, in the order of keys.
  template <class Visit>
  void for_each(std::size_t ask, Visit&& visit) {
    sort(ask);
    for (std::size_t i = 0; i < counts_[ask]; ++i) {
      const Candidate& candidate = kept_[begins_[ask] + i];
      visit(candidate.neighbour, record(ask, candidate.place));
    }
  }
  static std::int64_t bytes(std::int64_t most, std::size_t data_bytes);  // of one who asks

 private:
  struct Candidate {
    std::uint64_t key = 0;
    std::uint32_t neighbour = 0;
    std::uint32_t place = 0;  // of what it carries

    bool operator<(const Candidate& other) const {
      return key != other.key ? key < other.key : neighbour < other.neighbour;
    }
  };
  std::byte* record(std::size_t ask, std::uint32_t place) {
    return records_.data() + (begins_[ask] + place) * data_bytes_;
  }
  void sort(std::size_t ask);

  std::vector<std::size_t> begins_;
  std::size_t data_bytes_;
  std::vector<Candidate> kept_;  // of each a heap
  std::vector<std::uint32_t> counts_;
  std::vector<std::byte> records_;
};

}  // namespace ooc
