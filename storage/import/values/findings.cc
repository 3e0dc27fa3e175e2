#include "storage/import/values/findings.h"

#include <nlohmann/json.hpp>

namespace ooc {

nlohmann::ordered_json findings_to_json(const Findings& findings) {
  nlohmann::ordered_json json;
  json["vertices"] = findings.vertices;
  json["vertices_from"] = findings.vertices_from;
  json["input"] = {{"edges", findings.input.edges},
                   {"reciprocal_share", findings.input.reciprocal_share()},
                   {"self_loops", findings.input.self_loops},
                   {"duplicates", findings.input.duplicates},
                   {"vertices_without_in_edges", findings.input_without_in_edges}};
  json["stored"] = {{"edges", findings.stored_edges},
                    {"vertices_without_in_edges", findings.stored_without_in_edges}};
  json["features"] = findings.feature_cols;
  if (findings.labels) json["labels"] = kLabelKindNames[static_cast<std::size_t>(*findings.labels)];
  json[findings.labels == LabelKind::kValues ? "targets" : "classes"] = findings.classes;
  json["unlabelled"] = findings.unlabelled;
  if (findings.missing_labels > 0) json["missing_labels"] = findings.missing_labels;
  json["splits"] = {{"train", findings.split_counts[0]},
                    {"valid", findings.split_counts[1]},
                    {"test", findings.split_counts[2]}};
  json["warnings"] = findings.warnings;
  return json;
}

}  // namespace ooc
