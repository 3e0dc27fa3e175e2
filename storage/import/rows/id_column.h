// Whether the first column of a table holds the vertices' ids, as tables of others often do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "storage/base/counter_random.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

// Looks for whole numbers, each once: 0 to V - 1 in any order, or ascending ones. As fp32 has them:
// beyond 2^24 several ids in a row are one number. Once that is refuted, looking costs nothing.
class IdColumn {
 public:
  // The next rows, row-major, of `cols` columns.
  void look(std::span<const float> rows, std::int64_t cols);
  // Of the rows so far; false where they are few.
  bool found() const;

 private:
  void take(float value);

  std::int64_t rows_ = 0;
  bool whole_ = true;
  bool ascending_ = true;
  float last_ = 0;
  std::int64_t repeats_ = 0;  // of last_
  // The hashes of the numbers less those of 0 to rows_ - 1: 0 where both are the same.
  std::uint64_t difference_ = 0;
  CounterRandom hash_{0, 0x4944};
};

// Whether the first of several columns seems to hold ids: its header says so, or `column` found
// them. Not where the user chose the columns.
bool seems_to_hold_ids(const TableReader& table, const IdColumn& column);

// What to do then, with a table of `part`: "features", "labels".
std::string id_column_remedy(const TableReader& table, std::string_view part);

// The warning, where it seems so; else empty.
std::string id_column_warning(const TableReader& table, std::string_view part,
                              const IdColumn& column);

}  // namespace ooc
