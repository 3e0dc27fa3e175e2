#include "storage/import/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "storage/base/errors.h"
#include "storage/base/json_text.h"
#include "storage/dataset/dataset_writer.h"
#include "storage/import/edges/edge_import.h"
#include "storage/import/edges/edge_source.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/import_memory.h"
#include "storage/import/import_transforms.h"
#include "storage/import/import_warnings.h"
#include "storage/import/remapped_vertices.h"
#include "storage/import/values/feature_writer.h"
#include "storage/import/values/split_column.h"
#include "storage/import/values/vertex_values.h"

namespace ooc {
namespace {

// One import. The members fill in the order of the methods.
class Import {
 public:
  Import(FileSystem& files, const ImportOptions& options, const std::string& output,
         const Control& control)
      : files_(files),
        options_(options),
        output_(output),
        control_(control),
        memory_(options.memory_bytes > 0 ? options.memory_bytes : default_import_memory()) {}

  Findings run() {
    check_block_rows(options_.block_rows);
    open_tables();
    count_vertices();
    writer_ = std::make_unique<DatasetWriter>(files_, output_, options_.force, findings_.vertices,
                                              options_.block_rows);
    open_edges();
    values_->read(findings_.vertices, {options_.split_shares, options_.split_seed},
                  remapped_ ? remapped_->listed() : ListedIds(), findings_, control_);
    choose_order();
    write_edges();
    write_vertices();
    describe(writer_->manifest());
    control_.check();
    writer_->commit();
    return findings_;
  }

 private:
  void open_tables() {
    const ImportInputs& inputs = options_.inputs;
    if (inputs.edges.empty()) {
      throw DataError("there are no edges", "command line",
                      "give --edges FILE, or a directory with edges.npy");
    }
    warn_of_unused(inputs, findings_);
    if (options_.remap_ids) {
      remapped_ =
          std::make_unique<RemappedVertices>(files_, inputs, options_.rows, memory_, control_);
    }
    open_features();
    values_ =
        std::make_unique<VertexValues>(open_label_table(), options_.label_kind, open_splits());
    edge_table_ =
        remapped_ ? remapped_->open_edges(findings_) : open_edge_table(files_, inputs.edges);
    edge_data_ = open_edge_data(files_, inputs);
  }

  void open_features() {
    if (options_.inputs.features.empty()) return;
    TextColumns columns = columns_of(options_.inputs.features);
    const bool refuses = options_.scaling ? options_.scaling->missing == "error"
                                          : options_.missing == Missing::kError;
    if (!refuses) columns.missing = missing_words();
    feature_table_ = open_table(files_, options_.inputs.features, columns);
    check_feature_cols(*feature_table_);
  }

  LabelTable open_label_table() {
    const ImportInputs& inputs = options_.inputs;
    if (inputs.labels.empty()) {
      if (inputs.class_names.empty()) return {};
      throw UsageError("--class-names, but there are no labels", "command line",
                       "leave it out, or give --labels FILE");
    }
    TextColumns columns = columns_of(inputs.labels);
    columns.missing = unlabelled_words();
    if (!options_.unlabelled.empty()) columns.missing.push_back(options_.unlabelled);
    LabelTable labels = open_labels(files_, inputs.labels, columns, inputs.class_names, control_);
    if (!options_.unlabelled.empty() && !labels.ids && !is_text_name(inputs.labels)) {
      throw UsageError(fmt::format("--unlabelled, but {} is no text", inputs.labels),
                       "command line", "write -1 or NaN where there is no label");
    }
    if (!labels.warning.empty()) findings_.warnings.push_back(labels.warning);
    return labels;
  }

  SplitTables open_splits() const {
    const ImportInputs& inputs = options_.inputs;
    SplitTables tables{open_split(inputs.train), open_split(inputs.valid), open_split(inputs.test)};
    choose_splits(tables, options_.split_index);
    return tables;
  }

