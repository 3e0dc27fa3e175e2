#include "storage/format/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "storage/base/checked_json.h"
#include "storage/base/errors.h"
#include "storage/base/json_text.h"
#include "storage/format/tensor_layout.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormatName = "ooc-dataset";

// Ids that are strings have 1 to kMaxIdBytes bytes each.
bool has_possible_ids(const Manifest& manifest) {
  if (manifest.remapped != IdKind::kStrings) return manifest.id_bytes == 0;
  return manifest.id_bytes >= manifest.edges.vertices &&
         manifest.id_bytes <= kMaxIdBytes * manifest.edges.vertices;
}

bool has_possible_scaling(const Manifest& manifest) {
  const auto& [norm, missing, mean, factor] = manifest.feature_scaling;
  const auto cols = static_cast<std::size_t>(manifest.feature_cols);
  return (mean.empty() || mean.size() == cols) && (factor.empty() || factor.size() == cols);
}

// A training vertex of labels in a matrix has one at least.
bool has_possible_labels(const Manifest& manifest) {
  const std::int64_t rows = manifest.split_counts[0], missing = manifest.missing_train_labels;
  if (manifest.classes < 0 || missing < 0) return false;
  const std::size_t names = manifest.class_names.size();
  if (names > 0 && names != static_cast<std::size_t>(manifest.classes)) return false;
  return missing == 0 ||
         (rows > 0 && missing / rows < label_cols(manifest.labels, manifest.classes));
}

void check_counts(const Manifest& manifest, const std::string& path) {
  if (is_possible(manifest.edges) && manifest.feature_cols >= 0 && has_possible_labels(manifest) &&
      manifest.edge_types >= 0 && manifest.edge_types <= kMaxEdgeTypes &&
      has_possible_ids(manifest) && has_possible_scaling(manifest)) {
    return;
  }
  throw DataError("manifest with impossible counts", path, "import the dataset again");
}

DType feature_dtype_of(const std::string& name, const std::string& path) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (dtype_name(dtype) == name) return dtype;
  }
  throw DataError(fmt::format("features of the unknown type '{}'", name), path, "use a newer ooc");
}

LabelKind label_kind_of(const std::string& name, const std::string& path) {
  for (std::size_t i = 0; i < kLabelKindNames.size(); ++i) {
    if (kLabelKindNames[i] == name) return static_cast<LabelKind>(i);
  }
  throw DataError(fmt::format("labels of the unknown kind '{}'", name), path, "use a newer ooc");
}

IdKind id_kind_of(const std::string& name, const std::string& path) {
  for (std::size_t i = 0; i < kIdKindNames.size(); ++i) {
    if (kIdKindNames[i] == name) return static_cast<IdKind>(i);
  }
  throw DataError(fmt::format("ids of the unknown kind '{}'", name), path, "use a newer ooc");
}

template <class Count>
void read_features(const Json& features, Count&& count, const std::string& path,
                   Manifest& manifest) {
  manifest.feature_cols = count(features.at("cols"));
  manifest.feature_dtype = feature_dtype_of(features.at("dtype"), path);
  if (!features.contains("scaling")) return;  // made before
  manifest.feature_scaling = feature_scaling_from_json(features.at("scaling"));
}

}  // namespace

DType label_dtype(LabelKind kind) {
  if (kind == LabelKind::kMulti) return DType::kU8;
  return kind == LabelKind::kValues ? DType::kF32 : DType::kI32;
}

bool is_possible(const EdgeLayout& layout) {
  constexpr double kMaxChunks = 1e12;
  const auto is_cut = [](std::int64_t rows) {
    return rows > 0 && rows <= kMaxBlockRows &&
           std::has_single_bit(static_cast<std::uint64_t>(rows));
  };
  return layout.vertices > 0 && layout.vertices <= kMaxVertices && layout.edges >= 0 &&
         is_cut(layout.block_rows) && is_cut(layout.span_rows) &&
         layout.span_rows >= layout.block_rows && layout.panel_blocks > 0 &&
         layout.panel_blocks <= 65536 && layout.data.feature_cols >= 0 &&
         layout.data.feature_cols <= kMaxEdgeFeatureCols &&
         static_cast<double>(layout.span_count()) * static_cast<double>(layout.panel_count()) <=
             kMaxChunks;
}

