#include "storage/dataset/dataset_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/dataset/names_export.h"
#include "storage/io/output_directory.h"

namespace ooc {
namespace {

constexpr std::array<const char*, 3> kSplitFiles{"train_idx.npy", "valid_idx.npy", "test_idx.npy"};
constexpr std::array<const char*, 3> kEdgeDataFiles{"edge_weights.npy", "edge_types.npy",
                                                    "edge_features.npy"};
constexpr std::int64_t kStepRows = 1 << 14;      // read between two looks at the control
constexpr std::int64_t kWriteBytes = 256 << 10;  // of one write, where places are consecutive

// "train_idx.csv" and so on.
std::string name_list_of(std::size_t split) {
  const std::string array = kSplitFiles[split];
  return array.substr(0, array.rfind('.')) + ".csv";
}

constexpr const char* kClassNamesFile = "class_names.txt";

bool is_exported_name(const std::string& name) {
  const auto is = [&](const char* known) { return name == known; };
  const auto is_text = [&](std::size_t split) { return name == name_list_of(split); };
  return is("edges.npy") || is("edges.csv") || is("ids.npy") || is("ids.txt") || is_text(0) ||
         is_text(1) || is_text(2) || is("features.npy") || is("labels.npy") ||
         is(kClassNamesFile) || std::any_of(kSplitFiles.begin(), kSplitFiles.end(), is) ||
         std::any_of(kEdgeDataFiles.begin(), kEdgeDataFiles.end(), is);
}

// What the edges carry, tile by tile.
class EdgeDataFiles {
 public:
  using Create = std::function<NpyFileWriter(const std::string& name, std::string descr,
                                             std::int64_t item_bytes, std::int64_t cols)>;
  EdgeDataFiles(const EdgeData& data, const Create& create) {
    if (data.weights) weights_.emplace(create(kEdgeDataFiles[0], "<f4", 4, 0));
    if (data.types) types_.emplace(create(kEdgeDataFiles[1], "<i8", 8, 0));
    if (data.feature_cols > 0) {
      features_.emplace(create(kEdgeDataFiles[2], "<f4", 4, data.feature_cols));
    }
  }
  void add(const TileView& tile) {
    if (weights_) weights_->write_rows(row_, tile.weights, tile.edge_count);
    if (features_) features_->write_rows(row_, tile.features, tile.edge_count);
    if (types_) {
      wide_.assign(tile.types, tile.types + tile.edge_count);
      types_->write_rows(row_, wide_.data(), tile.edge_count);
    }
    row_ += tile.edge_count;
  }
  void finish() {
    for (auto* const file : {&weights_, &types_, &features_}) {
      if (*file) (*file)->finish();
    }
  }

 private:
  std::optional<NpyFileWriter> weights_, types_, features_;
  std::vector<std::int64_t> wide_;
  std::int64_t row_ = 0;
};

class Exporter {
 public:
  Exporter(FileSystem& files, const Dataset& dataset, const ExportOptions& options,
           const Control& control)
      : files_(files),
        dataset_(dataset),
        ids_(*dataset.tensor("ids")),
        original_ids_(dataset.tensor("original_ids")),
        named_(dataset.manifest().remapped == IdKind::kStrings),
        control_(control),
        memory_bytes_(options.memory_bytes),
        output_(files, options.output, options.force,
                {[&](const std::string& path) {
                   const std::vector<std::string> names = files.list(path);
                   return std::all_of(names.begin(), names.end(), is_exported_name);
                 },
                 "--force replaces what an earlier export wrote, and there is more"}) {
    if (memory_bytes_ < kLeastExportBytes) refuse_memory(kLeastExportBytes);
  }

  std::vector<ExportedArray> run() {
    write_edges();
    if (const VertexTensorFile* features = dataset_.tensor("features")) write_features(*features);
    if (const VertexTensorFile* labels = dataset_.tensor("labels")) write_labels(*labels);
    if (!dataset_.manifest().class_names.empty()) write_class_names();
    if (original_ids_ != nullptr) write_ids();
    if (named_) write_text("ids.txt", 0);
    for (std::size_t split = 0; split < kSplitFiles.size(); ++split) {
      if (!dataset_.has_splits() || dataset_.manifest().split_counts[split] == 0) continue;
      if (named_) {
        write_text(name_list_of(split), static_cast<std::int64_t>(split) + 1);
      } else {
        write_split(split);
      }
    }
    output_.commit();
    return std::move(arrays_);
  }

