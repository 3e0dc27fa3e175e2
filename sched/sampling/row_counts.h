// Who of the vertices that batches ask for is hot, and whose rows are read: readings of the
// requests, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sched/sampling/hot_rows.h"
#include "sched/sampling/key_fields.h"
#include "sched/workers/driver.h"
#include "storage/edges/sorted_runs.h"

namespace ooc {

// Every vertex of every batch, once: `words` are finished, of keys (vertex, batch, the vertex'
// number in the batch), without data. A batch's numbers are 0 to batch_rows - 1. What it refers to
// outlives its users.
struct RowRequests {
  const SortedRuns& words;
  KeyFields fields;
  std::span<const std::int64_t> batch_rows;

  std::int64_t batches() const { return static_cast<std::int64_t>(batch_rows.size()); }
  // Of vertices [first, end).
  void read(std::int64_t first, std::int64_t end, Records& out) const {
    words.read(fields.begin(static_cast<std::uint64_t>(first)),
               fields.last(static_cast<std::uint64_t>(end - 1)), out);
  }
  // visit(vertex, its words), in order.
  template <class Visit>
  void for_each_vertex(std::span<const std::uint64_t> keys, Visit&& visit) const {
    for (std::size_t i = 0; i < keys.size();) {
      const std::uint64_t vertex = fields.first(keys[i]);
      std::size_t end = i + 1;
      while (end < keys.size() && fields.first(keys[end]) == vertex) ++end;
      visit(static_cast<std::int64_t>(vertex), keys.subspan(i, end - i));
      i = end;
    }
  }
};

// Vertices of one block with few requests, or one vertex.
struct RowStretch {
  std::int64_t first = 0, end = 0;
  std::uint64_t words = 0;
  bool is_read = false;  // rows of it: cold ones, or hot ones that aren't here
};

struct RowCounts {
  std::vector<RowStretch> stretches;    // that have words, in order
  std::int64_t hot_rows = 0;            // that batches ask for
  std::vector<std::int64_t> cold_rows;  // by batch

  std::uint64_t most_words() const;  // of a stretch
};

struct RowCountOptions {
  std::int64_t vertices = 0;
  std::int64_t block_rows = 0;
  std::int64_t words_at_once = 0;  // of a stretch, about
};

// The words that reading a stretch has memory for: the runs are cut every 256 of them.
std::int64_t stretch_words(std::int64_t words_at_once, std::int64_t runs);

// Chooses who is hot unless that is done, by two or three readings more: those asked for by as many
// batches as let all of them have room, then of those with one asker fewer the first stretches,
// and anyone where all who are asked for have room.
//
// Nothing depends on the workers, of which each has stretch_words() and a count or two for every
// batch. The driver has no other work, and the caller has the hot rows' lock. None: stopped. Errors
// of storage pass through.
std::optional<RowCounts> count_rows(Driver& driver, const RowRequests& requests,
                                    const RowCountOptions& options, HotRows& hot);

}  // namespace ooc
