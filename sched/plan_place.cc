// Places in the arena: at its bottom what stays for good, then each pass's uses, then pieces, in
// parts where the holes ask for it. Where something finds no place, other orders are tried.
#include <algorithm>
#include <random>
#include <tuple>

#include "sched/plan_memory.h"
#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kPage = 4096;

bool live_in(int first, int last, int pass) {
  return first <= last ? pass >= first && pass <= last : pass >= first || pass <= last;
}

// What placing one piece or one pass's uses after the other can be told.
struct Choice {
  std::vector<std::size_t> order;  // of the pieces that don't stay for good
  std::vector<bool> up;            // by piece: from the bottom up, rather than from the top down
  std::vector<bool> top;           // by pass: its uses lie at the top
};

class Placer {
 public:
  Placer(const std::vector<Timeline>& timelines, std::int64_t limit, Plan& plan)
      : timelines_(timelines), limit_(limit), plan_(plan) {
    for (const Section& section : plan.sections) {
      passes_ += static_cast<int>(section.passes.size());
    }
  }

  // Numbers of the pieces that found no place, and what of them.
  std::vector<std::pair<std::size_t, Piece>> run(const Choice& choice) {
    const std::vector<Piece> pieces = std::move(plan_.pieces);
    plan_.pieces.clear();
    for (EdgePiece& piece : plan_.edge_pieces) put(piece.memory, 0, passes_ - 1, false);
    for (const Piece& piece : pieces) {
      if (length(piece) < passes_) continue;
      plan_.pieces.push_back(piece);
      put(plan_.pieces.back().memory, piece.first_pass, piece.last_pass, false);
    }
    put_uses(choice.top);
    for (const std::size_t at : choice.order) {
      if (length(pieces[at]) < passes_) put_piece(pieces[at], at, choice.up[at]);
    }
    plan_.arena_bytes = end_;
    return std::move(left_);
  }
  int passes() const { return passes_; }
  int length(const Piece& piece) const {
    return (piece.last_pass - piece.first_pass + passes_) % passes_ + 1;
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
    int index = 0;
    for (Section& section : plan_.sections) {
      for (Pass& pass : section.passes) {
        const bool at_top = limit_ > 0 && top[static_cast<std::size_t>(index)];
        for (TensorUse& use : pass.uses) put(use.memory, index, index, at_top);
        put(pass.edge_ring, index, index, at_top);
        ++index;
      }
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
    end_ = std::max(end_, placed.end);
  }

  // Whole, in the first hole that takes it, from the bottom or from the top; beyond the limit where
  // none does.
  void put(Region& memory, int first, int last, bool at_top) {
    memory.offset = 0;
    if (memory.bytes == 0) return;
    std::vector<Hole> found = holes(first, last);
    memory.offset = found.back().offset;
    if (at_top) std::reverse(found.begin(), found.end());
    for (const Hole& hole : found) {
      if (hole.bytes() < memory.bytes) continue;
      memory.offset = at_top ? (hole.end - memory.bytes) / kPage * kPage : hole.offset;
      break;
    }
    occupy(memory, first, last);
  }

  void put_piece(Piece piece, std::size_t number, bool up) {
    if (limit_ == 0) {
      put(piece.memory, piece.first_pass, piece.last_pass, false);
      plan_.pieces.push_back(piece);
      return;
    }
    std::vector<Hole> found = holes(piece.first_pass, piece.last_pass);
    if (!up) std::reverse(found.begin(), found.end());
    const auto whole = std::find_if(found.begin(), found.end(), [&](const Hole& hole) {
      return hole.bytes() >= piece.memory.bytes;
    });
    if (whole != found.end()) return put_part(piece, piece.end_block, *whole, up);
    const std::int64_t quantum = timelines_[static_cast<std::size_t>(piece.tensor)].quantum;
    const std::int64_t step =
        bytes_to(piece, std::min(piece.first_block + quantum, piece.end_block));
    for (const Hole& hole : found) {
      const std::int64_t blocks = hole.bytes() / step * quantum;
      if (blocks == 0) continue;
      const std::int64_t end = std::min(piece.first_block + blocks, piece.end_block);
      put_part(piece, end, hole, up);
      piece.first_block = end;
      if (end == piece.end_block) return;
    }
    piece.memory.bytes = bytes_to(piece, piece.end_block);
    left_.emplace_back(number, piece);
  }

  std::int64_t bytes_to(const Piece& piece, std::int64_t end_block) const {
    const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(piece.tensor)];
    return rows_bytes(tensor, piece.first_block, end_block, 0, tensor.layout.slice_count());
  }

