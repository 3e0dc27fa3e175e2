// Features of graphs that have none: computed, not read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/format/vertex_tensor.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

struct ComputedFeatures {
  std::string name;              // as the user writes it: "degrees", "random:16"
  std::int64_t random_cols = 0;  // 0: degrees
};

// Empty where `input` is none of these names. Throws UsageError for random: without a number.
std::optional<ComputedFeatures> parse_computed_features(std::string_view input);

// log(1 + in-degree) and log(1 + out-degree) of each vertex, self loops counted, from a dataset's
// degrees and in their order.
std::unique_ptr<TableReader> degree_features(std::shared_ptr<const VertexTensorFile> degrees);

// Standard normal numbers: each depends on the seed, its row and its column alone.
std::unique_ptr<TableReader> random_features(std::int64_t vertices, std::int64_t cols,
                                             std::uint64_t seed);

}  // namespace ooc
