// Which file plays which part in an import.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/io/file.h"

namespace ooc {

// Names as open_table() takes them; empty where there is none.
struct ImportInputs {
  std::string edges;
  // One row an edge, in the edges' order (edge_data_input.h).
  std::string edge_weights;
  std::string edge_types;
  std::string edge_features;
  std::string features;
  std::string labels;
  std::string train;
  std::string valid;
  std::string test;
  // The names of the classes, one in a line.
  std::string class_names;
  // The id of each row of features, labels and masks, where ids are remapped.
  std::string ids;
  // Names of other files of arrays beside those that discover_inputs() found.
  std::vector<std::string> unused;

  // All parts, those without a file too.
  std::array<std::string*, 11> all() {
    return {&edges, &edge_weights, &edge_types, &edge_features, &features,   &labels,
            &train, &valid,        &test,       &ids,           &class_names};
  }
};

// Finds the inputs in a directory by the usual names: edges.* (edge_index.*),
// features.* (x.*, feat.*, node_feat.*), labels.* (y.*), class_names.txt, train_idx.* /
// train_mask.*, and so for valid (val) and test, edge_weights.*, edge_types.*, edge_features.*,
// ids.*. What `named` already has wins. Throws DataError where two files could play one part, one
// is of a kind that cannot be read, or the directory is none.
ImportInputs discover_inputs(FileSystem& files, const std::string& directory, ImportInputs named);

// Says what the one headerless input holds (raw.h): a .bin, a .npy that does not start with NumPy's
// magic, or a name of no known kind. `dtype` and `columns` are what --raw-dtype and --raw-columns
// say. Throws UsageError for a type that is none, and where no input is headerless or several are:
// then each says it beside its name.
void apply_raw_format(FileSystem& files, ImportInputs& inputs, const std::string& dtype,
                      std::int64_t columns);

}  // namespace ooc
