#include "storage/dataset/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kBatchElements = 1 << 20;

constexpr std::int64_t kWrong = -1;

// How many labels each row of [begin, begin + count) has; kWrong where an entry is neither a label
// nor missing.
template <class T, class IsLabel, class IsMissing>
std::vector<std::int64_t> count_labels(const VertexTensorFile& file, std::int64_t begin,
                                       std::int64_t count, IsLabel&& is_label,
                                       IsMissing&& is_missing) {
  const std::int64_t cols = file.layout().cols;
  std::vector<T> values(static_cast<std::size_t>(count * cols));
  file.read_rows(begin, count, values.data());
  std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const T* row = values.data() + i * cols;
    const std::int64_t labelled = std::count_if(row, row + cols, is_label);
    const std::int64_t missing = std::count_if(row, row + cols, is_missing);
    labels[static_cast<std::size_t>(i)] = labelled + missing == cols ? labelled : kWrong;
  }
  return labels;
}

std::vector<std::int64_t> count_labels(const VertexTensorFile& file, const Manifest& manifest,
                                       std::int64_t begin, std::int64_t count) {
  switch (manifest.labels) {
    case LabelKind::kMulti:
      return count_labels<std::uint8_t>(
          file, begin, count, [](std::uint8_t label) { return label <= 1; },
          [](std::uint8_t label) { return label == kUnlabelled; });
    case LabelKind::kValues:
      return count_labels<float>(
          file, begin, count, [](float value) { return std::isfinite(value); },
          [](float value) { return std::isnan(value); });
    case LabelKind::kSingle:
      break;
  }
  return count_labels<std::int32_t>(
      file, begin, count,
      [&](std::int32_t label) { return label >= 0 && label < manifest.classes; },
      [](std::int32_t label) { return label == -1; });
}

}  // namespace

void Dataset::check_info(const std::string& name, const ChunkFileReader& file) const {
  const auto found = manifest_.files.find(name);
  if (found == manifest_.files.end() || found->second != file.info()) {
    throw DataError("file does not belong to this dataset's manifest", file.path(), kImportAgain);
  }
}

std::vector<TensorSpec> tensor_specs(const Manifest& manifest) {
  const std::int64_t rows = manifest.edges.vertices;
  std::vector<TensorSpec> specs{
      {"features", manifest.feature_dtype, rows, manifest.feature_cols, manifest.feature_cols > 0},
      {"labels", label_dtype(manifest.labels), rows, label_cols(manifest.labels, manifest.classes),
       false},
      {"splits", DType::kU8, rows, 1, false},
      {"ids", DType::kI64, rows, 1, true},
      {"degrees", DType::kI32, rows, kDegreeColumns, true},
  };
  if (manifest.remapped == IdKind::kIntegers) {
    specs.push_back({"original_ids", DType::kI64, rows, 1, true});
  }
  if (manifest.remapped == IdKind::kStrings) {
    specs.push_back({"original_id_ends", DType::kI64, rows, 1, true});
    specs.push_back({"original_id_bytes", DType::kU8, manifest.id_bytes, 1, true});
  }
  return specs;
}

void check_is_dataset(FileSystem& files, const std::string& path) {
  if (!files.exists(path)) {
    throw DataError("dataset not found", path, "make one with ooc-prep import");
  }
  if (!files.is_directory(path) || !files.exists(join_path(path, kManifestFile))) {
    throw DataError("not a dataset directory (no manifest.json)", path,
                    "make one with ooc-prep import");
  }
}

Dataset Dataset::open(FileSystem& files, const std::string& path, VerifyPolicy verify) {
  check_is_dataset(files, path);
  const std::string manifest_path = join_path(path, kManifestFile);
  Dataset dataset;
  dataset.files_ = &files;
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
  for (const TensorSpec& spec : tensor_specs(manifest)) {
    if (manifest.files.contains(spec.name)) {
      const auto [tensor, added] =
          dataset.tensors_.try_emplace(spec.name, files, join_path(path, spec.name), verify,
                                       spec.dtype, spec.rows, manifest.edges.block_rows, spec.cols);
      dataset.check_info(spec.name, tensor->second.file());
    } else if (spec.required) {
      throw DataError(fmt::format("dataset without {}", spec.name), manifest_path, kImportAgain);
    }
  }
  return dataset;
}

const EdgeFile& Dataset::edge_file(Direction direction) const {
  return direction == Direction::kIn || manifest_.symmetric ? *in_ : *out_;
}

const VertexTensorFile* Dataset::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

void Dataset::check_labels() const {
  const VertexTensorFile* labels = tensor("labels");
  const VertexTensorFile* splits = tensor("splits");
  const auto refuse = [](std::string_view what, const VertexTensorFile& file, std::int64_t row) {
    throw DataError(what, fmt::format("{}, row {}", file.file().path(), row), kImportAgain);
  };
  const std::int64_t cols = labels == nullptr ? 1 : labels->layout().cols;
  const std::int64_t batch = std::max<std::int64_t>(1, kBatchElements / cols);
  std::int64_t counts[4] = {0, 0, 0, 0};
  std::int64_t missing = 0;  // of the train split
  for (std::int64_t begin = 0; begin < vertices(); begin += batch) {
    const std::int64_t count = std::min(batch, vertices() - begin);
    std::vector<std::int64_t> labelled(static_cast<std::size_t>(count), cols);
    if (labels != nullptr) labelled = count_labels(*labels, manifest_, begin, count);
    std::vector<std::uint8_t> split(static_cast<std::size_t>(count), 0);
    if (splits != nullptr) splits->read_rows(begin, count, split.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t found = labelled[static_cast<std::size_t>(i)];
      const std::uint8_t value = split[static_cast<std::size_t>(i)];
      if (found == kWrong) {
        refuse(manifest_.labels == LabelKind::kValues
                   ? "labels that are not finite"
                   : fmt::format("labels that are none of {} classes", manifest_.classes),
               *labels, begin + i);
      }
      if (value > 3 || (value > 0 && found == 0)) {
        refuse(fmt::format("split {} of an unlabelled vertex, or unknown", value), *splits,
               begin + i);
      }
      ++counts[value];
      if (value == static_cast<std::uint8_t>(Split::kTrain)) missing += cols - found;
    }
  }
  if (splits != nullptr && !std::equal(counts + 1, counts + 4, manifest_.split_counts)) {
    throw DataError("splits disagree with the manifest", splits->file().path(), kImportAgain);
  }
  if (labels != nullptr && missing != manifest_.missing_train_labels) {
    throw DataError(fmt::format("the train split lacks {} labels, the manifest says {}", missing,
                                manifest_.missing_train_labels),
                    labels->file().path(), kImportAgain);
  }
}

}  // namespace ooc
