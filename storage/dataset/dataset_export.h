// `ooc-prep export`: a dataset's arrays as .npy, under the names that import finds by itself:
//
//   edges.npy      int64 [E, 2], original ids, in the order the edges are stored in
//   edge_weights.npy fp32 [E], edge_types.npy int64 [E], edge_features.npy fp32 [E, F]: those that
//                  the edges carry, in the same order
//   features.npy   fp32 [V, F], whatever type they are stored in
//   labels.npy     int64 [V], or int8 [V, C] of 0 and 1 where labels are multi-label; -1:
//                  unlabelled. Values: fp32 [V] or [V, T]; NaN: unlabelled
//   class_names.txt  the names of the classes where they have some, one in a line
//   train_idx.npy, valid_idx.npy, test_idx.npy   int64, ascending; one that would be empty is left
//                  out
//   ids.npy        int64 [V], ascending: the id of each row, where ids were remapped at import
//
// Where ids are strings, text instead, UTF-8: edges.csv with a header; train_idx.csv and so on, one
// id in a line; fields in quotes where they hold separators, quotes or '#'; ids.txt, one id in a
// line, as it is.
//
// Rows are in the original vertex order. Values are those after import's transforms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/dataset/dataset.h"
#include "storage/io/npy_file.h"

namespace ooc {

struct ExportOptions {
  std::string output;             // the directory to make
  bool force = false;             // replace one that an earlier export made
  std::int64_t memory_bytes = 0;  // for buffers; the dataset itself is mapped
};

struct ExportedArray {
  std::string name;
  NpyShape shape;  // no `descr`: lines of text
};

// The least memory an export takes, besides a few rows of features.
inline constexpr std::int64_t kLeastExportBytes = 1 << 20;

// The directory appears when it is complete. UsageError: see storage/io/output_directory.h;
// BudgetError: too little memory for a row; DataError: the dataset is damaged.
std::vector<ExportedArray> export_dataset(FileSystem& files, const Dataset& dataset,
                                          const ExportOptions& options,
                                          const Control& control = {});

}  // namespace ooc
