// Streams features as fp32 rows, checked and normalised on the way.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "storage/base/control.h"
#include "storage/format/feature_scaling.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/rows/id_column.h"

namespace ooc {

enum class FeatureNorm {
  kNone,
  kRow,       // each row divided by the sum of its absolute values; a zero row stays
  kL2,        // each row divided by its Euclidean length; a zero row stays
  kStandard,  // each column to mean 0 and deviation 1 over all vertices; a constant one to 0
};

// What stands for NaN.
enum class Missing { kError, kAsZero, kAsMean };

// The words of options, in the order of the enums.
inline constexpr std::array<std::string_view, 4> kFeatureNormNames = {"none", "row", "l2",
                                                                      "standard"};
inline constexpr std::array<std::string_view, 3> kMissingNames = {"error", "zero", "mean"};

inline constexpr std::int64_t kMaxFeatureCols = 1 << 20;  // a row is at most a buffer

// Throws DataError where there are no columns, or more than kMaxFeatureCols.
void check_feature_cols(const TableReader& table);

class FeatureStream {
 public:
  // `table` must outlive the stream. kStandard and Missing::kAsMean read it through once, here.
  FeatureStream(TableReader& table, FeatureNorm norm, Missing missing, const Control& control);
  // As another graph's features were treated: reads nothing. DataError for another number of
  // columns.
  FeatureStream(TableReader& table, const FeatureScaling& scaling);

  FeatureScaling scaling() const;
  // Of what was read since the start.
  const IdColumn& id_column() const { return id_column_; }

  std::int64_t cols() const { return table_.cols(); }
  // The next rows before they are normalised. Throws DataError (row, column) for infinities and,
  // with Missing::kError, for NaN. One thread.
  std::int64_t read(std::span<float> out);
  // Normalises rows that read() gave, in place. Many threads.
  void normalise(std::span<float> rows) const;

 private:
  void replace_missing(std::span<float> values) const;
  [[noreturn]] void refuse(std::span<const float> values, std::int64_t place);
  void measure(const Control& control);

  TableReader& table_;
  FeatureNorm norm_;
  Missing missing_;
  std::int64_t row_ = 0;
  IdColumn id_column_;
  std::vector<double> mean_;   // kStandard, kAsMean: of the values that are there
  std::vector<double> scale_;  // kStandard: 1 / deviation
};

}  // namespace ooc