  // The blocks before end_block, at an end of a hole.
  void put_part(const Piece& piece, std::int64_t end_block, const Hole& hole, bool up) {
    Piece part = piece;
    part.end_block = end_block;
    part.memory.bytes = bytes_to(piece, end_block);
    part.memory.offset = up ? hole.offset : (hole.end - part.memory.bytes) / kPage * kPage;
    occupy(part.memory, part.first_pass, part.last_pass);
    plan_.pieces.push_back(part);
  }

  const std::vector<Timeline>& timelines_;
  std::int64_t limit_;
  Plan& plan_;
  int passes_ = 0;
  std::int64_t end_ = 0;
  std::vector<Placed> placed_;  // by offset
  std::vector<std::pair<std::size_t, Piece>> left_;
};

// Seen from a pass on, what is there already, then pieces in the order in which they begin: for
// intervals, and without uses, that leaves no gaps.
Choice choice_from(int first_pass, bool up, const Placer& placer,
                   const std::vector<Piece>& pieces) {
  const int passes = placer.passes();
  Choice choice{{},
                std::vector<bool>(pieces.size(), up),
                std::vector<bool>(static_cast<std::size_t>(passes))};
  const auto rank = [&](std::size_t at) {
    const int begin = (pieces[at].first_pass - first_pass + passes) % passes;
    const int length = placer.length(pieces[at]);
    return std::tuple(begin + length > passes ? 0 : 1, begin, -length);
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) choice.order.push_back(i);
  std::stable_sort(choice.order.begin(), choice.order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return choice;
}

// What found no place comes first the next time, perhaps from the other side, perhaps with the uses
// of one of its passes on the other side.
void change(const std::vector<std::pair<std::size_t, Piece>>& left, const Placer& placer,
            std::minstd_rand& random, Choice& choice) {
  for (const auto& [number, piece] : left) {
    const auto at = std::find(choice.order.begin(), choice.order.end(), number);
    std::rotate(choice.order.begin(), at, at + 1);
    if (random() % 2 == 0) choice.up[number] = !choice.up[number];
    if (random() % 2 == 0) continue;
    const auto offset = static_cast<int>(random() % static_cast<unsigned>(placer.length(piece)));
    const auto pass = static_cast<std::size_t>((piece.first_pass + offset) % placer.passes());
    choice.top[pass] = !choice.top[pass];
  }
}

}  // namespace

std::vector<Piece> place(const std::vector<Timeline>& timelines, std::int64_t limit, Plan& plan) {
  constexpr int kChanges = 100;
  const Plan unplaced = plan;
  const Placer probe(timelines, limit, plan);
  const int orders = 2 * probe.passes();
  std::minstd_rand random(1);
  Choice choice, best;
  std::vector<Piece> least;
  std::int64_t least_bytes = -1;
  for (int i = 0; i < orders + kChanges && least_bytes != 0; ++i) {
    if (i < orders) choice = choice_from(i / 2, i % 2 == 0, probe, unplaced.pieces);
    if (i == orders) choice = best;
    Plan attempt = unplaced;
    Placer placer(timelines, limit, attempt);
    const auto left = placer.run(choice);
    const Choice tried = choice;
    if (i >= orders) change(left, placer, random, choice);
    if (attempt.arena_bytes > limit && limit > 0) continue;
    std::int64_t bytes = 0;
    for (const auto& [number, piece] : left) bytes += piece.memory.bytes;
    if (least_bytes >= 0 && bytes >= least_bytes) continue;
    least_bytes = bytes;
    best = tried;
    least.clear();
    for (const auto& [number, piece] : left) least.push_back(piece);
    plan = std::move(attempt);
  }
  OOC_CHECK(least_bytes >= 0);
  return least;
}

}  // namespace ooc
