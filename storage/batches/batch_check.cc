#include "storage/batches/batch_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

namespace ooc {
namespace {

template <class T>
std::span<const T> elements(const std::byte* rows, std::int64_t count) {
  return {reinterpret_cast<const T*>(rows), static_cast<std::size_t>(count)};
}

std::string check_counts(const BatchView& batch, const BatchesManifest& manifest) {
  const std::vector<std::int64_t>& most = manifest.most_rows;
  for (std::size_t level = 0; level < most.size(); ++level) {
    if (batch.level_rows[level] > most[level]) {
      return fmt::format("{} vertices up to level {}, the manifest says {} at most",
                         batch.level_rows[level], level, most[level]);
    }
  }
  const auto edges = static_cast<std::int64_t>(batch.edges.size());
  if (edges <= manifest.most_edges) return "";
  return fmt::format("{} edges, the manifest says {} at most", edges, manifest.most_edges);
}

// An edge into a level comes from that level, one before or the next.
std::string check_edges(const BatchView& batch) {
  std::size_t level = 0;
  BatchEdge last;
  for (std::size_t i = 0; i < batch.edges.size(); ++i) {
    const BatchEdge& edge = batch.edges[i];
    if (std::tie(edge.destination, edge.source) < std::tie(last.destination, last.source)) {
      return fmt::format("edge {} is out of order", i);
    }
    last = edge;
    while (level + 1 < batch.level_rows.size() && edge.destination >= batch.level_rows[level]) {
      ++level;
    }
    if (level + 1 == batch.level_rows.size() || edge.source >= batch.level_rows[level + 1]) {
      return fmt::format("edge {} from {} to {} is beyond its level", i, edge.source,
                         edge.destination);
    }
  }
  return "";
}

std::string check_types(const BatchView& batch, const BatchesManifest& manifest) {
  const EdgeData& data = manifest.dataset.edges.data;
  if (!data.types) return "";
  for (std::size_t i = 0; i < batch.edges.size(); ++i) {
    std::uint16_t type = 0;
    std::memcpy(&type, batch.records.data() + i * data.bytes() + data.type_offset(), sizeof type);
    if (type >= manifest.dataset.edge_types) {
      return fmt::format("edge {} of type {}, the dataset has {}", i, type,
                         manifest.dataset.edge_types);
    }
  }
  return "";
}

std::string check_labels(const BatchTensor& tensor, const std::byte* rows, std::int64_t seeds,
                         const Manifest& dataset) {
  std::int64_t wrong = 0;
  switch (dataset.labels) {
    case LabelKind::kSingle:
      for_each_element<std::int32_t>(tensor, rows, seeds, [&](std::int64_t, std::int32_t label) {
        wrong += label < -1 || label >= dataset.classes;
      });
      break;
    case LabelKind::kMulti:
      for_each_element<std::uint8_t>(tensor, rows, seeds, [&](std::int64_t, std::uint8_t label) {
        wrong += label > 1 && label != kUnlabelled;
      });
      break;
    case LabelKind::kValues:
      for_each_element<float>(tensor, rows, seeds,
                              [&](std::int64_t, float value) { wrong += std::isinf(value); });
      break;
  }
  return wrong == 0 ? "" : fmt::format("{} labels that are none", wrong);
}

std::string check_rows(const BatchTensor& tensor, const std::byte* rows, const BatchView& batch,
                       const Manifest& dataset, Split split) {
  const std::int64_t seeds = batch.level_rows.front();
  if (tensor.name == "labels") return check_labels(tensor, rows, seeds, dataset);
  if (tensor.name == "splits") {
    const auto splits = elements<std::uint8_t>(rows, seeds);
    const bool same = std::all_of(splits.begin(), splits.end(), [&](std::uint8_t of) {
      return of == static_cast<std::uint8_t>(split);
    });
    return same ? "" : "a seed of another split";
  }
  if (tensor.name == "ids") {
    const auto ids = elements<std::int64_t>(rows, batch.level_rows.back());
    const bool known = std::all_of(ids.begin(), ids.end(), [&](std::int64_t id) {
      return id >= 0 && id < dataset.edges.vertices;
    });
    return known ? "" : "an id that the dataset has not";
  }
  return "";
}

}  // namespace

std::string check_batch(const BatchView& batch, const BatchesManifest& manifest, Split split) {
  std::string wrong = check_counts(batch, manifest);
  if (wrong.empty()) wrong = check_edges(batch);
  if (wrong.empty()) wrong = check_types(batch, manifest);
  const std::vector<BatchTensor> tensors = batch_tensors(manifest.dataset);
  for (std::size_t i = 0; wrong.empty() && i < tensors.size(); ++i) {
    wrong = check_rows(tensors[i], batch.rows[i], batch, manifest.dataset, split);
  }
  return wrong;
}

}  // namespace ooc
