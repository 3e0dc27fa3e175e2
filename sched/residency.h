// The plan's pieces in the arena: which rows are there, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sched/plan.h"

namespace ooc {

// Where rows of a tensor lie beside each other: blocks [first_block, end_block), slices from
// first_slice on, as rows_bytes() says. `data` is where the first of them begins.
struct RowsPlace {
  std::byte* data = nullptr;
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t first_slice = 0;

  std::byte* at(const PlannedTensor& tensor, std::int64_t block, std::int64_t slice) const {
    return data + rows_offset(tensor, first_block, end_block, first_slice, block, slice);
  }
};

// Used by the driving thread and, for set(), under the driver's lock.
class Residency {
 public:
  enum class State : std::uint8_t { kAbsent, kComing, kThere };

  // The plan and the arena outlive it.
  Residency(const Plan& plan, std::byte* arena);

  // What pieces hold at the beginning of this pass (counted over all sections), or no longer do
  // behind it.
  void begin_pass(int pass);
  void end_pass(int pass);
  // Behind an epoch that was given up: rows that a pass made, or that were coming, are gone.
  void forget();

  // The piece that holds a block in a pass; -1: none does.
  int find(int tensor, std::int64_t block, int pass) const;
  RowsPlace place(int piece) const;
  State state(int piece, std::int64_t unit, std::int64_t slice) const {
    return states_[index(piece)][state_index(piece, unit, slice)];
  }
  void set(int piece, std::int64_t unit, std::int64_t slice, State state) {
    states_[index(piece)][state_index(piece, unit, slice)] = state;
  }

 private:
  static std::size_t index(int piece) { return static_cast<std::size_t>(piece); }
  std::size_t state_index(int piece, std::int64_t unit, std::int64_t slice) const;
  bool is_alive(const Piece& piece, int pass) const;
  bool is_permanent(const Piece& piece) const;
  void clear(int piece);

  const Plan& plan_;
  std::byte* arena_;
  int pass_count_ = 0;
  std::vector<std::vector<int>> pieces_;    // by tensor
  std::vector<std::vector<State>> states_;  // by piece
};

}  // namespace ooc