  std::unique_ptr<TableReader> open_split(const std::string& input) const {
    if (input.empty()) return nullptr;
    return remapped_ ? remapped_->open_split(input) : open_table(files_, input);
  }

  // Of a table whose rows are vertices': without ids.
  TextColumns columns_of(const std::string& rows) const {
    TextColumns columns;
    if (remapped_) columns.left_out = remapped_->id_column_of(rows);
    return columns;
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
    TableReader* const list = remapped_ ? remapped_->list() : nullptr;
    for (TableReader* const table : {list, feature_table_.get(), values_->label_table()}) {
      if (table == nullptr) continue;
      if (list != nullptr && remapped_->may_lack_rows(*table)) continue;
      table->count_rows(control_);
      const std::int64_t rows = table->rows();
      if (findings_.vertices_from.empty()) {
        findings_.vertices = rows;
        findings_.vertices_from = fmt::format("the rows of {}", table->name());
      }
      if (rows != findings_.vertices) {
        throw DataError(fmt::format("{} rows but the vertex count is {} ({})", rows,
                                    findings_.vertices, findings_.vertices_from),
                        table->name(),
                        feature_table_ && begins_with_numbers(*feature_table_)
                            ? "the first row of the features is 0, 1, 2 and so on: take it out"
                            : "every vertex needs one row");
      }
      warn_of_header(*table, findings_);
      if (rows == 0) throw DataError("there are no rows", table->name(), "a graph needs vertices");
    }
    const auto stated = edge_table_->stated_vertices();
    if (!stated || !findings_.vertices_from.empty()) return;
    findings_.vertices = *stated;
    findings_.vertices_from = fmt::format("the size of the matrix in {}", edge_table_->name());
  }

  // Edges of unknown number, or that alone tell the number of vertices, are read once beforehand.
  void open_edges() {
    const bool counted = findings_.vertices > 0;
    auto table = std::make_unique<TableEdgeSource>(
        std::move(edge_table_), std::move(edge_data_),
        counted ? std::optional(findings_.vertices) : std::nullopt, findings_.vertices_from);
    table_edges_ = table.get();
    edges_ = std::move(table);
    if (remapped_) {
      remap(counted);
    } else if (!counted || !edges_->known_edges()) {
      table_owner_ = std::move(edges_);
      edges_ =
          std::make_unique<SpooledEdgeSource>(files_, writer_->scratch_path("edges"), *table_owner_,
                                              table_edges_->data().bytes(), control_);
    }
    if (!counted && !remapped_) {
      findings_.vertices = vertices_of_largest_id(table_edges_->largest_id(),
                                                  *edges_->known_edges(), table_edges_->name());
      findings_.vertices_from = fmt::format("the largest id in {}", table_edges_->name());
      largest_id_counts_ = true;
    }
    if (findings_.vertices == 0) {
      throw DataError("there are neither edges nor vertices", table_edges_->name(),
                      "give --vertices if the graph has no edges");
    }
    if (findings_.vertices > kMaxVertices) {
      throw DataError(fmt::format("{} vertices", findings_.vertices), findings_.vertices_from,
                      fmt::format("at most {} are possible", kMaxVertices));
    }
    writer_->set_vertices(findings_.vertices);
    if (!remapped_) memory_.take(memory_parts(findings_.vertices));
  }

  // What lies in memory from now on.
  std::vector<MemoryPart> memory_parts(std::int64_t vertices) const {
    std::vector<MemoryPart> parts = {{5 * vertices, "labels and splits"},
                                     {values_->names_bytes(), "the names of classes"}};
    if (options_.order != VertexOrder::kNatural) {
      parts.push_back({8 * vertices, "the new order of vertices"});
    }
    parts.push_back({ordering_bytes(vertices), "the graph while it is ordered"});
    return parts;
  }

  // Degrees, or METIS's graph.
  std::int64_t ordering_bytes(std::int64_t vertices) const {
    if (options_.order == VertexOrder::kMetis) {
      const auto known = edges_->known_edges();
      return metis_memory(vertices, 2 * (known ? *known : table_edges_->count_edges(control_)));
    }
    const bool by_degree =
        options_.order == VertexOrder::kDegree || options_.order == VertexOrder::kBalanced;
    return by_degree ? static_cast<std::int64_t>(sizeof(Degrees)) * vertices : 0;
  }

