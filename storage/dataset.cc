#include "storage/dataset.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::string_view kImportAgain = "import the dataset again";

// Calls visit(span, panel, tiles) for every edge chunk.
template <class Visit>
void for_each_chunk(const EdgeFile& file, Visit&& visit) {
  for (std::int64_t span = 0; span < file.layout().span_count(); ++span) {
    for (std::int64_t panel = 0; panel < file.layout().panel_count(); ++panel) {
      visit(span, file.tiles(span, panel));
    }
  }
}

template <class T>
std::vector<T> read_all(const VertexTensorFile& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.layout().rows * tensor.layout().cols));
  tensor.read_rows(0, tensor.layout().rows, values.data());
  return values;
}

}  // namespace

void Dataset::check_info(const std::string& name, const ChunkFileReader& file) const {
  const auto found = manifest_.files.find(name);
  if (found == manifest_.files.end() || found->second != file.info()) {
    throw DataError("file does not belong to this dataset's manifest", file.path(), kImportAgain);
  }
}

std::unique_ptr<VertexTensorFile> Dataset::open_tensor(FileSystem& files, VerifyPolicy verify,
                                                       const std::string& name, DType dtype,
                                                       std::int64_t cols) {
  if (!manifest_.files.contains(name)) return nullptr;
  auto tensor = std::make_unique<VertexTensorFile>(files, join_path(path_, name), verify, dtype,
                                                   vertices(), manifest_.edges.block_rows, cols);
  check_info(name, tensor->file());
  return tensor;
}

Dataset Dataset::open(FileSystem& files, const std::string& path, VerifyPolicy verify) {
  const std::string manifest_path = join_path(path, kManifestFile);
  if (!files.exists(path)) {
    throw DataError("dataset not found", path, "make one with ooc-prep import");
  }
  if (!files.is_directory(path) || !files.exists(manifest_path)) {
    throw DataError("not a dataset directory (no manifest.json)", path,
                    "make one with ooc-prep import");
  }
  Dataset dataset;
  dataset.path_ = path;
  const std::vector<std::byte> bytes = read_file(files, manifest_path);
  dataset.manifest_ = manifest_from_text(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), manifest_path);
  const Manifest& manifest = dataset.manifest_;
  dataset.in_ =
      std::make_unique<EdgeFile>(files, join_path(path, "edges.in"), verify, manifest.edges);
  dataset.check_info("edges.in", dataset.in_->file());
  if (!manifest.symmetric) {
    dataset.out_ =
        std::make_unique<EdgeFile>(files, join_path(path, "edges.out"), verify, manifest.edges);
    dataset.check_info("edges.out", dataset.out_->file());
  }
  dataset.features_ =
      dataset.open_tensor(files, verify, "features", DType::kF32, manifest.feature_cols);
  dataset.labels_ = dataset.open_tensor(files, verify, "labels", DType::kI32, 1);
  dataset.splits_ = dataset.open_tensor(files, verify, "splits", DType::kU8, 1);
  dataset.ids_ = dataset.open_tensor(files, verify, "ids", DType::kI64, 1);
  dataset.degrees_ = dataset.open_tensor(files, verify, "degrees", DType::kI32, kDegreeColumns);
  if (!dataset.ids_ || !dataset.degrees_) {
    throw DataError("dataset without ids or degrees", manifest_path, kImportAgain);
  }
  return dataset;
}

const EdgeFile& Dataset::edge_file(Direction direction) const {
  return direction == Direction::kIn || manifest_.symmetric ? *in_ : *out_;
}

const VertexTensorFile* Dataset::tensor(std::string_view name) const {
  for (const auto& [known, file] : {std::pair("features", &features_),
                                    {"labels", &labels_},
                                    {"splits", &splits_},
                                    {"ids", &ids_},
                                    {"degrees", &degrees_}}) {
    if (name == known) return file->get();
  }
  return nullptr;
}

