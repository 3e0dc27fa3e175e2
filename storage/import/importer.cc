#include "storage/import/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <vector>

#include "storage/dataset_writer.h"
#include "storage/errors.h"
#include "storage/import/edges_input.h"
#include "storage/import/feature_writer.h"
#include "storage/import/labels_input.h"
#include "storage/import/table_reader.h"

namespace ooc {
namespace {

template <class Enum, std::size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

// One value a vertex, in the dataset's order.
template <class T>
std::vector<T> reorder(const std::vector<T>& values, const std::vector<VertexId>& order) {
  if (order.empty()) return values;
  std::vector<T> out(values.size());
  std::transform(order.begin(), order.end(), out.begin(),
                 [&](VertexId old) { return values[old]; });
  return out;
}

// One import. The members fill in the order of the methods.
class Import {
 public:
  Import(FileSystem& files, const ImportOptions& options, const std::string& output,
         const Control& control)
      : files_(files), options_(options), output_(output), control_(control) {}

  Findings run() {
    check_block_rows(options_.block_rows);
    open_tables();
    count_vertices();
    take_stated_vertices();
    if (findings_.vertices > 0) create_writer();
    read_edge_list();
    if (!writer_) create_writer();
    read_vertex_values();
    transform();
    write();
    return findings_;
  }

 private:
  std::unique_ptr<TableReader> open(const std::string& input) {
    return input.empty() ? nullptr : open_table(files_, input);
  }

  void open_tables() {
    const ImportInputs& inputs = options_.inputs;
    if (inputs.edges.empty()) {
      throw DataError("there are no edges", "command line",
                      "give --edges FILE, or a directory with edges.npy");
    }
    edge_table_ = open(inputs.edges);
    feature_table_ = open(inputs.features);
    if (feature_table_) check_feature_cols(*feature_table_);
    label_table_ = open(inputs.labels);
    split_tables_ = {open(inputs.train), open(inputs.valid), open(inputs.test)};
    for (const std::string& ignored : inputs.ignored) {
      findings_.warnings.push_back(fmt::format("{} is not stored by this version", ignored));
    }
  }

  // Leaves the count at 0 where only the edges tell.
  void count_vertices() {
    if (options_.vertices) {
      if (*options_.vertices < 1) {
        throw UsageError(fmt::format("--vertices {} is no vertex count", *options_.vertices),
                         "command line", "give a positive number");
      }
      findings_.vertices = *options_.vertices;
      findings_.vertices_from = "--vertices";
    }
    for (TableReader* const table : {feature_table_.get(), label_table_.get()}) {
      if (table == nullptr) continue;
      table->count_rows(control_);
      const std::int64_t rows = table->rows();
      if (findings_.vertices_from.empty()) {
        findings_.vertices = rows;
        findings_.vertices_from = fmt::format("the rows of {}", table->name());
      }
      if (rows != findings_.vertices) {
        throw DataError(fmt::format("{} rows but the vertex count is {} ({})", rows,
                                    findings_.vertices, findings_.vertices_from),
                        table->name(), "every vertex needs one row");
      }
      if (rows == 0) throw DataError("there are no rows", table->name(), "a graph needs vertices");
    }
  }

  void take_stated_vertices() {
    const auto stated = edge_table_->stated_vertices();
    if (!stated || !findings_.vertices_from.empty()) return;
    findings_.vertices = *stated;
    findings_.vertices_from = fmt::format("the size of the matrix in {}", edge_table_->name());
  }

  void create_writer() {
    writer_ = std::make_unique<DatasetWriter>(files_, output_, options_.force, findings_.vertices,
                                              options_.block_rows);
  }

  void read_edge_list() {
    const bool known = findings_.vertices > 0;
    edges_ = read_edges(*edge_table_, known ? std::optional(findings_.vertices) : std::nullopt,
                        control_);
    if (edges_.empty()) findings_.warnings.push_back("there are no edges");
    if (known) return;
    findings_.vertices = vertices_of_edges(edges_, edge_table_->name());
    findings_.vertices_from = fmt::format("the largest id in {}", edge_table_->name());
    if (findings_.vertices == 0) {
      throw DataError("there are neither edges nor vertices", edge_table_->name(),
                      "give --vertices if the graph has no edges");
    }
  }

  void read_vertex_values() {
    if (label_table_) {
      labels_ = read_labels(*label_table_, control_);
      findings_.classes = *std::max_element(labels_.begin(), labels_.end()) + std::int64_t{1};
    }
    warn_of_empty_classes();
    findings_.unlabelled =
        label_table_ ? std::count(labels_.begin(), labels_.end(), -1) : findings_.vertices;
    const bool has_splits = std::any_of(split_tables_.begin(), split_tables_.end(),
                                        [](auto& t) { return t != nullptr; });
    if (!has_splits && !options_.split_shares) return;
    splits_ = options_.split_shares
                  ? random_split(labels_, *options_.split_shares, options_.split_seed)
                  : read_splits(split_tables_, findings_.vertices, labels_, control_);
    for (const std::uint8_t split : splits_) {
      if (split > 0) ++findings_.split_counts[split - 1];
    }
  }

