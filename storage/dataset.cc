#include "storage/dataset.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::string_view kImportAgain = "import the dataset again";

// Calls visit(source, destination) for every edge, as the file names them.
template <class Visit>
void for_each_edge_of(const EdgeFile& file, std::string_view phase, const Control& control,
                      Visit&& visit) {
  const EdgeLayout& layout = file.layout();
  std::int64_t chunk = 0;
  for (std::int64_t span = 0; span < layout.span_count(); ++span) {
    for (std::int64_t panel = 0; panel < layout.panel_count(); ++panel) {
      control.step(phase, static_cast<double>(chunk++), static_cast<double>(layout.chunk_count()));
      for (const PanelTile& entry : file.tiles(span, panel)) {
        for_each_edge(entry.tile, [&](std::uint16_t row, std::uint16_t source) {
          visit(span * layout.span_rows + source, entry.block * layout.block_rows + row);
        });
      }
    }
  }
}

// SplitMix64's finaliser: every bit of the result depends on every bit of `value`.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Summed over edges: a fingerprint of the multiset of them, whatever their order.
std::uint64_t edge_hash(VertexId source, VertexId destination) {
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  return mix(mix(static_cast<std::uint64_t>(source) + kStep) +
             static_cast<std::uint64_t>(destination));
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

void Dataset::verify_edges(const Control& control) const {
  const auto stored = read_all<std::int32_t>(*degrees_);
  std::vector<std::int32_t> counted(stored.size(), 0);
  const auto count = [&](VertexId vertex, std::int64_t column) {
    ++counted[static_cast<std::size_t>(vertex * kDegreeColumns + column)];
  };
  std::uint64_t hash_in = 0, hash_out = 0;
  for_each_edge_of(*in_, "counting in-edges", control, [&](VertexId u, VertexId v) {
    count(v, u == v ? kSelfLoops : kInDegree);
    hash_in += edge_hash(u, v);
  });
  // A symmetric graph's edges are their own reverse.
  const EdgeFile& out = edge_file(Direction::kOut);
  for_each_edge_of(out, "counting out-edges", control, [&](VertexId v, VertexId u) {
    if (u != v) count(u, kOutDegree);
    hash_out += edge_hash(u, v);
  });
  if (stored != counted) {
    throw DataError("degrees disagree with the edges", degrees_->file().path(), kImportAgain);
  }
  if (hash_in != hash_out) {
    throw DataError("edges.in and edges.out hold different edges", path_, kImportAgain);
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

void Dataset::verify(const Control& control) const {
  for (const EdgeFile* file : {in_.get(), out_.get()}) {
    if (file != nullptr) file->file().verify_all(control);
  }
  for (const auto* tensor : {&features_, &labels_, &splits_, &ids_, &degrees_}) {
    if (*tensor != nullptr) (*tensor)->file().verify_all(control);
  }
  verify_edges(control);  // and the structure of every tile
  control.check();
  verify_ids();
  control.check();
  check_labels();
}

}  // namespace ooc