 private:
  [[noreturn]] void refuse_memory(std::int64_t needed) const {
    throw BudgetError(
        fmt::format("export needs {} of memory for its buffers", format_byte_size(needed)),
        fmt::format("{} allowed", format_byte_size(memory_bytes_)), "raise --memory");
  }

  NpyFileWriter create(const std::string& name, std::string descr, std::int64_t item_bytes,
                       std::int64_t rows, std::int64_t cols) {
    const NpyShape shape{std::move(descr), item_bytes, rows, cols};
    arrays_.push_back({name, shape});
    return {files_, output_.file_path(name), shape};
  }

  std::int64_t checked_id(std::int64_t id) const {
    if (id < 0 || id >= dataset_.vertices()) {
      throw DataError(fmt::format("an original id of {}", id), ids_.file().path(),
                      "import the dataset again");
    }
    return id;
  }

  // Places of rows [begin, begin + count) in the original order.
  void read_ids(std::int64_t begin, std::int64_t count, std::int64_t* out) const {
    ids_.read_rows(begin, count, out);
    for (std::int64_t i = 0; i < count; ++i) checked_id(out[i]);
  }

  // What the user calls them.
  void read_names(std::int64_t begin, std::int64_t count, std::int64_t* out) const {
    if (original_ids_ == nullptr) return read_ids(begin, count, out);
    original_ids_->read_rows(begin, count, out);
  }

  // Chunk after chunk: whatever belongs to edges is written at the row their chunk begins at. The
  // ids of a chunk's ends are those of one span and, tile by tile, of one block.
  void write_edges() {
    const EdgeFile& file = dataset_.edge_file(Direction::kIn);
    const EdgeLayout& layout = file.layout();
    std::optional<NpyFileWriter> writer;
    if (named_) {
      arrays_.push_back({"edges.csv", {"", 0, layout.edges + 1, 0}});
    } else {
      writer.emplace(create("edges.npy", "<i8", 8, layout.edges, 2));
    }
    EdgeDataFiles data(layout.data, [&](const std::string& name, std::string descr,
                                        std::int64_t item_bytes, std::int64_t cols) {
      return create(name, std::move(descr), item_bytes, layout.edges, cols);
    });
    if (named_) {
      write_named_edges(files_, dataset_, output_.file_path("edges.csv"), control_,
                        [&](const TileView& tile) { data.add(tile); });
      return data.finish();
    }
    std::vector<std::int64_t> sources;
    std::vector<Edge> buffer;
    constexpr std::size_t kBufferEdges = kWriteBytes / sizeof(Edge);
    static_assert(sizeof(Edge) == 16);
    std::int64_t written = 0;
    const auto flush = [&] {
      writer->write_rows(written, buffer.data(), static_cast<std::int64_t>(buffer.size()));
      written += static_cast<std::int64_t>(buffer.size());
      buffer.clear();
      control_.step("writing edges", static_cast<double>(written),
                    static_cast<double>(layout.edges));
    };
    for (std::int64_t span = 0; span < layout.span_count(); ++span) {
      const std::int64_t first = span * layout.span_rows;
      sources.resize(static_cast<std::size_t>(std::min(layout.span_rows, layout.vertices - first)));
      read_names(first, static_cast<std::int64_t>(sources.size()), sources.data());
      for (std::int64_t panel = 0; panel < layout.panel_count(); ++panel) {
        for (const PanelTile& entry : file.tiles(span, panel)) {
          const VertexTensorFile& names = original_ids_ != nullptr ? *original_ids_ : ids_;
          const auto* ids = reinterpret_cast<const std::int64_t*>(names.chunk(entry.block, 0));
          for_each_edge(entry.tile, [&](std::uint16_t row, std::uint16_t source) {
            const std::int64_t destination =
                original_ids_ != nullptr ? ids[row] : checked_id(ids[row]);
            buffer.push_back({sources[source], destination});
            if (buffer.size() == kBufferEdges) flush();
          });
          data.add(entry.tile);
        }
        control_.check();
      }
    }
    flush();
    writer->finish();
    data.finish();
  }

