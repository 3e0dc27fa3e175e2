// manifest.json of a dataset: what it holds, how it is cut and where it comes from. Its last member
// is the XXH3-64 of everything before it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "storage/chunk_file.h"
#include "storage/edge_file.h"

namespace ooc {

struct Manifest {
  EdgeLayout edges;        // vertices, edges and how both directions are cut
  bool symmetric = false;  // edges.in serves both directions
  std::int64_t feature_cols = 0;
  std::int64_t classes = 0;  // 0: no labels
  // Vertices in train, valid and test; all zero: no splits.
  std::int64_t split_counts[3] = {0, 0, 0};
  std::string order = "natural";
  nlohmann::ordered_json transforms;  // what import was asked for
  nlohmann::ordered_json findings;    // what it found
  std::map<std::string, ChunkFileInfo> files;
  std::string checksum;  // identifies the dataset; set where a manifest was read
};

// Whether a dataset can be cut like this, without any count of chunks that overflows.
bool is_possible(const EdgeLayout& layout);

std::string manifest_to_text(const Manifest& manifest);
// DataError: not a manifest, another format version, a wrong checksum, a member missing or wrong.
Manifest manifest_from_text(const std::string& text, const std::string& path);

}  // namespace ooc
