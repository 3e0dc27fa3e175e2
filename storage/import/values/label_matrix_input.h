// Labels in a matrix, a column a class or a target; and what a table of labels holds.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/control.h"
#include "storage/format/manifest.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

inline constexpr std::int64_t kMaxLabelColumns = 65536;

// What labels are taken for.
enum class LabelChoice {
  kAuto,     // what they are: detect_labels()
  kClasses,  // a column of class indexes
  kOneHot,   // a column a class, one 1 a row
  kMulti,    // a column a class, 0 and 1
  kValues,   // a column a target, any numbers
};
inline constexpr std::array<std::string_view, 5> kLabelChoiceNames = {"auto", "classes", "one-hot",
                                                                      "multi", "values"};

struct DetectedLabels {
  LabelChoice kind = LabelChoice::kClasses;  // or kMulti, kValues
  bool one_hot = false;                      // kMulti, and every labelled row has one 1
};
// Reads the table through where its type doesn't tell, and rewinds. One column is kClasses if its
// numbers are whole, else kValues. A matrix is kMulti if it holds 0, 1, -1 and NaN alone, kValues
// if it holds fractions; DataError, naming an entry, for other whole numbers.
DetectedLabels detect_labels(TableReader& table, const Control& control);

// The next rows as a dataset stores them, row-major: of LabelKind::kMulti bytes, of kValues fp32.
// `labelled`: how many labels each row has.
using LabelSink =
    std::function<void(std::span<const std::byte> rows, std::span<const std::int32_t> labelled)>;

// Streams a table [V, C] of up to kMaxLabelColumns columns. kMulti: 0 and 1 in any type, -1 or NaN
// where an entry has no label. kValues: finite numbers, NaN where there is none. Memory: buffers of
// some MiB. DataError (row, column) for anything else.
void read_label_matrix(TableReader& table, LabelKind kind, const Control& control,
                       const LabelSink& sink);

// The class of each row of a table of 0 and 1; -1 where a row is 0, -1 or NaN throughout. DataError
// (row) for two 1 in a row, or other values.
std::vector<std::int32_t> read_one_hot(TableReader& table, const Control& control);

}  // namespace ooc
