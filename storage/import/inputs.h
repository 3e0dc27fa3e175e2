// Which file plays which part in an import.
#pragma once

#include <string>
#include <vector>

#include "storage/file.h"

namespace ooc {

// Paths, or "path.npz:member"; empty where there is none.
struct ImportInputs {
  std::string edges;
  std::string edge_weights;
  std::string edge_types;
  std::string edge_features;
  std::string features;
  std::string labels;
  std::string train;
  std::string valid;
  std::string test;
  // Files of the convention that this version does not store (weights, types, edge features).
  std::vector<std::string> ignored;
};

// Finds the inputs in a directory by the names interfaces.md lists: edges.* (edge_index.*),
// features.* (x.*, feat.*, node_feat.*), labels.* (y.*), train_idx.* / train_mask.*, and so for
// valid (val) and test. What `named` already has wins. Throws DataError where two files could play
// one part, one is of a kind that cannot be read, or the directory is none.
ImportInputs discover_inputs(FileSystem& files, const std::string& directory, ImportInputs named);

}  // namespace ooc
