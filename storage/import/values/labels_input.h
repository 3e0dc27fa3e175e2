// Reads class labels and splits, one value per vertex, and checks them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/ids/original_ids.h"
#include "storage/import/ids/string_ids.h"

namespace ooc {

// One class index a vertex, -1 or NaN where unlabelled; [V] or [V, 1], integers or integral floats.
// Throws DataError (row, value) for a value below -1, for a class at or above both 65,536 and V,
// and for a table that is not one column wide (multi-label).
std::vector<std::int32_t> read_labels(TableReader& table, const Control& control);

// What lists of vertices hold: dense ids where both are null. With `strings` their tables give
// dense ids already (id_table.h), and messages name the strings.
struct ListedIds {
  OriginalIds* integers = nullptr;
  const StringIds* strings = nullptr;
};

// Whether a split is a mask, not a list.
bool is_mask(const TableReader& table);

// The tables of train, valid and test, in this order; null where there is none.
using SplitTables = std::array<std::unique_ptr<TableReader>, 3>;

// One byte a vertex, a value of enum Split. Each table is a list of vertex ids, or a mask:
// booleans, or 0/1 in a file named *_mask.* or *_masks.*. `labels` is empty where the graph has
// none. `ids` says what lists hold. Throws DataError for an id out of range or listed twice, a
// vertex in two splits or without a label, an empty split.
std::vector<std::uint8_t> read_splits(const SplitTables& tables, std::int64_t vertices,
                                      std::span<const std::int32_t> labels, const ListedIds& ids,
                                      const Control& control);

}  // namespace ooc
