// Ranges in an arena, the device's or the host's: which rows are there, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "sched/plan/io_chunks.h"
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
  // What an I/O chunk's slice takes: its rows lie beside each other.
  std::span<std::byte> io_chunk(const PlannedTensor& tensor, std::int64_t index,
                                std::int64_t slice) const {
    const std::int64_t row = index * tensor.io_chunk_blocks * tensor.layout.block_rows;
    return {at(tensor, row, slice), static_cast<std::size_t>(io_chunk_bytes(tensor, index, slice))};
  }
};

// Of rows or an edge chunk that stay in memory.
enum class Presence : std::uint8_t { kAbsent, kComing, kThere };

// Used by the driving thread and, for state() and set(), under its owner's lock.
class Residency {
 public:
  // `ranges`: the plan's, or those of its HostTier. All of it outlives this.
  Residency(const Plan& plan, const std::vector<ResidentRange>& ranges, std::byte* arena);
  // Whether nobody else ever has its memory.
  bool is_permanent(const ResidentRange& range) const;
  // Called with what a resident range held and holds no more, I/O chunk by I/O chunk and slice by
  // slice.
  using Cleared =
      std::function<void(const ResidentRange& range, std::int64_t io_chunk, std::int64_t slice)>;
  void on_cleared(Cleared cleared) { cleared_ = std::move(cleared); }
  // No range holds anything any more.
  void clear_all();

  // Ranges that don't live in this pass (counted over all sections), and those that begin with it,
  // hold nothing any more. Rows may still be leaving them: that asks for no states, find() alone.
  void begin_pass(int pass);
  // After an epoch that was given up: rows that a pass made, or that were coming, are gone.
  void reset();

  // The range that holds a block in a pass; -1: none does.
  int find(int tensor, std::int64_t block, int pass) const;
  RowsPlace place(int range) const;
  Presence state(int range, std::int64_t io_chunk, std::int64_t slice) const {
    return states_[index(range)][state_index(range, io_chunk, slice)];
  }
  void set(int range, std::int64_t io_chunk, std::int64_t slice, Presence state) {
    states_[index(range)][state_index(range, io_chunk, slice)] = state;
  }
  // Where the state is kept.
  Presence& state_at(int range, std::int64_t io_chunk, std::int64_t slice) {
    return states_[index(range)][state_index(range, io_chunk, slice)];
  }

 private:
  static std::size_t index(int range) { return static_cast<std::size_t>(range); }
  std::size_t state_index(int range, std::int64_t io_chunk, std::int64_t slice) const;
  void clear(int range);

  const Plan& plan_;
  const std::vector<ResidentRange>& all_;
  std::byte* arena_;
  int pass_count_;
  std::vector<std::vector<int>> ranges_;       // by tensor
  std::vector<std::vector<Presence>> states_;  // by range
  Cleared cleared_;
};

}  // namespace ooc