std::string manifest_to_text(const Manifest& manifest) {
  Json json;
  json["format"] = kFormatName;
  json["version"] = kFormatVersion;
  json["vertices"] = manifest.edges.vertices;
  json["edges"] = manifest.edges.edges;
  json["block_rows"] = manifest.edges.block_rows;
  json["slice_width"] = kSliceWidth;
  json["span_rows"] = manifest.edges.span_rows;
  json["panel_blocks"] = manifest.edges.panel_blocks;
  json["symmetric"] = manifest.symmetric;
  json["features"] = {{"cols", manifest.feature_cols},
                      {"dtype", dtype_name(manifest.feature_dtype)}};
  if (!manifest.feature_scaling.norm.empty()) {
    json["features"]["scaling"] = to_json(manifest.feature_scaling);
  }
  json["edge_data"] = {{"weights", manifest.edges.data.weights},
                       {"types", manifest.edge_types},
                       {"feature_cols", manifest.edges.data.feature_cols}};
  json["classes"] = manifest.classes;
  json["labels"] = kLabelKindNames[static_cast<std::size_t>(manifest.labels)];
  if (!manifest.class_names.empty()) json["class_names"] = manifest.class_names;
  json["splits"] = {{"train", manifest.split_counts[0]},
                    {"valid", manifest.split_counts[1]},
                    {"test", manifest.split_counts[2]}};
  if (manifest.missing_train_labels > 0) {
    json["missing_train_labels"] = manifest.missing_train_labels;
  }
  json["order"] = manifest.order;
  json["remapped"] = kIdKindNames[static_cast<std::size_t>(manifest.remapped)];
  if (manifest.remapped == IdKind::kStrings) json["id_bytes"] = manifest.id_bytes;
  json["transforms"] = Json::parse(manifest.transforms);
  json["findings"] = Json::parse(manifest.findings);
  for (const auto& [name, info] : manifest.files) {
    json["files"][name] = {{"bytes", info.bytes},
                           {"index_checksum", checksum_text(info.index_checksum)}};
  }
  return checked_json_text(std::move(json));
}

Manifest manifest_from_text(const std::string& text, const std::string& path) {
  // Converting a float that no integer can hold has no defined result.
  const auto count = [&](const Json& value) {
    if (value.is_number_integer()) return value.get<std::int64_t>();
    throw DataError("manifest with a count that is no integer", path, "import the dataset again");
  };
  try {
    Json json = parse_shallow_json(text);
    if (json.at("format") != kFormatName) {
      throw DataError("not a dataset's manifest", path, "name a directory that ooc-prep made");
    }
    const std::int64_t version = count(json.at("version"));
    if (version > kFormatVersion) {
      throw DataError(fmt::format("dataset format version {} is newer than this ooc knows ({})",
                                  version, kFormatVersion),
                      path, "use a newer ooc");
    }
    const std::optional<std::string> checksum = take_checksum(json);
    if (!checksum) {
      throw DataError("manifest has the wrong checksum", path, "import the dataset again");
    }
    if (json.at("slice_width") != kSliceWidth) {
      throw DataError("dataset with another slice width", path, "import the dataset again");
    }
    Manifest manifest;
    manifest.checksum = *checksum;
    manifest.edges.vertices = count(json.at("vertices"));
    manifest.edges.edges = count(json.at("edges"));
    manifest.edges.block_rows = count(json.at("block_rows"));
    manifest.edges.span_rows = count(json.at("span_rows"));
    manifest.edges.panel_blocks = count(json.at("panel_blocks"));
    manifest.symmetric = json.at("symmetric");
    read_features(json.at("features"), count, path, manifest);
    const Json& edge_data = json.at("edge_data");
    manifest.edges.data.weights = edge_data.at("weights");
    manifest.edge_types = count(edge_data.at("types"));
    manifest.edges.data.types = manifest.edge_types > 0;
    manifest.edges.data.feature_cols = count(edge_data.at("feature_cols"));
    manifest.classes = count(json.at("classes"));
    manifest.labels = label_kind_of(json.at("labels"), path);
    manifest.class_names = json.value("class_names", std::vector<std::string>());
    const Json& splits = json.at("splits");
    manifest.split_counts[0] = count(splits.at("train"));
    manifest.split_counts[1] = count(splits.at("valid"));
    manifest.split_counts[2] = count(splits.at("test"));
    manifest.missing_train_labels = count(json.value("missing_train_labels", Json(0)));
    manifest.order = json.at("order");
    manifest.remapped = id_kind_of(json.value("remapped", "none"), path);  // absent: made before
    if (manifest.remapped == IdKind::kStrings) manifest.id_bytes = count(json.at("id_bytes"));
    manifest.transforms = json_text(json.at("transforms"));
    manifest.findings = json_text(json.at("findings"));
    for (const auto& [name, info] : json.at("files").items()) {
      manifest.files[name] = {static_cast<std::uint64_t>(count(info.at("bytes"))),
                              checksum_of_text(info.at("index_checksum"))};
    }
    check_counts(manifest, path);
    return manifest;
  } catch (const nlohmann::json::exception&) {
    throw DataError("damaged manifest", path, "import the dataset again");
  } catch (const std::logic_error&) {  // stoull
    throw DataError("unreadable manifest (an index_checksum is no hexadecimal number)", path,
                    "import the dataset again");
  }
}

}  // namespace ooc
