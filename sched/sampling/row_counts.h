// Who of the vertices that batches ask for is hot: one reading of the requests, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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
};

struct RowCounts {
  std::vector<RowStretch> stretches;  // that have words, in order
  std::int64_t least = 0;             // a vertex is hot that so many batches ask for
  std::int64_t hot_rows = 0;
  std::vector<std::int64_t> cold_rows;  // by batch

  std::uint64_t most_words() const;  // of a stretch
};

struct RowCountOptions {
  std::int64_t vertices = 0;
  std::int64_t block_rows = 0;
  std::int64_t hot_rows = 0;       // there is room for
  std::int64_t words_at_once = 0;  // of a stretch, about
};

// The words that reading a stretch has memory for: the runs are cut every 256 of them.
std::int64_t stretch_words(std::int64_t words_at_once, std::int64_t runs);

// One reading of the words does, unless a vertex must have more askers than this to be hot.
std::size_t few_askers(std::size_t batches);

// Hot is who is asked for by at least as many batches as let all of those have room. Nothing
// depends on the workers, of which each has stretch_words() and 1 MiB of counts, or a few for every
// batch. The driver has no other work. None: stopped. Errors of storage pass through.
std::optional<RowCounts> count_rows(Driver& driver, const RowRequests& requests,
                                    const RowCountOptions& options);

}  // namespace ooc
