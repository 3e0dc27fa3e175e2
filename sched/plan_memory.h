// What lies in memory when: pieces, the memory of uses, edge rings; and their places in the arena.
#pragma once

#include <vector>

#include "sched/plan_reuse.h"

namespace ooc {

// How large a pass's rings are: at least so many times what is in use at once (an item; of rows in
// the steps, all slices of a unit) and so many bytes each, where there are so many items.
struct RingSize {
  std::int64_t times = 1;
  std::int64_t bytes = 0;
  std::int64_t edge_bytes = 0;

  bool operator==(const RingSize&) const = default;
};

// The memory of one use of a pass.
struct UseMemory {
  std::int64_t bytes = 0;
  std::int64_t slots = 0;
};

class MemoryModel {
 public:
  // The references must outlive it. Not `works`: the passes' uses lie in another memory, and what
  // is here are rows and edge chunks from `first_chunks` on. What `reuses` share counts once.
  MemoryModel(const PassBuilder& builder, const EdgeTable& edges, const Draft& draft,
              const std::vector<Timeline>& timelines, const std::vector<Reuse>& reuses,
              bool works = true, const std::array<std::int64_t, 2>& first_chunks = {});

  bool works() const { return works_; }
  // `during`: blocks of the use's tensor in pieces.
  UseMemory use(int pass, const UseDraft& use, std::int64_t during, const RingSize& ring) const;
  UseMemory edge_ring(int pass, std::int64_t end_chunk, const RingSize& ring) const;
  // All uses and the edge ring of a pass.
  std::int64_t working_set(int pass, const Kept& residency, const RingSize& ring) const;
  // Of the edge chunks before `end_chunk`.
  std::int64_t edge_piece(Direction direction, std::int64_t end_chunk) const;
  // By pass: pieces and edge pieces.
  std::vector<std::int64_t> kept(const Kept& residency) const;
  // Blocks of the tensor in pieces during the pass.
  std::int64_t during(int pass, int tensor, const Kept& residency) const;

 private:
  const StageShape& stage(int pass) const;

  const PassBuilder& builder_;
  const EdgeTable& edges_;
  const Draft& draft_;
  const std::vector<Timeline>& timelines_;
  const std::vector<Reuse>& reuses_;
  bool works_;
  std::array<std::int64_t, 2> first_chunks_;
};

// Bands of levels as pieces without places; those that share one have the same blocks.
std::vector<Piece> make_pieces(const Draft& draft, const std::vector<Timeline>& timelines,
                               const std::vector<Reuse>& reuses, const Kept& residency);

// Gives every region of the plan its place in the arena of `limit` bytes (0: no limit); `plan` has
// the sizes and lifetimes. Pieces may come out cut. Returns the pieces, or rests of them, that
// found no place; the rest of the plan must fit.
std::vector<Piece> place(const std::vector<Timeline>& timelines, const std::vector<Reuse>& reuses,
                         std::int64_t limit, Plan& plan);

}  // namespace ooc
