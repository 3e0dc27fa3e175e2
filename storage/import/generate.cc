#include "storage/import/generate.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "storage/base/counter_random.h"
#include "storage/base/errors.h"
#include "storage/base/json_text.h"
#include "storage/dataset/dataset_writer.h"
#include "storage/import/edges/distinct_edges.h"
#include "storage/import/edges/edge_import.h"
#include "storage/import/import_memory.h"
#include "storage/import/importer.h"
#include "storage/import/rows/vertex_order.h"
#include "storage/import/values/feature_writer.h"
#include "storage/import/values/label_matrix_input.h"

namespace ooc {
namespace {

constexpr std::uint64_t kCentroidStream = 0x4345;
constexpr std::uint64_t kNoiseStream = 0x4e4f;
constexpr std::uint64_t kLevelStream = 0x4c45;
constexpr std::uint64_t kValueStream = 0x5641;
constexpr float kValueNoise = 0.1f;
// Measured on sbm with 10 classes, 64 features, average degree 8: a linear classifier gets 0.32
// from the features alone and 0.94 from their averages over two hops.
constexpr double kCentroidLength = 1.0;
constexpr double kTrainShare = 0.6;
constexpr double kValidShare = 0.2;
constexpr std::int64_t kMaxDraws = 50;    // per edge that is wanted
constexpr std::int64_t kVertexBytes = 9;  // two of order, label and draw of splits; a split

void check_options(const GenerateOptions& options) {
  const auto require = [](bool condition, const std::string& what, const std::string& remedy) {
    if (!condition) throw UsageError(what, "command line", remedy);
  };
  check_block_rows(options.block_rows);
  const std::int64_t v = options.vertices;
  require(v >= 2 && v <= kMaxVertices, fmt::format("--vertices {} is not possible", v),
          fmt::format("give 2 to {}", kMaxVertices));
  require(options.features >= 1 && options.features <= kMaxFeatureCols,
          fmt::format("--features {} is not possible", options.features),
          fmt::format("give 1 to {}", kMaxFeatureCols));
  require(options.classes >= 1 && options.classes <= v && options.classes <= kMaxGeneratedClasses,
          fmt::format("--classes {} is not possible", options.classes),
          fmt::format("give 1 to {}, and no more than vertices", kMaxGeneratedClasses));
  require(options.targets >= 0 && options.targets <= kMaxLabelColumns,
          fmt::format("--targets {} is not possible", options.targets),
          fmt::format("give 1 to {}", kMaxLabelColumns));
  // Beyond half of the pairs there are, drawing distinct ones takes ever longer, and edges inside
  // classes become fewer than they should be.
  const auto pairs_among = [](double count) { return count * (count - 1) / 2; };
  const auto classes = static_cast<double>(options.classes);
  const auto edges = static_cast<double>(options.edges);
  const double inside = classes * pairs_among(static_cast<double>(v) / classes);
  require(edges >= 1 && edges <= pairs_among(static_cast<double>(v)) / 2 &&
              kInsideShare * edges <= inside / 2,
          fmt::format("--edges {} is not possible with {} vertices in {} classes", options.edges, v,
                      options.classes),
          "give at least 1, and no more than half of all pairs of vertices, or of those inside "
          "classes");
}

// Rows in order, a vertex each: normals that its class shares, plus normals of its own.
class ClassRows {
 public:
  struct Kind {
    std::int64_t cols;
    float shared, own;                        // the normals' deviations
    std::uint64_t shared_stream, own_stream;  // of random numbers
  };
  ClassRows(const Kind& kind, const GenerateOptions& options,
            const std::vector<std::int32_t>& labels)
      : kind_(kind),
        labels_(labels),
        own_(options.seed, kind.own_stream),
        shared_(static_cast<std::size_t>(options.classes * kind.cols)) {
    const CounterRandom random(options.seed, kind.shared_stream);
    const auto width = static_cast<std::size_t>(kind.cols);
    for (std::size_t label = 0; label < static_cast<std::size_t>(options.classes); ++label) {
      random.normal_row(label, kind.shared, std::span(shared_).subspan(label * width, width));
    }
  }

  std::int64_t next(std::span<float> out) {
    const std::int64_t cols = kind_.cols;
    const auto vertices = static_cast<std::int64_t>(labels_.size());
    const std::int64_t count =
        std::min(static_cast<std::int64_t>(out.size()) / cols, vertices - next_);
    tbb::parallel_for(std::int64_t{0}, count, [&](std::int64_t i) {
      float* const row = out.data() + i * cols;
      own_.normal_row(static_cast<std::uint64_t>(next_ + i), kind_.own,
                      {row, static_cast<std::size_t>(cols)});
      const float* const shared = shared_.data() + labels_[next_ + i] * cols;
      for (std::int64_t col = 0; col < cols; ++col) row[col] += shared[col];
    });
    next_ += count;
    return count;
  }

