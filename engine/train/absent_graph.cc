#include "engine/train/absent_graph.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "storage/base/errors.h"
#include "storage/format/tile.h"
#include "storage/import/importer.h"

namespace ooc {
namespace {

constexpr const char* kTakes =
    "it takes vertices=N,edges=N,features=N,classes=N and, if need be, train=N, "
    "feature-bytes=4|2, block-rows=N, edge-types=N, edge-features=N, edge-weights=1, symmetric=1, "
    "multi-label=1";

// "1.5G" is 1,500,000,000.
std::optional<std::int64_t> count_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  static const std::map<std::string, double> kUnits{{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}};
  if (error != std::errc{} || !kUnits.contains(unit)) return std::nullopt;
  const double product = number * kUnits.at(unit), count = std::round(product);
  if (!(count >= 0 && count < 1e15)) return std::nullopt;
  if (std::abs(product - count) > 1e-9 * count) return std::nullopt;  // 4.1 * 1e6 isn't whole
  return static_cast<std::int64_t>(count);
}

std::map<std::string, std::int64_t> counts_in(const std::string& list) {
  std::map<std::string, std::int64_t> counts{
      {"train", 0},      {"feature-bytes", 4}, {"block-rows", kDefaultBlockRows},
      {"edge-types", 0}, {"edge-features", 0}, {"edge-weights", 0},
      {"symmetric", 0},  {"multi-label", 0},   {"vertices", 0},
      {"edges", 0},      {"features", 0},      {"classes", 0}};
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const auto count =
        equals == std::string::npos ? std::nullopt : count_of(word.substr(equals + 1));
    if (!counts.contains(key) || !count) {
      throw UsageError("wrong value for --graph", fmt::format("'{}'", word), kTakes);
    }
    counts[key] = *count;
  }
  for (const char* key : {"vertices", "edges", "features", "classes", "block-rows"}) {
    if (counts.at(key) > 0) continue;
    throw UsageError("wrong value for --graph", fmt::format("{} is missing", key), kTakes);
  }
  if (counts.at("feature-bytes") == 4 || counts.at("feature-bytes") == 2) return counts;
  throw UsageError("wrong value for --graph",
                   fmt::format("feature-bytes={}", counts.at("feature-bytes")), kTakes);
}

// Of a direction's edge chunks, if edges are drawn evenly: the tiles' better encoding.
std::int64_t bytes_of_edges(const EdgeLayout& edges) {
  const auto tiles = static_cast<double>(edges.span_count() * edges.block_count());
  const double in_tile = static_cast<double>(edges.edges) / tiles;
  const auto rows = static_cast<double>(edges.block_rows);
  const double hit = rows * -std::expm1(-in_tile / rows);
  const auto whole = [](double count) { return static_cast<std::uint64_t>(std::llround(count)); };
  const std::uint64_t encoded =
      std::min(tile_bytes(TileEncoding::kRuns, whole(in_tile), whole(hit), 0),
               tile_bytes(TileEncoding::kPairs, whole(in_tile), 0, 0));
  const auto data = static_cast<double>(tile_data_bytes(edges.data, whole(in_tile)));
  return std::llround(tiles * (static_cast<double>(encoded) + data));
}

}  // namespace

AbsentGraph absent_graph(const std::string& list, std::optional<Task> task) {
  const std::map<std::string, std::int64_t> counts = counts_in(list);
  check_block_rows(counts.at("block-rows"));
  AbsentGraph graph;
  graph.facts.vertices = counts.at("vertices");
  graph.facts.feature_cols = counts.at("features");
  graph.facts.classes = counts.at("classes");
  graph.counts.train_vertices =
      counts.at("train") > 0 ? counts.at("train") : std::max<std::int64_t>(1, graph.facts.vertices);
  graph.facts.edge_types = counts.at("edge-types");
  graph.facts.edge_features = counts.at("edge-features");
  graph.facts.edge_weights = counts.at("edge-weights") > 0;
  graph.labels = labels_of(task.value_or(Task::kSingle));
  if (counts.at("multi-label") > 0) graph.labels = LabelKind::kMulti;
  graph.facts.train_labels =
      graph.counts.train_vertices * label_cols(graph.labels, graph.facts.classes);
  if (counts.at("feature-bytes") == 2) graph.counts.stored_dtypes["features"] = DType::kBF16;
  graph.counts.symmetric = counts.at("symmetric") > 0;
  EdgeLayout& edges = graph.counts.edges;
  edges = choose_edge_layout(graph.facts.vertices, counts.at("edges"), counts.at("block-rows"));
  edges.data = {graph.facts.edge_weights, graph.facts.edge_types > 0, graph.facts.edge_features};
  graph.counts.in.bytes = graph.counts.out.bytes = bytes_of_edges(edges);
  return graph;
}

}  // namespace ooc
