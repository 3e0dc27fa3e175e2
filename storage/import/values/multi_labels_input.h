// Labels in a matrix: any number of C classes a vertex.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "storage/base/control.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

inline constexpr std::int64_t kMaxMultiLabels = 65536;

struct MultiLabels {
  std::int64_t classes = 0;
  std::vector<std::uint8_t> labelled;  // one byte a vertex: 1, or 0 where it has no labels
};

// Takes rows in order, row-major, `classes` bytes of 0 or 1 each; kUnlabelled throughout for an
// unlabelled vertex.
using MultiLabelSink = std::function<void(std::span<const std::uint8_t> rows)>;

// Streams a table [V, C], C > 1, of 0 and 1 in any type; a row of NaN or of -1 throughout is an
// unlabelled vertex. Memory: a buffer of some MiB and a byte a vertex. Throws DataError (row,
// column) for other values, a row that is NaN or -1 only in part, and more than kMaxMultiLabels
// columns.
MultiLabels read_multi_labels(TableReader& table, const Control& control,
                              const MultiLabelSink& sink);

}  // namespace ooc
