// Places in the arena.
#include <algorithm>

#include "sched/plan_memory.h"

namespace ooc {
namespace {

struct Item {
  Region* memory = nullptr;
  int first_pass = 0, last_pass = 0;
  int length = 0;         // passes
  std::size_t piece = 0;  // + 1; 0: none
};

bool live_in(int first, int last, int pass) {
  return first <= last ? pass >= first && pass <= last : pass >= first || pass <= last;
}

class Placer {
 public:
  Placer(const std::vector<Timeline>& timelines, std::int64_t limit, Plan& plan)
      : timelines_(timelines), limit_(limit), plan_(plan) {
    for (const Section& section : plan.sections) {
      passes_ += static_cast<int>(section.passes.size());
    }
  }

  bool run() {
    for (EdgePiece& piece : plan_.edge_pieces) put(piece.memory, 0, passes_ - 1);
    std::vector<Piece> pieces = std::move(plan_.pieces);
    plan_.pieces.clear();
    std::stable_sort(pieces.begin(), pieces.end(), [&](const Piece& a, const Piece& b) {
      const bool a_stays = length(a) == passes_, b_stays = length(b) == passes_;
      if (a_stays != b_stays) return a_stays;
      return a.memory.bytes > b.memory.bytes;
    });
    std::size_t next = 0;
    while (next < pieces.size() && length(pieces[next]) == passes_) put_piece(pieces[next++]);
    put_uses();
    while (next < pieces.size()) put_piece(pieces[next++]);
    plan_.arena_bytes = end_;
    return limit_ == 0 || end_ <= limit_;
  }

 private:
  struct Placed {
    std::int64_t offset, end;
    int first_pass, last_pass;
  };

  int length(const Piece& piece) const {
    return (piece.last_pass - piece.first_pass + passes_) % passes_ + 1;
  }

  bool together(const Placed& placed, int first, int last) const {
    return live_in(placed.first_pass, placed.last_pass, first) ||
           live_in(first, last, placed.first_pass);
  }

  void put_uses() {
    std::vector<Item> items;
    int pass_index = 0;
    for (Section& section : plan_.sections) {
      for (Pass& pass : section.passes) {
        for (TensorUse& use : pass.uses) items.push_back({&use.memory, pass_index, pass_index});
        items.push_back({&pass.edge_ring, pass_index, pass_index});
        ++pass_index;
      }
    }
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      return a.memory->bytes > b.memory->bytes;
    });
    for (const Item& item : items) put(*item.memory, item.first_pass, item.last_pass);
  }

  // Holes of the passes at hand: [offset, end), the last one open.
  std::vector<std::pair<std::int64_t, std::int64_t>> holes(int first, int last) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    std::int64_t at = 0;
    for (const Placed& placed : placed_) {  // by offset
      if (!together(placed, first, last)) continue;
      if (placed.offset > at) found.emplace_back(at, placed.offset);
      at = std::max(at, placed.end);
    }
    found.emplace_back(at, limit_ > 0 ? std::max(limit_, at) : std::int64_t{1} << 62);
    return found;
  }

  void occupy(const Region& memory, int first, int last) {
    const Placed placed{memory.offset, memory.offset + memory.bytes, first, last};
    const auto at =
        std::upper_bound(placed_.begin(), placed_.end(), placed,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    placed_.insert(at, placed);
    end_ = std::max(end_, placed.end);
  }

  void put(Region& memory, int first, int last) {
    memory.offset = 0;
    if (memory.bytes == 0) return;
    const auto found = holes(first, last);
    const auto fits = std::find_if(found.begin(), found.end(), [&](const auto& hole) {
      return hole.second - hole.first >= memory.bytes;
    });
    memory.offset = fits == found.end() ? found.back().first : fits->first;
    occupy(memory, first, last);
  }

  // Whole where a hole takes it, in parts where only several do.
  void put_piece(Piece piece) {
    const PlannedTensor& tensor = plan_.tensors[static_cast<std::size_t>(piece.tensor)];
    const std::int64_t slices = tensor.layout.slice_count();
    const std::int64_t quantum = timelines_[static_cast<std::size_t>(piece.tensor)].quantum;
    const auto bytes_to = [&](std::int64_t end) {
      return rows_bytes(tensor, piece.first_block, end, 0, slices);
    };
    const auto found = holes(piece.first_pass, piece.last_pass);
    const bool whole = std::any_of(found.begin(), found.end(), [&](const auto& hole) {
      return hole.second - hole.first >= piece.memory.bytes;
    });
    const std::int64_t step = bytes_to(std::min(piece.first_block + quantum, piece.end_block));
    for (const auto& [offset, end] : found) {
      if (whole || piece.first_block == piece.end_block) break;
      const std::int64_t blocks = (end - offset) / step * quantum;
      if (blocks == 0) continue;
      Piece part = piece;
      part.end_block = std::min(piece.first_block + blocks, piece.end_block);
      part.memory = {offset, bytes_to(part.end_block)};
      occupy(part.memory, part.first_pass, part.last_pass);
      piece.first_block = part.end_block;
      plan_.pieces.push_back(part);
    }
    if (piece.first_block == piece.end_block) return;
    piece.memory.bytes = bytes_to(piece.end_block);
    put(piece.memory, piece.first_pass, piece.last_pass);
    plan_.pieces.push_back(piece);
  }

  const std::vector<Timeline>& timelines_;
  std::int64_t limit_;
  Plan& plan_;
  int passes_ = 0;
  std::int64_t end_ = 0;
  std::vector<Placed> placed_;  // by offset
};

}  // namespace

bool place(const std::vector<Timeline>& timelines, std::int64_t limit, Plan& plan) {
  return Placer(timelines, limit, plan).run();
}

}  // namespace ooc
