// Rows that stay in memory for one superbatch after the other: of vertices that many batches ask
// for. Who is hot is chosen once, from the requests of the first superbatch (choose_hot() in
// row_counts.cc), and a hot row comes when what lies around it is first read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/device/host_buffer.h"

namespace ooc {

// Two bitmaps and a table: of the vertices those that are hot, their rows in the vertices' order,
// and of these rows those that are here.
//
// One superbatch at a time is packed: who does it has the lock. Batches meanwhile read rows that
// were here before.
class HotRows {
 public:
  // As many row records as fit `bytes`; memory is taken as they come. BudgetError where there are
  // no addresses for them.
  HotRows(std::int64_t vertices, std::size_t record_bytes, std::int64_t bytes);
  // What it takes beside `bytes`, at most.
  static std::int64_t table_bytes(std::int64_t vertices);

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  std::size_t record_bytes() const { return record_bytes_; }
  std::int64_t most_rows() const { return most_rows_; }

  // Any thread may choose(); then one calls finish_choice(), with no more vertices than most_rows()
  // chosen. Vertices in order fill what room is left if `fills`.
  bool is_chosen() const { return !ranks_.empty(); }
  void choose(std::int64_t vertex) { set(hot_, vertex); }
  void finish_choice(bool fills);
  void forget_choice();  // of which a part was made

  bool is_hot(std::int64_t vertex) const { return is_set(hot_, vertex); }
  // Of a hot vertex.
  std::int64_t index(std::int64_t vertex) const;
  const std::byte* data() const { return rows_.data(); }
  bool is_here(std::int64_t index) const { return is_set(here_, index); }
  // write(vertex, where its row goes), of the hot ones among [first, end) that aren't here: now
  // they are. Any thread, of vertices of its own.
  template <class Write>
  void bring(std::int64_t first, std::int64_t end, Write&& write) {
    for (std::int64_t vertex = first; vertex < end; ++vertex) {
      if (!is_hot(vertex)) continue;
      const std::int64_t row = index(vertex);
      if (is_here(row)) continue;
      write(vertex, rows_.data() + static_cast<std::size_t>(row) * record_bytes_);
      set(here_, row);
    }
  }

 private:
  using Bits = std::vector<std::uint64_t>;
  static constexpr std::int64_t kWordBits = 64, kRankWords = 8;

  static bool is_set(const Bits& bits, std::int64_t at);
  static void set(Bits& bits, std::int64_t at);

  std::mutex mutex_;
  std::int64_t vertices_;
  std::size_t record_bytes_;
  std::int64_t most_rows_;
  Bits hot_, here_;                   // by vertex, by row
  std::vector<std::uint32_t> ranks_;  // hot vertices before every kRankWords words
  HostBuffer rows_;
};

}  // namespace ooc
