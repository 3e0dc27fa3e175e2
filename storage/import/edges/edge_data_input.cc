#include "storage/import/edges/edge_data_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "storage/base/errors.h"
#include "storage/import/rows/features_input.h"

namespace ooc {
namespace {

std::unique_ptr<TableReader> open_column(FileSystem& files, const std::string& input,
                                         std::string_view what) {
  if (input.empty()) return nullptr;
  auto table = open_table(files, input);
  if (table->cols() == 1 || (table->cols() == 0 && table->rows() == 0)) return table;
  refuse_columns(*table, fmt::format("edge {} need", what),
                 table->stated_vertices() ? "the values of a matrix's entries are FILE.mtx:values"
                                          : "save one value an edge");
}

}  // namespace

EdgeDataTables open_edge_data(FileSystem& files, const ImportInputs& inputs) {
  EdgeDataTables tables;
  tables.weights = open_column(files, inputs.edge_weights, "weights");
  tables.types = open_column(files, inputs.edge_types, "types");
  if (!inputs.edge_features.empty()) {
    tables.features = open_table(files, inputs.edge_features);
    check_feature_cols(*tables.features);
    if (tables.features->cols() > kMaxEdgeFeatureCols) {
      throw DataError(fmt::format("{} features an edge", tables.features->cols()),
                      tables.features->name(),
                      fmt::format("at most {} are possible", kMaxEdgeFeatureCols));
    }
  }
  return tables;
}

std::int64_t read_edge_floats(TableReader& table, std::int64_t first_row, std::span<float> out) {
  const std::int64_t count = table.read(out);
  const std::int64_t cols = table.cols();
  for (std::int64_t i = 0; i < count * cols; ++i) {
    if (std::isfinite(out[i])) continue;
    const std::string column = cols > 1 ? fmt::format(", column {}", i % cols) : "";
    throw DataError(fmt::format("{} is not finite", out[i]),
                    table.where(first_row + i / cols) + column, "correct the value");
  }
  return count;
}

std::int64_t read_edge_types(TableReader& table, std::int64_t first_row,
                             std::span<std::uint16_t> out) {
  std::array<std::int64_t, 4096> block;
  std::int64_t done = 0;
  const auto wanted = static_cast<std::int64_t>(out.size());
  while (done < wanted) {
    const auto part =
        static_cast<std::size_t>(std::min(wanted - done, static_cast<std::int64_t>(block.size())));
    const std::int64_t count = table.read(std::span(block).first(part));
    if (count == 0) break;
    for (std::int64_t i = 0; i < count; ++i, ++done) {
      if (block[i] < 0 || block[i] >= kMaxEdgeTypes) {
        throw DataError(fmt::format("edge type {} is out of range", block[i]),
                        table.where(first_row + done),
                        fmt::format("types go from 0 to {}", kMaxEdgeTypes - 1));
      }
      out[done] = static_cast<std::uint16_t>(block[i]);
    }
  }
  return done;
}

}  // namespace ooc