  // Rows in the original order: as many as fit the memory are read at a time, sorted by their place
  // and written there, neighbours together.
  // `read(begin, count, out)` makes rows of the array from those of the dataset.
  void write_rows(NpyFileWriter writer, const std::string& phase,
                  const std::function<void(std::int64_t, std::int64_t, std::byte*)>& read) {
    using Place = std::pair<std::int64_t, std::int64_t>;  // original id, row of the batch
    const auto row_bytes = static_cast<std::int64_t>(writer.shape().row_bytes());
    const std::int64_t cost =
        row_bytes + static_cast<std::int64_t>(sizeof(Place) + sizeof(std::int64_t));
    const std::int64_t reserved = kWriteBytes + std::max(kWriteBytes, row_bytes);
    const std::int64_t budget = memory_bytes_ - reserved;
    if (budget < cost) refuse_memory(cost + reserved);
    const std::int64_t batch = std::min(dataset_.vertices(), budget / cost);
    std::vector<std::byte> rows(static_cast<std::size_t>(batch * row_bytes));
    std::vector<Place> places(static_cast<std::size_t>(batch));
    std::vector<std::int64_t> ids(static_cast<std::size_t>(std::min(batch, kStepRows)));
    for (std::int64_t begin = 0; begin < dataset_.vertices(); begin += batch) {
      const std::int64_t count = std::min(batch, dataset_.vertices() - begin);
      for (std::int64_t i = 0; i < count; i += kStepRows) {
        control_.step(phase, static_cast<double>(begin + i / 2),
                      static_cast<double>(dataset_.vertices()));
        const std::int64_t part = std::min(kStepRows, count - i);
        read(begin + i, part, rows.data() + i * row_bytes);
        read_ids(begin + i, part, ids.data());
        for (std::int64_t j = 0; j < part; ++j) {
          places[static_cast<std::size_t>(i + j)] = {ids[static_cast<std::size_t>(j)], i + j};
        }
      }
      tbb::parallel_sort(places.begin(), places.begin() + count);
      write_sorted(writer, {places.data(), static_cast<std::size_t>(count)}, rows.data());
    }
    control_.step(phase, 1, 1);
    writer.finish();
  }

  void write_sorted(NpyFileWriter& writer,
                    std::span<const std::pair<std::int64_t, std::int64_t>> places,
                    const std::byte* rows) {
    const std::uint64_t row_bytes = writer.shape().row_bytes();
    const std::size_t most = std::max<std::size_t>(1, kWriteBytes / row_bytes);
    std::vector<std::byte> run;
    for (std::size_t begin = 0; begin < places.size();) {
      run.clear();
      std::size_t end = begin;
      const std::int64_t first = places[begin].first;
      for (; end < places.size() && end - begin < most &&
             places[end].first == first + static_cast<std::int64_t>(end - begin);
           ++end) {
        const std::byte* row = rows + static_cast<std::uint64_t>(places[end].second) * row_bytes;
        run.insert(run.end(), row, row + row_bytes);
      }
      writer.write_rows(first, run.data(), static_cast<std::int64_t>(end - begin));
      control_.check();
      begin = end;
    }
  }

  void write_features(const VertexTensorFile& features) {
    write_rows(create("features.npy", "<f4", 4, dataset_.vertices(), features.layout().cols),
               "writing features", [&](std::int64_t begin, std::int64_t count, std::byte* out) {
                 features.read_rows_f32(begin, count, reinterpret_cast<float*>(out));
               });
  }

  void write_labels(const VertexTensorFile& labels) {
    const LabelKind kind = dataset_.manifest().labels;
    const std::int64_t rows = dataset_.vertices(), cols = labels.layout().cols;
    std::vector<std::int32_t> classes(static_cast<std::size_t>(kStepRows));
    write_rows(kind == LabelKind::kSingle ? create("labels.npy", "<i8", 8, rows, 0)
               : kind == LabelKind::kMulti
                   ? create("labels.npy", "|i1", 1, rows, cols)
                   : create("labels.npy", "<f4", 4, rows, cols > 1 ? cols : 0),
               "writing labels", [&](std::int64_t begin, std::int64_t count, std::byte* out) {
                 if (kind != LabelKind::kSingle) {  // kUnlabelled is -1 as a signed byte
                   labels.read_rows(begin, count, out);
                   return;
                 }
                 labels.read_rows(begin, count, classes.data());
                 std::copy_n(classes.data(), count, reinterpret_cast<std::int64_t*>(out));
               });
  }

