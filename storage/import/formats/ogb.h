// The raw directories that OGB's downloads unpack to, for node property prediction:
//   raw/edge.csv.gz                    edges
//   raw/node-feat.csv.gz               features, if there
//   raw/node-label.csv.gz              labels, if there; several columns are several labels
//   raw/edge-feat.csv.gz               edge features, if there
//   raw/num-node-list.csv.gz           the vertex count
//   split/NAME/{train,valid,test}.csv.gz
// and that of ogbn-papers100M, where raw/data.npz (edge_index, node_feat, edge_feat,
// num_nodes_list) and raw/node-label.npz (node_label, NaN where unlabelled) stand for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "storage/import/formats/inputs.h"
#include "storage/io/file.h"

namespace ooc {

struct OgbInputs {
  ImportInputs inputs;
  std::optional<std::int64_t> vertices;
};

// What `named` already has wins. Without `split_name` the only split there is taken. Throws
// DataError where raw/ or its edges are missing, there are several splits to choose from or not the
// one that is named, or the directory holds several graphs.
OgbInputs find_ogb_inputs(FileSystem& files, const std::string& directory,
                          const std::string& split_name, ImportInputs named);

}  // namespace ooc
