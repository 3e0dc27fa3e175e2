// Masks that hold several splits of one graph side by side.
#pragma once

#include <cstdint>
#include <optional>

#include "storage/import/values/labels_input.h"

namespace ooc {

// Replaces each mask of several columns, [V, S] or [S, V], by its split `index`, of 0 to S - 1. The
// shorter side is S. What has one column stays, and so do lists. DataError for a square mask, and
// where `index` is needed and isn't given; UsageError for one that is too large, or of no use.
void choose_splits(SplitTables& tables, std::optional<std::int64_t> index);

}  // namespace ooc