  void remap(bool counted) {
    remapped_->collect(*table_edges_, writer_->scratch_path(""));
    std::vector<MemoryPart> parts =
        remapped_->memory_parts(values_->row_tables() + (feature_table_ ? 1 : 0));
    for (MemoryPart& part : memory_parts(remapped_->count())) parts.push_back(std::move(part));
    memory_.take(std::move(parts));
    remapped_->finish(*table_edges_, findings_);
    const std::int64_t ids = remapped_->size();
    if (counted && ids != findings_.vertices) {
      throw DataError(fmt::format("{} ids in the edges but the vertex count is {} ({})", ids,
                                  findings_.vertices, findings_.vertices_from),
                      table_edges_->name(),
                      "with --remap-ids the vertices are those that the edges name, or that --ids "
                      "lists");
    }
    findings_.vertices = ids;
    const TableReader* const list = remapped_->list();
    findings_.vertices_from =
        fmt::format("the ids in {}", list != nullptr ? list->name() : table_edges_->name());
    table_owner_ = std::move(edges_);
    edges_ = remapped_->spool(*table_edges_);
    remapped_->sort_rows(feature_table_, "features");
    remapped_->sort_values(*values_);
  }

  void choose_order() {
    if (options_.order == VertexOrder::kNatural) return;
    if (options_.order == VertexOrder::kRandom) {
      order_ = random_order(findings_.vertices, options_.seed);
    } else {
      order_by_edges();
    }
    new_ids_ = inverse_order(order_);
  }

  // Orders that depend on what edges will be stored: sorts and joins them as they are first.
  void order_by_edges() {
    const bool metis = options_.order == VertexOrder::kMetis;
    std::vector<Degrees> degrees;
    std::vector<Edge> pairs;
    JoinOptions join = join_options();
    join.encode = false;
    join.pairs = metis;
    {
      const auto sorter = sort();
      DegreeCollector collector(join.layout, [&](std::span<const Degrees> rows) {
        if (!metis) degrees.insert(degrees.end(), rows.begin(), rows.end());
      });
      if (!metis) degrees.reserve(static_cast<std::size_t>(findings_.vertices));
      join_edges(
          *sorter, join,
          [&](const JoinedUnit& unit) {
            collector.add(unit);
            pairs.insert(pairs.end(), unit.pairs.begin(), unit.pairs.end());
          },
          control_);
      stored_edges_ = collector.finish().stored;
    }
    control_.check();
    order_ = metis ? metis_order(findings_.vertices, pairs, options_.block_rows)
             : options_.order == VertexOrder::kDegree
                 ? degree_order(degrees)
                 : balanced_order(degrees, options_.block_rows);
    memory_.give_back(ordering_bytes(findings_.vertices));
    edges_->rewind();
  }

  // Of what is stored, as well as it is known: the cut of the dataset follows it.
  std::int64_t expected_edges() const {
    if (stored_edges_) return *stored_edges_;
    const std::int64_t given = *edges_->known_edges();
    return (options_.edges.undirected ? 2 * given : given) +
           (options_.edges.self_loops == SelfLoops::kAddRemaining ? findings_.vertices : 0);
  }

  JoinOptions join_options() const {
    JoinOptions join;
    join.layout = choose_edge_layout(findings_.vertices, expected_edges(), options_.block_rows);
    join.layout.data = table_edges_->data();
    join.transforms = options_.edges;
    join.memory_bytes = memory_.free();
    join.other_bytes = memory_.taken();
    return join;
  }

  std::unique_ptr<EdgeSorter> sort() {
    const EdgeLayout layout = join_options().layout;
    const EdgeKeys keys(layout.vertices, layout.span_rows);
    auto sorter =
        std::make_unique<EdgeSorter>(files_, writer_->scratch_path("sorted"), keys, layout.data);
    sort_edges(*edges_, new_ids_, layout.data.bytes(), memory_.free(), *sorter, control_);
    return sorter;
  }

