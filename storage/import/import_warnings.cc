#include "storage/import/import_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace ooc {

void warn_of_unused(const ImportInputs& inputs, Findings& findings) {
  if (inputs.unused.empty()) return;
  findings.warnings.emplace_back(fmt::format(
      "beside {} nothing was taken from {}: if they should play a part, name it, such as "
      "--features FILE",
      inputs.edges, fmt::join(inputs.unused, ", ")));
}

bool begins_with_numbers(TableReader& table) {
  constexpr std::int64_t kFew = 3;  // columns, where such a row is no surprise
  if (!is_text_name(table.name()) || table.cols() < kFew) return false;
  std::vector<float> row(static_cast<std::size_t>(table.cols()));
  const bool any = table.read(std::span(row)) == 1;
  table.rewind();
  for (std::size_t col = 0; col < row.size(); ++col) {
    if (!any || row[col] != static_cast<float>(col)) return false;
  }
  return true;
}

void warn_of_header(TableReader& table, Findings& findings) {
  if (!begins_with_numbers(table)) return;
  findings.warnings.emplace_back(fmt::format(
      "the first row of {} is 0, 1, 2 and so on: if it is a header, take it out", table.name()));
}

void warn_of_directions(const EdgeCounts& counts, bool undirected, Findings& findings) {
  if (counts.given.edges == 0) findings.warnings.emplace_back("there are no edges");
  if (undirected || counts.given.distinct == 0 || counts.given.reciprocal > 0) return;
  findings.warnings.emplace_back(
      "no edge has its reverse: if the graph is undirected, import it with --undirected");
}

void warn_of_weights(const WeightSigns& signs, const EdgeCounts& counts, Findings& findings) {
  if (signs.negative == 0 && signs.zero == 0) return;
  findings.warnings.emplace_back(fmt::format(
      "of the {} weights of edges {} are negative and {} are 0: models that take weights take "
      "them as they are",
      counts.given.edges, signs.negative, signs.zero));
}

void warn_of_gaps(const EdgeCounts& counts, const std::string& edges, Findings& findings) {
  if (counts.given_without_edges == 0) return;
  findings.warnings.emplace_back(fmt::format(
      "{} of the {} vertices are in no edge, only between the ids 0 and {} in {}: if ids "
      "start at 1 or are any numbers, import with --remap-ids",
      counts.given_without_edges, findings.vertices, findings.vertices - 1, edges));
}

}  // namespace ooc
