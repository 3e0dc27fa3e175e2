// Small seeded datasets in memory, written through the shipped writer.
#pragma once

#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "storage/dataset/dataset_writer.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/random_graph.h"

namespace ooc::test {

struct TinyDataset {
  std::int64_t vertices = 60;
  std::int64_t feature_cols = 5;
  std::int64_t classes = 3;
  std::int64_t block_rows = 16;
  std::uint64_t seed = 1;
  bool permute = false;  // a seeded order other than the natural one
  bool names = false;    // ids are strings
  bool multi_label = false;
  std::int64_t targets = 0;      // more: labels are values, tiny_value()
  std::int64_t train_every = 1;  // of the train split only these ids' vertices stay in it
  std::vector<Edge> edges;       // of the natural order
  // What edges carry: tiny_edge() of their number.
  bool edge_weights = false;
  std::int64_t edge_types = 0;  // 0: none
  std::int64_t edge_feature_cols = 0;
  // How edges are cut; 0: as import would.
  std::int64_t span_rows = 0;
  std::int64_t panel_blocks = 0;
  bool all_train = false;  // every vertex is in the train split
};

struct TinyEdge {
  float weight = 0;
  std::uint16_t type = 0;
  std::vector<float> features;
};

inline TinyEdge tiny_edge(const TinyDataset& spec, std::size_t edge) {
  SplitMix random(mix64(spec.seed * 104729 + edge));
  std::normal_distribution<float> normal;
  TinyEdge carried{normal(random), 0, {}};
  if (spec.edge_types > 0) {
    carried.type =
        static_cast<std::uint16_t>(random() % static_cast<std::uint64_t>(spec.edge_types));
  }
  for (std::int64_t c = 0; c < spec.edge_feature_cols; ++c) {
    carried.features.push_back(normal(random));
  }
  return carried;
}

// The feature of a vertex in the natural order: the same whatever the order.
inline float tiny_feature(const TinyDataset& spec, std::int64_t vertex, std::int64_t col) {
  SplitMix random(mix64(spec.seed * 7919 + static_cast<std::uint64_t>(vertex * 1000 + col)));
  return std::normal_distribution<float>()(random);
}

// Label of a vertex in the natural order; of a multi-label dataset whether it is of class `col`.
inline std::int32_t tiny_label(const TinyDataset& spec, std::int64_t vertex) {
  // Splits go by the id modulo 5: an even number of classes needs more to reach every split.
  const std::int64_t more = spec.classes % 2 == 0 ? vertex / 15 : 0;
  return static_cast<std::int32_t>((vertex * 7 + vertex / 5 + more) % spec.classes);
}
inline bool tiny_bit(const TinyDataset& spec, std::int64_t vertex, std::int64_t col) {
  return (vertex * (col + 3) + vertex / 7) % (col + 2) == 0 || col == tiny_label(spec, vertex);
}

// Of a vertex and a target; NaN for one in nine.
inline float tiny_value(const TinyDataset& spec, std::int64_t vertex, std::int64_t target) {
  if ((vertex + 2 * target) % 9 == 0) return std::numeric_limits<float>::quiet_NaN();
  return tiny_feature(spec, vertex, 0) - 0.5f * tiny_feature(spec, vertex, 1) +
         static_cast<float>(target);
}

// `edges`: of the spec, in the dataset's order.
inline void write_tiny_edges(FileSystem& files, const TinyDataset& spec,
                             const std::vector<Edge>& edges, DatasetWriter& writer) {
  EdgeLayout layout =
      choose_edge_layout(spec.vertices, static_cast<std::int64_t>(edges.size()), spec.block_rows);
  if (spec.span_rows > 0) layout.span_rows = spec.span_rows;
  if (spec.panel_blocks > 0) layout.panel_blocks = spec.panel_blocks;
  layout.data = {spec.edge_weights, spec.edge_types > 0, spec.edge_feature_cols};
  const std::size_t bytes = layout.data.bytes();
  std::vector<std::byte> data(bytes * edges.size());
  for (std::size_t i = 0; bytes > 0 && i < edges.size(); ++i) {
    const TinyEdge edge = tiny_edge(spec, i);
    std::byte* at = data.data() + i * bytes;
    if (layout.data.weights) std::memcpy(at, &edge.weight, sizeof edge.weight);
    if (layout.data.types) {
      std::memcpy(at + layout.data.type_offset(), &edge.type, sizeof edge.type);
    }
    if (layout.data.feature_cols > 0) {
      std::memcpy(at + layout.data.feature_offset(), edge.features.data(),
                  layout.data.feature_bytes());
    }
  }
  EdgeSorter sorter(files, writer.scratch_path("edges"), {spec.vertices, layout.span_rows},
                    layout.data);
  sorter.add(0, edges, data);
  sorter.finish();
  constexpr std::int64_t kPlenty = std::int64_t{1} << 40;
  writer.write_edges(sorter, {.layout = layout, .transforms = {}, .memory_bytes = kPlenty}, {});
  writer.manifest().edge_types = spec.edge_types;
  if (spec.permute) writer.manifest().order = "random";
}

// Every vertex has a label; 40 % train, 20 % valid, 20 % test, 20 % in no split. One thread writes
// it.
inline Dataset write_tiny_dataset(FileSystem& files, const TinyDataset& spec,
                                  const std::string& path = "/tiny.ooc") {
  const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(spec.vertices));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(i);
  if (spec.permute) std::shuffle(ids.begin(), ids.end(), std::mt19937_64(spec.seed + 17));
  std::vector<std::int64_t> place(ids.size());  // natural id -> row
  for (std::size_t row = 0; row < ids.size(); ++row) {
    place[ids[row]] = static_cast<std::int64_t>(row);
  }
  std::vector<Edge> edges = spec.edges;
  for (Edge& edge : edges) {
    edge = {place[static_cast<std::size_t>(edge.source)],
            place[static_cast<std::size_t>(edge.destination)]};
  }
  DatasetWriter writer(files, path, true, spec.vertices, spec.block_rows);
  write_tiny_edges(files, spec, edges, writer);
  std::vector<float> features;
  std::vector<std::int32_t> labels;
  std::vector<std::uint8_t> splits, bits;
  std::vector<float> values;
  std::int64_t missing = 0;
  const std::uint8_t split_of[] = {1, 2, 1, 3, 0};
  for (const std::int64_t id : ids) {
    for (std::int64_t c = 0; c < spec.feature_cols; ++c) {
      features.push_back(tiny_feature(spec, id, c));
    }
    labels.push_back(tiny_label(spec, id));
    for (std::int64_t c = 0; c < spec.classes; ++c) bits.push_back(tiny_bit(spec, id, c));
    const std::uint8_t split = spec.all_train ? 1 : split_of[id % 5];
    splits.push_back(split == 1 && id % spec.train_every != 0 ? std::uint8_t{0} : split);
    for (std::int64_t c = 0; c < spec.targets; ++c) {
      values.push_back(tiny_value(spec, id, c));
      missing += splits.back() == 1 && std::isnan(values.back()) ? 1 : 0;
    }
  }
  writer.features(spec.feature_cols).append_rows(features.data(), spec.vertices);
  writer.finish_features();
  if (spec.targets > 0) {
    writer.label_matrix(LabelKind::kValues, spec.targets).append_rows(values.data(), spec.vertices);
    writer.finish_label_matrix();
    writer.manifest().missing_train_labels = missing;
  } else if (spec.multi_label) {
    writer.label_matrix(LabelKind::kMulti, spec.classes).append_rows(bits.data(), spec.vertices);
    writer.finish_label_matrix();
  } else {
    writer.write_labels(labels, spec.classes);
  }
  writer.write_splits(splits);
  writer.write_ids(ids);
  if (spec.names) {
    constexpr std::int64_t kBytes = 5;
    std::string name;
    writer.write_original_names(kBytes * spec.vertices, [&](std::int64_t row) -> std::string_view {
      return name = fmt::format("é{:03}", ids[static_cast<std::size_t>(row)]);
    });
  }
  writer.commit();
  return Dataset::open(files, path, VerifyPolicy::kFirst);
}

}  // namespace ooc::test