  void write_edges() {
    const EdgeCounts counts = [&] {
      const auto sorter = sort();
      return writer_->write_edges(*sorter, join_options(), control_);
    }();
    if (table_owner_) edges_.reset();  // the spool
    findings_.input = counts.given;
    findings_.input_without_in_edges = counts.given_without_in_edges;
    findings_.stored_edges = counts.stored;
    findings_.stored_without_in_edges = counts.stored_without_in_edges;
    if (largest_id_counts_) warn_of_gaps(counts, table_edges_->name(), findings_);
    warn_of_directions(counts, options_.edges.undirected, findings_);
    warn_of_weights(table_edges_->weight_signs(), counts, findings_);
  }

  void write_vertices() {
    const auto& computed = options_.computed_features;
    const bool by_degrees = computed && computed->random_cols == 0;  // in the dataset's order
    if (by_degrees) {
      feature_table_ = degree_features(writer_->open_degrees());
    } else if (computed) {
      feature_table_ = random_features(findings_.vertices, computed->random_cols, options_.seed);
    }
    if (feature_table_) write_feature_table(by_degrees ? std::span<const VertexIndex>() : new_ids_);
    values_->write(files_, *writer_, order_, new_ids_, memory_.free(), control_);
    writer_->write_ids(order_);
    if (remapped_) remapped_->write(*writer_, order_, new_ids_);
  }

  void write_feature_table(std::span<const VertexIndex> new_ids) {
    const auto& scaling = options_.scaling;
    FeatureStream features =
        scaling ? FeatureStream(*feature_table_, *scaling)
                : FeatureStream(*feature_table_, options_.feature_norm, options_.missing, control_);
    writer_->manifest().feature_scaling = features.scaling();
    findings_.feature_cols = features.cols();
    const FeatureRows rows{findings_.vertices,
                           features.cols(),
                           options_.dtype,
                           feature_table_->name(),
                           [&](std::span<float> out) { return features.read(out); },
                           [&](std::span<float> values) { features.normalise(values); }};
    write_features(files_, *writer_, rows, new_ids, memory_.free(), control_);
    const std::string warning =
        id_column_warning(*feature_table_, "features", features.id_column());
    if (!warning.empty()) findings_.warnings.push_back(warning);
  }

  void describe(Manifest& manifest) const {
    manifest.order = kVertexOrderNames[static_cast<std::size_t>(options_.order)];
    manifest.transforms = describe_transforms(options_);
    if (manifest.edges.data.types) {
      manifest.edge_types = std::max<std::int64_t>(1, table_edges_->largest_type() + 1);
    }
    manifest.findings = json_text(findings_to_json(findings_));
  }

  FileSystem& files_;
  const ImportOptions& options_;
  const std::string& output_;
  const Control& control_;
  ImportMemory memory_;
  std::unique_ptr<TableReader> edge_table_, feature_table_;
  EdgeDataTables edge_data_;
  std::unique_ptr<VertexValues> values_;
  std::unique_ptr<DatasetWriter> writer_;
  std::unique_ptr<RemappedVertices> remapped_;  // null: ids are dense
  std::unique_ptr<EdgeSource> edges_;
  std::unique_ptr<EdgeSource> table_owner_;  // while edges_ is a spool
  TableEdgeSource* table_edges_ = nullptr;
  std::optional<std::int64_t> stored_edges_;  // where they were counted beforehand
  bool largest_id_counts_ = false;            // nothing else says how many vertices there are
  std::vector<VertexIndex> order_, new_ids_;  // empty: natural
  Findings findings_;
};

}  // namespace

Findings import_dataset(FileSystem& files, const ImportOptions& options, const std::string& output,
                        const Control& control) {
  return Import(files, options, output, control).run();
}

}  // namespace ooc
