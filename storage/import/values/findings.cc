#include "storage/import/values/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace ooc {
namespace {

constexpr std::size_t kMostListed = 10;
constexpr double kNearlyAll = 0.9;

std::string class_name(const Findings& findings, std::size_t index) {
  return findings.class_names.empty() ? fmt::to_string(index) : findings.class_names[index];
}

// The largest classes, largest first.
std::vector<std::size_t> largest_classes(const Findings& findings) {
  const auto& counts = findings.class_counts;
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
  order.resize(std::min(order.size(), kMostListed));
  return order;
}

nlohmann::ordered_json counts_to_json(const Findings& findings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto& counts = findings.class_counts;
  std::int64_t others = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (const std::size_t index : largest_classes(findings)) {
    json[class_name(findings, index)] = counts[index];
    others -= counts[index];
  }
  if (counts.size() > kMostListed) {
    json[fmt::format("{} others", counts.size() - kMostListed)] = others;
  }
  return json;
}

}  // namespace

void warn_of_classes(Findings& findings) {
  const auto& counts = findings.class_counts;
  const auto empty = std::count(counts.begin(), counts.end(), 0);
  if (empty > 0) {
    findings.warnings.push_back(
        fmt::format("{} of the {} classes have no vertex", empty, counts.size()));
  }
  const std::int64_t labelled = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (labelled == 0 || counts.size() - static_cast<std::size_t>(empty) < 2) return;
  const std::size_t first = largest_classes(findings).front();
  const double share = static_cast<double>(counts[first]) / static_cast<double>(labelled);
  if (share <= kNearlyAll) return;
  findings.warnings.push_back(fmt::format(
      "{:.1f} % of the labelled vertices are of class {}: naming it always is that accurate; train "
      "with --metric {} --class-weights balanced",
      100 * share, class_name(findings, first),
      counts.size() == 2 ? "ap --task binary" : "macro_f1"));
}

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
  if (!findings.class_counts.empty()) json["class_counts"] = counts_to_json(findings);
  json["unlabelled"] = findings.unlabelled;
  if (findings.missing_labels > 0) json["missing_labels"] = findings.missing_labels;
  json["splits"] = {{"train", findings.split_counts[0]},
                    {"valid", findings.split_counts[1]},
                    {"test", findings.split_counts[2]}};
  json["warnings"] = findings.warnings;
  return json;
}

}  // namespace ooc
