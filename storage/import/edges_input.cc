#include "storage/import/edges_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kBlockEdges = 64 << 10;
constexpr std::int64_t kCredibleVertices = 1'000'000;  // always; beyond, 1000 for every edge

// Makes the table [E, 2] where it is [2, E].
void orient(TableReader& table) {
  if (table.cols() == 2) return;
  if (table.rows() == 0 && table.cols() == 0) return;  // an empty text file
  if (table.rows() == 2 && table.transpose()) return;
  const std::string_view remedy =
      !is_text_name(table.name()) ? "save them as [E, 2] or [2, E]"
      : table.cols() > 2 ? "keep the first two columns: edge weights are not stored by this version"
                         : "write a source and a destination in every line";
  throw DataError(
      fmt::format("edges need two columns, source and destination, not {}", table.cols()),
      fmt::format("{}, shape ({}, {})", table.name(), table.rows(), table.cols()), remedy);
}

[[noreturn]] void refuse_id(TableReader& table, std::int64_t row, VertexId id,
                            std::optional<std::int64_t> vertices) {
  const std::string what = id < 0 ? fmt::format("vertex id {} is negative", id)
                                  : fmt::format("vertex id {} is not below the vertex count {}", id,
                                                vertices.value_or(0));
  throw DataError(what, table.where(row), "ids go from 0 to the vertex count less one");
}

}  // namespace

std::vector<Edge> read_edges(TableReader& table, std::optional<std::int64_t> vertices,
                             const Control& control) {
  orient(table);
  std::vector<Edge> edges;
  const std::int64_t total = table.known_rows().value_or(0);
  edges.reserve(static_cast<std::size_t>(total));
  std::vector<std::int64_t> block(2 * kBlockEdges);
  const std::int64_t limit = vertices.value_or(std::numeric_limits<std::int64_t>::max());
  while (const std::int64_t count = table.read(std::span<std::int64_t>(block))) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Edge edge{block[2 * i], block[2 * i + 1]};
      for (const VertexId id : {edge.source, edge.destination}) {
        if (id < 0 || id >= limit) {
          refuse_id(table, static_cast<std::int64_t>(edges.size()), id, vertices);
        }
      }
      edges.push_back(edge);
    }
    control.step("reading edges", static_cast<double>(edges.size()), static_cast<double>(total));
  }
  return edges;
}

std::int64_t vertices_of_edges(const std::vector<Edge>& edges, const std::string& name) {
  VertexId largest = -1;
  for (const Edge& edge : edges) largest = std::max({largest, edge.source, edge.destination});
  const auto count = static_cast<std::int64_t>(edges.size());
  if (largest >= std::max(kCredibleVertices, 1000 * count)) {
    throw DataError(fmt::format("the largest vertex id {} does not fit {} edges", largest, count),
                    name, "give the vertex count with --vertices if that is meant");
  }
  return largest + 1;
}

}  // namespace ooc
