// What lies in memory when: pieces, the memory of uses, edge rings; and their places in the arena.
#pragma once

#include <algorithm>
#include <vector>

#include "sched/plan/liveness/in_place.h"

namespace ooc {

// How large a pass's rings are. Of rows in the steps: so many times a step, or a unit of the widest
// rows where that is longer, and so many bytes of those; the other rings hold as many rows. Of
// edges: those of `times` spans, and so many bytes. Of what they read: so many spans, and as many
// bytes as of rows in the steps. All where there are so many items.
struct RingSize {
  std::int64_t times = 1;
  std::int64_t bytes = 0;
  std::int64_t edge_bytes = 0;
  std::int64_t spans = 1;

  bool operator==(const RingSize&) const = default;
};

// What streams in or out beside a pass's row-wise steps comes and goes in so many rows: a step, or
// a unit of the widest tensor where that is longer, for no slot is free before its unit's last
// step.
class RowGrain {
 public:
  // Of a pass, by its uses: drafts of them, or as planned.
  template <class Uses>
  RowGrain(std::int64_t step_rows, const Uses& uses, const std::vector<PlannedTensor>& tensors)
      : rows_(step_rows) {
    for (const auto& use : uses) {
      const bool streams = use.role == UseRole::kRows || use.role == UseRole::kOutput;
      if (streams) add(tensors[static_cast<std::size_t>(use.tensor)]);
    }
    rows_ = std::max(rows_, widest_unit_);
  }

  // Of a ring: the rows at hand may lie at the end of a unit.
  std::int64_t units(const PlannedTensor& tensor, const RingSize& ring) const;
  // How many times the grain so many units hold; below 1 where that is fewer rows than workers have
  // in work at once.
  double depth(const PlannedTensor& tensor, std::int64_t units, std::int64_t in_work) const;

 private:
  void add(const PlannedTensor& tensor);

  std::int64_t rows_;
  std::int64_t widest_row_ = 0;   // bytes
  std::int64_t widest_unit_ = 0;  // rows
};

// Rows that so many workers have in work: whole steps, whose groups are theirs.
std::int64_t rows_in_work(std::int64_t workers, std::int64_t step_rows, std::int64_t group_rows);

// The memory of one use of a pass.
struct UseMemory {
  std::int64_t bytes = 0;
  std::int64_t slots = 0;
};

// A ring of edge chunks, the largest of so many bytes. Of a span that a part folds it holds all of
// them, or, of many, those that are as long on their way as a span's rows.
struct EdgeRing {
  // Of a pass with parts of so many blocks.
  EdgeRing(const EdgeLayout& edges, std::int64_t part_blocks, std::int64_t chunk_bytes);

  std::int64_t slots(const RingSize& ring) const;
  // Spans that so many slots hold, beside the chunk at hand.
  double spans(std::int64_t slots) const;

  std::int64_t chunk_bytes;
  std::int64_t span_chunks;
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
  std::int64_t worker_scratch(int pass) const;  // of all workers
  // All uses, the edge ring and the workers' scratch of a pass.
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
  std::vector<RowGrain> grains_;  // by pass
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
