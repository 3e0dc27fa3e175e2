// `ooc-prep import`: users' arrays become a dataset.
//
// Works within a given memory, whatever the size of the input: edges are sorted outside memory, in
// both directions, and joined (storage/edges/edge_join.h); features stream. Held all the time are a
// label and a split for each vertex and, with an order, 8 bytes. What the input holds is checked
// before the dataset appears under its name; a failure leaves nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/base/control.h"
#include "storage/edges/edge_transforms.h"
#include "storage/format/tensor_layout.h"
#include "storage/import/formats/inputs.h"
#include "storage/import/remapped_vertices.h"
#include "storage/import/rows/computed_features.h"
#include "storage/import/rows/features_input.h"
#include "storage/import/rows/vertex_order.h"
#include "storage/import/values/findings.h"
#include "storage/import/values/label_matrix_input.h"
#include "storage/import/values/random_split.h"

namespace ooc {

// The values of the options, in the order of their enums.
inline constexpr std::array<std::string_view, 3> kSelfLoopsNames = {"keep", "add-remaining",
                                                                    "drop"};
inline constexpr std::array<std::string_view, 5> kCoalesceNames = {"keep", "first", "sum", "mean",
                                                                   "max"};
inline constexpr std::array<std::string_view, 5> kVertexOrderNames = {"natural", "random", "degree",
                                                                      "balanced", "metis"};

struct ImportOptions {
  ImportInputs inputs;                                // only edges must be there
  std::optional<ComputedFeatures> computed_features;  // instead of inputs.features
  // Empty: the rows of the features, else of the labels, else the largest id in the edges + 1.
  std::optional<std::int64_t> vertices;
  // The ids in edges and lists of splits are any 64-bit integers or, in text, strings: the vertices
  // are those that the edges name, or that `rows` lists.
  bool remap_ids = false;
  RowIds rows;
  EdgeTransforms edges;
  LabelChoice label_kind = LabelChoice::kAuto;
  std::optional<std::int64_t> split_index;  // of masks that hold several splits
  // Splits made here; not together with split files.
  std::optional<SplitShares> split_shares;
  std::uint64_t split_seed = 0;
  std::string unlabelled;             // a word more that says so in labels that are text
  Missing missing = Missing::kError;  // what stands for features that are NaN, or empty in text
  FeatureNorm feature_norm = FeatureNorm::kNone;
  std::optional<FeatureScaling> scaling;  // instead of these two, as another graph's
  DType dtype = DType::kF32;              // of the stored features: fp32, fp16, bf16
  VertexOrder order = VertexOrder::kNatural;
  std::uint64_t seed = 0;                       // of the random order, of random features
  std::int64_t block_rows = kDefaultBlockRows;  // a power of two, at most kMaxBlockRows
  std::int64_t memory_bytes = 0;                // 0: default_import_memory()
  bool force = false;                           // replace a dataset that is there
};

// Writes the dataset `output`. Throws UsageError for options that make no sense and an output that
// exists, DataError for the input, BudgetError where memory_bytes do not suffice, IoError for the
// disk, Interrupted.
Findings import_dataset(FileSystem& files, const ImportOptions& options, const std::string& output,
                        const Control& control);

}  // namespace ooc