  void write_class_names() {
    const std::vector<std::string>& names = dataset_.manifest().class_names;
    const std::string text = fmt::format("{}\n", fmt::join(names, "\n"));
    const auto file = files_.create(output_.file_path(kClassNamesFile));
    file->write_at(0, std::as_bytes(std::span(text)));
    file->close();
    arrays_.push_back({kClassNamesFile, {"", 0, std::ssize(names), 0}});
  }

  void write_ids() {
    write_rows(create("ids.npy", "<i8", 8, dataset_.vertices(), 0), "writing ids",
               [&](std::int64_t begin, std::int64_t count, std::byte* out) {
                 original_ids_->read_rows(begin, count, out);
               });
  }

  // The names of one split, or of all vertices.
  void write_text(const std::string& name, std::int64_t split) {
    const std::int64_t lines = write_names(files_, dataset_, output_.file_path(name),
                                           {split, memory_bytes_ / 2}, control_);
    arrays_.push_back({name, {"", 0, lines, 0}});
  }

  // The ids of one split, ascending: a bit for each vertex, and its id where that is another, for
  // as many vertices at a time as fit.
  void write_split(std::size_t split) {
    const std::int64_t size = dataset_.manifest().split_counts[split];
    NpyFileWriter writer = create(kSplitFiles[split], "<i8", 8, size, 0);
    std::vector<std::int64_t> members, ids(static_cast<std::size_t>(kStepRows)), names(ids.size());
    std::vector<std::uint8_t> splits(static_cast<std::size_t>(kStepRows));
    const bool remapped = original_ids_ != nullptr;
    const std::int64_t range =
        std::min(dataset_.vertices(), remapped ? memory_bytes_ / 2 / 16 : memory_bytes_ / 2 * 8);
    std::vector<bool> marked;
    std::vector<std::int64_t> name_of(static_cast<std::size_t>(remapped ? range : 0));
    std::int64_t written = 0;
    const auto flush = [&] {
      const auto count = static_cast<std::int64_t>(members.size());
      if (written + count > size) {
        throw DataError("splits disagree with the manifest", dataset_.path(),
                        "import the dataset again");
      }
      writer.write_rows(written, members.data(), count);
      written += count;
      members.clear();
    };
    for (std::int64_t first = 0; first < dataset_.vertices(); first += range) {
      marked.assign(static_cast<std::size_t>(std::min(range, dataset_.vertices() - first)), false);
      for (std::int64_t begin = 0; begin < dataset_.vertices(); begin += kStepRows) {
        control_.step("writing splits", static_cast<double>(begin),
                      static_cast<double>(dataset_.vertices()));
        const std::int64_t count = std::min(kStepRows, dataset_.vertices() - begin);
        read_ids(begin, count, ids.data());
        if (remapped) read_names(begin, count, names.data());
        dataset_.tensor("splits")->read_rows(begin, count, splits.data());
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
          const auto place = static_cast<std::size_t>(ids[i] - first);
          if (splits[i] != split + 1 || place >= marked.size()) continue;
          marked[place] = true;
          if (remapped) name_of[place] = names[i];
        }
      }
      for (std::size_t i = 0; i < marked.size(); ++i) {
        if (marked[i]) {
          members.push_back(remapped ? name_of[i] : first + static_cast<std::int64_t>(i));
        }
        if (members.size() == kWriteBytes / sizeof(std::int64_t)) flush();
      }
    }
    flush();
    writer.finish();
  }

  FileSystem& files_;
  const Dataset& dataset_;
  const VertexTensorFile& ids_;
  const VertexTensorFile* original_ids_;  // null where `ids_` are what the user calls them,
  bool named_;                            // or where ids are strings
  const Control& control_;
  std::int64_t memory_bytes_;
  OutputDirectory output_;
  std::vector<ExportedArray> arrays_;
};

}  // namespace

std::vector<ExportedArray> export_dataset(FileSystem& files, const Dataset& dataset,
                                          const ExportOptions& options, const Control& control) {
  return Exporter(files, dataset, options, control).run();
}

}  // namespace ooc
