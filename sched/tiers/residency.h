// Pieces in an arena, the device's or the host's: which rows are there, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "sched/plan/plan.h"

namespace ooc {

// Where rows of a tensor lie beside each other: blocks [first_block, end_block), slices from
// first_slice on, as rows_bytes() says. `data` is where the first of them begins.
struct RowsPlace {
  std::byte* data = nullptr;
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t first_slice = 0;

  std::byte* at(const PlannedTensor& tensor, std::int64_t row, std::int64_t slice) const {
    return data + row_offset(tensor, first_block, end_block, first_slice, row, slice);
  }
  // What a unit's slice takes: its rows lie beside each other.
  std::span<std::byte> unit(const PlannedTensor& tensor, std::int64_t index,
                            std::int64_t slice) const {
    const std::int64_t row = index * tensor.unit_blocks * tensor.layout.block_rows;
    return {at(tensor, row, slice), static_cast<std::size_t>(unit_bytes(tensor, index, slice))};
  }
};

// Used by the driving thread and, for state() and set(), under its owner's lock.
class Residency {
 public:
  enum class State : std::uint8_t { kAbsent, kComing, kThere };

  // `pieces`: the plan's, or those of its HostTier. All of it outlives this.
  Residency(const Plan& plan, const std::vector<Piece>& pieces, std::byte* arena);
  // Whether nobody else ever has its memory.
  bool is_permanent(const Piece& piece) const;
  // Called with what a piece held and holds no more, unit by unit and slice by slice.
  using Cleared = std::function<void(const Piece& piece, std::int64_t unit, std::int64_t slice)>;
  void on_cleared(Cleared cleared) { cleared_ = std::move(cleared); }
  // No piece holds anything any more.
  void clear_all();

  // Pieces that don't live in this pass (counted over all sections), and those that begin with it,
  // hold nothing any more. Rows may still be leaving them: that asks for no states, find() alone.
  void begin_pass(int pass);
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
  // Where the state is kept.
  State& state_at(int piece, std::int64_t unit, std::int64_t slice) {
    return states_[index(piece)][state_index(piece, unit, slice)];
  }

 private:
  static std::size_t index(int piece) { return static_cast<std::size_t>(piece); }
  std::size_t state_index(int piece, std::int64_t unit, std::int64_t slice) const;
  void clear(int piece);

  const Plan& plan_;
  const std::vector<Piece>& all_;
  std::byte* arena_;
  int pass_count_;
  std::vector<std::vector<int>> pieces_;    // by tensor
  std::vector<std::vector<State>> states_;  // by piece
  Cleared cleared_;
};

}  // namespace ooc