void Dataset::verify_degrees() const {
  const auto stored = read_all<std::int32_t>(*degrees_);
  std::vector<std::int32_t> counted(stored.size(), 0);
  const EdgeLayout& layout = manifest_.edges;
  const auto count = [&](const EdgeFile& file, std::int64_t column, bool sources) {
    for_each_chunk(file, [&](std::int64_t span, const std::vector<PanelTile>& tiles) {
      for (const PanelTile& entry : tiles) {
        for_each_edge(entry.tile, [&](std::uint16_t row, std::uint16_t source) {
          const std::int64_t u = span * layout.span_rows + source;
          const std::int64_t v = entry.block * layout.block_rows + row;
          const std::int64_t at = (sources ? u : v) * kDegreeColumns;
          if (u != v) ++counted[static_cast<std::size_t>(at + column)];
          if (u == v && column == kInDegree) ++counted[static_cast<std::size_t>(at + kSelfLoops)];
        });
      }
    });
  };
  count(*in_, kInDegree, false);
  // The out-degrees as edges.out has them: that both files hold the same edges per vertex.
  count(edge_file(Direction::kOut), kOutDegree, false);
  if (stored != counted) {
    throw DataError("degrees disagree with the edges", degrees_->file().path(), kImportAgain);
  }
  std::vector<std::int32_t> out_in_forward(counted.size(), 0);
  counted.swap(out_in_forward);
  count(*in_, kOutDegree, true);
  for (std::size_t at = kOutDegree; at < counted.size(); at += kDegreeColumns) {
    if (counted[at] != stored[at]) {
      throw DataError("edges.in and edges.out hold different edges", path_, kImportAgain);
    }
  }
}

void Dataset::verify_ids() const {
  const auto ids = read_all<std::int64_t>(*ids_);
  std::vector<bool> seen(ids.size(), false);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const std::int64_t id = ids[row];
    if (id < 0 || id >= vertices() || seen[static_cast<std::size_t>(id)]) {
      throw DataError(fmt::format("ids are no permutation (id {})", id),
                      fmt::format("{}, row {}", ids_->file().path(), row), kImportAgain);
    }
    seen[static_cast<std::size_t>(id)] = true;
  }
}

void Dataset::check_labels() const {
  std::vector<std::int32_t> labels;
  if (labels_) labels = read_all<std::int32_t>(*labels_);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < -1 || labels[row] >= manifest_.classes) {
      throw DataError(fmt::format("label {} of {} classes", labels[row], manifest_.classes),
                      fmt::format("{}, row {}", labels_->file().path(), row), kImportAgain);
    }
  }
  if (!splits_) return;
  const auto splits = read_all<std::uint8_t>(*splits_);
  std::int64_t counts[4] = {0, 0, 0, 0};
  for (std::size_t row = 0; row < splits.size(); ++row) {
    if (splits[row] > 3 || (splits[row] > 0 && !labels.empty() && labels[row] < 0)) {
      throw DataError(fmt::format("split {} of an unlabelled vertex, or unknown", splits[row]),
                      fmt::format("{}, row {}", splits_->file().path(), row), kImportAgain);
    }
    ++counts[splits[row]];
  }
  for (int split = 0; split < 3; ++split) {
    if (counts[split + 1] != manifest_.split_counts[split]) {
      throw DataError("splits disagree with the manifest", splits_->file().path(), kImportAgain);
    }
  }
}

void Dataset::verify(const std::function<void(std::string_view)>& progress) const {
  for (const EdgeFile* file : {in_.get(), out_.get()}) {
    if (file == nullptr) continue;
    progress(base_name(file->file().path()));
    file->file().verify_all();
    for_each_chunk(*file, [](std::int64_t, const std::vector<PanelTile>&) {});
  }
  for (const auto* tensor : {&features_, &labels_, &splits_, &ids_, &degrees_}) {
    if (*tensor == nullptr) continue;
    progress(base_name((*tensor)->file().path()));
    (*tensor)->file().verify_all();
  }
  progress("invariants");
  verify_degrees();
  verify_ids();
  check_labels();
}

}  // namespace ooc