 private:
  Kind kind_;
  const std::vector<std::int32_t>& labels_;
  CounterRandom own_;
  std::vector<float> shared_;
  std::int64_t next_ = 0;
};

void write_features(FileSystem& files, const GenerateOptions& options,
                    const std::vector<std::int32_t>& labels, std::int64_t memory_bytes,
                    DatasetWriter& writer, const Control& control) {
  const auto scale =
      static_cast<float>(kCentroidLength / std::sqrt(static_cast<double>(options.features)));
  ClassRows features({options.features, scale, 1, kCentroidStream, kNoiseStream}, options, labels);
  const FeatureRows rows{options.vertices,
                         options.features,
                         DType::kF32,
                         "generated",
                         [&](std::span<float> out) { return features.next(out); },
                         {}};
  ooc::write_features(files, writer, rows, {}, memory_bytes, control);
}

void write_labels(const GenerateOptions& options, const std::vector<std::int32_t>& labels,
                  DatasetWriter& writer) {
  if (options.targets == 0) return writer.write_labels(labels, options.classes);
  constexpr std::int64_t kRowsAtOnce = 1 << 12;
  ClassRows values({options.targets, 1, kValueNoise, kLevelStream, kValueStream}, options, labels);
  VertexTensorWriter& to = writer.label_matrix(LabelKind::kValues, options.targets);
  std::vector<float> rows(static_cast<std::size_t>(kRowsAtOnce * options.targets));
  while (const std::int64_t count = values.next(rows)) to.append_rows(rows.data(), count);
  writer.finish_label_matrix();
}

EdgeCounts write_edges(FileSystem& files, const GenerateOptions& options,
                       std::span<const VertexIndex> shuffled, const ImportMemory& memory,
                       DatasetWriter& writer, const Control& control) {
  JoinOptions join;
  join.layout = choose_edge_layout(options.vertices, 2 * options.edges, options.block_rows);
  join.transforms.undirected = true;
  join.memory_bytes = memory.free();
  join.other_bytes = memory.taken();
  EdgeSorter sorter(files, writer.scratch_path("sorted"),
                    {join.layout.vertices, join.layout.span_rows}, {});
  {
    DistinctEdges edges(files, writer.scratch_path("drawn"), edge_draws(options), options.edges,
                        kMaxDraws * options.edges + 1000, memory.free(), control);
    if (!edges.complete()) {
      throw UsageError(fmt::format("{} distinct edges do not fit such a graph of {} vertices",
                                   options.edges, options.vertices),
                       "", "give fewer --edges or more --vertices");
    }
    const std::int64_t reading = DistinctEdges::reading_memory(memory.free());
    sort_edges(edges, shuffled, 0, memory.free() - reading, sorter, control);
  }
  EdgeCounts counts = writer.write_edges(sorter, join, control);
  // Both directions belong to the graph; one is drawn.
  counts.given.edges *= 2;
  counts.given.distinct *= 2;
  counts.given.reciprocal = counts.given.distinct;
  counts.given_without_in_edges = counts.stored_without_in_edges;
  return counts;
}

std::vector<std::int32_t> label_vertices(const GenerateOptions& options,
                                         std::span<const VertexIndex> shuffled) {
  std::vector<std::int32_t> labels(shuffled.size());
  for (std::size_t vertex = 0; vertex < shuffled.size(); ++vertex) {
    labels[shuffled[vertex]] =
        static_cast<std::int32_t>(static_cast<std::int64_t>(vertex) % options.classes);
  }
  return labels;
}

std::vector<std::uint8_t> draw_splits(const GenerateOptions& options) {
  const std::vector<VertexIndex> shuffled = random_order(options.vertices, ~options.seed);
  std::vector<std::uint8_t> splits(shuffled.size());
  for (std::size_t i = 0; i < shuffled.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(shuffled.size());
    const Split split = share < kTrainShare                 ? Split::kTrain
                        : share < kTrainShare + kValidShare ? Split::kValid
                                                            : Split::kTest;
    splits[shuffled[i]] = static_cast<std::uint8_t>(split);
  }
  return splits;
}

Findings findings_of(const GenerateOptions& options, const EdgeCounts& edges,
                     const std::vector<std::uint8_t>& splits) {
  Findings findings;
  findings.vertices = options.vertices;
  findings.vertices_from = "--vertices";
  findings.input = edges.given;
  findings.stored_edges = edges.stored;
  findings.input_without_in_edges = edges.given_without_in_edges;
  findings.stored_without_in_edges = edges.stored_without_in_edges;
  findings.feature_cols = options.features;
  findings.labels = options.targets > 0 ? LabelKind::kValues : LabelKind::kSingle;
  findings.classes = options.targets > 0 ? options.targets : options.classes;
  for (const std::uint8_t split : splits) ++findings.split_counts[split - 1];
  return findings;
}

}  // namespace

Findings generate_dataset(FileSystem& files, const GenerateOptions& options,
                          const std::string& output, const Control& control) {
  check_options(options);
  DatasetWriter writer(files, output, options.force, options.vertices, options.block_rows);
  ImportMemory memory(options.memory_bytes > 0 ? options.memory_bytes : default_import_memory());
  memory.take({{kVertexBytes * options.vertices, "orders, labels and splits"}});
  std::vector<VertexIndex> shuffled = random_order(options.vertices, options.seed);
  const EdgeCounts edges = write_edges(files, options, shuffled, memory, writer, control);
  const std::vector<std::int32_t> labels = label_vertices(options, shuffled);
  shuffled = {};
  const std::vector<std::uint8_t> splits = draw_splits(options);
  const Findings findings = findings_of(options, edges, splits);
  write_features(files, options, labels, memory.free(), writer, control);
  write_labels(options, labels, writer);
  writer.write_splits(splits);
  writer.write_ids({});

  Manifest& manifest = writer.manifest();
  manifest.transforms =
      json_text({{"generated", kGraphKindNames[static_cast<std::size_t>(options.kind)]},
                 {"seed", options.seed}});
  manifest.findings = json_text(findings_to_json(findings));
  control.check();
  writer.commit();
  return findings;
}

}  // namespace ooc
