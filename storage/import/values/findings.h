// What import found in the input and what it stored.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "storage/edges/edge_transforms.h"
#include "storage/format/manifest.h"

namespace ooc {

struct Findings {
  std::int64_t vertices = 0;
  std::string vertices_from;  // "the rows of x.npy"
  EdgeFindings input;
  std::int64_t input_without_in_edges = 0;  // vertices; a self loop is an in-edge
  std::int64_t stored_edges = 0;
  std::int64_t stored_without_in_edges = 0;
  std::int64_t feature_cols = 0;
  std::optional<LabelKind> labels;
  std::int64_t classes = 0;                // of values, targets
  std::vector<std::int64_t> class_counts;  // vertices of each, where labels are single
  std::vector<std::string> class_names;    // empty: numbers
  std::int64_t unlabelled = 0;             // vertices
  std::int64_t missing_labels = 0;         // entries of the other vertices, of labels in a matrix
  std::array<std::int64_t, 3> split_counts = {};
  std::vector<std::string> warnings;  // one sentence each
};

// Of classes without a vertex, and of one that nearly all vertices have.
void warn_of_classes(Findings& findings);

// The findings as facts for people, for --json and for the manifest.
nlohmann::ordered_json findings_to_json(const Findings& findings);

}  // namespace ooc