  void warn_of_empty_classes() {
    std::vector<bool> used(static_cast<std::size_t>(findings_.classes), false);
    for (const std::int32_t label : labels_) {
      if (label >= 0) used[label] = true;
    }
    const auto empty = std::count(used.begin(), used.end(), false);
    if (empty == 0) return;
    findings_.warnings.push_back(
        fmt::format("{} of the {} classes have no vertex", empty, findings_.classes));
  }

  void transform() {
    findings_.input_without_in_edges = count_without_in_edges(edges_, findings_.vertices);
    findings_.input = transform_edges(edges_, findings_.vertices, options_.edges, control_);
    findings_.stored_edges = static_cast<std::int64_t>(edges_.size());
    findings_.stored_without_in_edges = count_without_in_edges(edges_, findings_.vertices);
    if (findings_.input.distinct > 0 && findings_.input.reciprocal == 0 &&
        !options_.edges.undirected) {
      findings_.warnings.push_back(
          "no edge has its reverse: if the graph is undirected, import it with --undirected");
    }
    choose_order();
    control_.check();
    if (!order_.empty()) renumber_edges(edges_, inverse_order(order_));
  }

  void choose_order() {
    switch (options_.order) {
      case VertexOrder::kNatural:
        break;
      case VertexOrder::kRandom:
        order_ = random_order(findings_.vertices, options_.seed);
        break;
      case VertexOrder::kDegree:
        order_ = degree_order(edges_, findings_.vertices);
        break;
      case VertexOrder::kBalanced:
        order_ = balanced_order(edges_, findings_.vertices, options_.block_rows);
        break;
    }
  }

  void write() {
    writer_->write_edges(edges_, control_);
    edges_ = {};
    if (feature_table_) {
      FeatureStream features(*feature_table_, options_.feature_norm, control_);
      findings_.feature_cols = features.cols();
      write_features(
          files_, *writer_, findings_.vertices, features.cols(),
          [&](std::span<float> out) { return features.read(out); }, order_, control_);
    }
    if (findings_.classes > 0) writer_->write_labels(reorder(labels_, order_), findings_.classes);
    if (!splits_.empty()) writer_->write_splits(reorder(splits_, order_));
    write_ids();
    describe(writer_->manifest());
    control_.check();
    writer_->commit();
  }

  void write_ids() {
    if (order_.empty()) {
      order_.resize(static_cast<std::size_t>(findings_.vertices));
      std::iota(order_.begin(), order_.end(), VertexId{0});
    }
    writer_->write_ids(order_);
  }

  void describe(Manifest& manifest) const {
    manifest.order = name_of(kVertexOrderNames, options_.order);
    manifest.transforms = {
        {"undirected", options_.edges.undirected},
        {"self_loops", name_of(kSelfLoopsNames, options_.edges.self_loops)},
        {"coalesce", name_of(kCoalesceNames, options_.edges.coalesce)},
        {"feature_norm", name_of(kFeatureNormNames, options_.feature_norm)},
    };
    if (const auto& shares = options_.split_shares) {
      manifest.transforms["split"] =
          fmt::format("{}/{}/{}", shares->train, shares->valid, shares->test);
      manifest.transforms["split_seed"] = options_.split_seed;
    }
    if (options_.order == VertexOrder::kRandom) manifest.transforms["seed"] = options_.seed;
    manifest.findings = findings_to_json(findings_);
  }

  FileSystem& files_;
  const ImportOptions& options_;
  const std::string& output_;
  const Control& control_;
  std::unique_ptr<TableReader> edge_table_, feature_table_, label_table_;
  SplitTables split_tables_;
  std::unique_ptr<DatasetWriter> writer_;
  std::vector<Edge> edges_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint8_t> splits_;
  std::vector<VertexId> order_;  // empty: natural
  Findings findings_;
};

}  // namespace

void check_block_rows(std::int64_t block_rows) {
  if (block_rows >= 1 && block_rows <= kMaxBlockRows &&
      std::has_single_bit(static_cast<std::uint64_t>(block_rows))) {
    return;
  }
  throw UsageError(fmt::format("--block-rows {} is not possible", block_rows), "command line",
                   fmt::format("give a power of two up to {}", kMaxBlockRows));
}

Findings import_dataset(FileSystem& files, const ImportOptions& options, const std::string& output,
                        const Control& control) {
  return Import(files, options, output, control).run();
}

}  // namespace ooc
