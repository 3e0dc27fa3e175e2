// Of the in-edges that vertices are offered, each keeps those with the smallest keys
// (kernels/sampling/neighbour_keys.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/sampling/neighbour_keys.h"

namespace ooc {

// In-edges of a vertex, beside each other: what all are offered who ask for it.
struct OfferedEdges {
  static constexpr std::size_t kMost = 1024;

  std::span<const std::uint32_t> neighbours;  // kMost at most
  std::array<std::uint64_t, kMost> names;     // edge_name()
  std::array<float, kMost> weights;           // where chances go by them
};

// One thread at a time.
class KeyedChoice {
 public:
  // `begins`: of each who asks the first place, then one more; it keeps as many as it has places,
  // with what an edge carries.
  KeyedChoice(std::vector<std::size_t> begins, std::size_t data_bytes);

  // put(i, where what the edge carries is to be put) of each that is kept for now. Of equal keys
  // the smaller neighbour is.
  template <class Put>
  void offer(std::size_t ask, std::uint64_t stream, const OfferedEdges& edges, bool by_weight,
             Put&& put) {
    std::array<std::uint64_t, OfferedEdges::kMost> keys;
    const std::size_t count = edges.neighbours.size();
    for (std::size_t i = 0; i < count; ++i) keys[i] = source_key(stream, edges.names[i]);
    std::uint64_t limit = largest(ask);
    for (std::size_t i = 0; i < count; ++i) {
      if (by_weight) {
        if (is_weighted_key_above(limit, keys[i], edges.weights[i])) continue;
        keys[i] = weighted_key(keys[i], edges.weights[i]);
      }
      if (keys[i] > limit) continue;
      if (std::byte* const record = keep(ask, keys[i], edges.neighbours[i])) put(i, record);
      limit = largest(ask);
    }
  }

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
  // The key that one has to be below, or equal to, to be kept.
  std::uint64_t largest(std::size_t ask) const {
    const std::size_t begin = begins_[ask], places = begins_[ask + 1] - begin;
    return counts_[ask] < places || places == 0 ? kNeverTaken : kept_[begin].key;
  }
  // Where what the edge carries is to be put; null: it isn't kept.
  std::byte* keep(std::size_t ask, std::uint64_t key, std::uint32_t neighbour);
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
