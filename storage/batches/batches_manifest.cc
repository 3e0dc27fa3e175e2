#include "storage/batches/batches_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "storage/base/checked_json.h"
#include "storage/base/errors.h"
#include "storage/base/json_text.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMostHops = 64;

template <class Number>
Number sum_of(const std::vector<BatchSection>& sections, Number BatchSection::*member) {
  return std::accumulate(
      sections.begin(), sections.end(), Number{0},
      [&](Number sum, const BatchSection& section) { return sum + section.*member; });
}

// Converting a float that no integer can hold has no defined result.
std::int64_t count(const Json& value, const std::string& path) {
  if (value.is_number_integer() && value.get<std::int64_t>() >= 0) return value;
  throw DataError("manifest with a count that is none", path, kSampleAgain);
}

std::vector<std::int64_t> counts(const Json& values, const std::string& path) {
  std::vector<std::int64_t> found;
  for (const Json& value : values) found.push_back(count(value, path));
  return found;
}

Split split_of(const std::string& name, const std::string& path) {
  const auto found = std::find(kSplitWords.begin(), kSplitWords.end(), name);
  if (found != kSplitWords.end()) return static_cast<Split>(found - kSplitWords.begin());
  throw DataError(fmt::format("batches of an unknown split, '{}'", name), path, "use a newer ooc");
}

Json to_json(const SampledBy& sampled) {
  Json json;
  json["fanouts"] = sampled.fanouts;
  json["batch_size"] = sampled.batch_size;
  json["replace"] = sampled.replace;
  json["sampler"] = sampled.sampler;
  json["batch_dependency"] = sampled.batch_dependency;
  json["weighted"] = sampled.weighted;
  json["seed"] = sampled.seed;
  return json;
}

SampledBy sampled_from_json(const Json& json, const std::string& path) {
  SampledBy sampled;
  for (const Json& fanout : json.at("fanouts")) {
    if (!fanout.is_number_integer()) throw DataError("damaged manifest", path, kSampleAgain);
    sampled.fanouts.push_back(fanout.get<std::int64_t>());
  }
  sampled.batch_size = count(json.at("batch_size"), path);
  sampled.replace = json.at("replace");
  sampled.sampler = json.at("sampler");
  sampled.batch_dependency = count(json.at("batch_dependency"), path);
  sampled.weighted = json.at("weighted");
  sampled.seed = count(json.at("seed"), path);
  return sampled;
}

constexpr std::int64_t kMostCols = 1 << 24;

// What the rest is computed with.
void check(const BatchesManifest& manifest, const std::string& path) {
  const std::vector<std::int64_t>& most = manifest.most_rows;
  const Manifest& graph = manifest.dataset;
  const std::int64_t labels = graph.labels == LabelKind::kValues ? 0 : graph.classes;
  const bool knows_labels =
      manifest.train_labels.empty() || std::ssize(manifest.train_labels) == labels;
  const bool possible =
      knows_labels && graph.feature_cols <= kMostCols && graph.classes <= kMostCols &&
      manifest.most_edges <= std::numeric_limits<std::uint32_t>::max() && manifest.hops() > 0 &&
      manifest.hops() <= kMostHops && !manifest.sections.empty() &&
      static_cast<std::int64_t>(most.size()) == manifest.hops() + 1 && most.front() > 0 &&
      std::is_sorted(most.begin(), most.end()) && most.back() <= manifest.dataset.edges.vertices &&
      std::all_of(manifest.sections.begin(), manifest.sections.end(),
                  [&](const BatchSection& section) {
                    return section.batches > 0 && section.seeds >= section.batches &&
                           section.seeds <= manifest.dataset.edges.vertices;
                  });
  if (possible) return;
  throw DataError("manifest with impossible counts", path, kSampleAgain);
}

}  // namespace

std::int64_t BatchesManifest::batches() const { return sum_of(sections, &BatchSection::batches); }

std::int64_t BatchesManifest::seeds() const { return sum_of(sections, &BatchSection::seeds); }

std::size_t BatchesManifest::section_of(std::int64_t batch) const {
  std::size_t section = 0;
  while (batch >= sections[section].batches) batch -= sections[section++].batches;
  return section;
}

std::int64_t BatchesManifest::first_batch(std::size_t section) const {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < section; ++i) first += sections[i].batches;
  return first;
}

std::vector<std::size_t> BatchesManifest::sections_of(Split split) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (sections[i].split == split) found.push_back(i);
  }
  return found;
}

std::vector<BatchTensor> batch_tensors(const Manifest& dataset) {
  std::vector<BatchTensor> tensors;
  for (const TensorSpec& spec : tensor_specs(dataset)) {
    const bool of_seeds = spec.name == "labels" || spec.name == "splits";
    const bool is_read =
        of_seeds || spec.name == "features" || spec.name == "ids" || spec.name == "degrees";
    if (!is_read || !dataset.files.contains(spec.name)) continue;
    tensors.push_back({spec.name, spec.dtype, spec.cols, of_seeds});
  }
  return tensors;
}

std::string to_text(const BatchesManifest& manifest) {
  Json json;
  json["format"] = kBatchesFormat;
  json["version"] = kVersion;
  json["dataset"] = Json::parse(manifest_to_text(manifest.dataset));
  json["sampled"] = to_json(manifest.sampled);
  for (const BatchTensor& tensor : batch_tensors(manifest.dataset)) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"dtype", dtype_name(tensor.dtype)},
                               {"cols", tensor.cols},
                               {"rows", tensor.of_seeds ? "seeds" : "all"}});
  }
  for (const BatchSection& section : manifest.sections) {
    json["sections"].push_back({{"split", kSplitWords[static_cast<std::size_t>(section.split)]},
                                {"batches", section.batches},
                                {"seeds", section.seeds}});
  }
  json["train_labels"] = manifest.train_labels;
  json["vertices"] = manifest.vertices;
  json["edges"] = manifest.edges;
  json["most"] = {{"rows", manifest.most_rows}, {"edges", manifest.most_edges}};
  json["file"] = {{"bytes", manifest.file.bytes},
                  {"index_checksum", checksum_text(manifest.file.index_checksum)}};
  return checked_json_text(std::move(json));
}

BatchesManifest batches_manifest_from_text(const std::string& text, const std::string& path) {
  try {
    Json json = parse_shallow_json(text);
    if (json.at("format") != kBatchesFormat) {
      throw DataError("not the manifest of batches", path, "name what ooc-prep sample made");
    }
    if (const std::int64_t version = count(json.at("version"), path); version > kVersion) {
      throw DataError(fmt::format("batches of format version {}, which is newer than this ooc "
                                  "knows ({})",
                                  version, kVersion),
                      path, "use a newer ooc");
    }
    const std::optional<std::string> checksum = take_checksum(json);
    if (!checksum) throw DataError("manifest has the wrong checksum", path, kSampleAgain);
    BatchesManifest manifest;
    manifest.checksum = *checksum;
    manifest.dataset = manifest_from_text(json_text(json.at("dataset")), path);
    manifest.sampled = sampled_from_json(json.at("sampled"), path);
    for (const Json& section : json.at("sections")) {
      manifest.sections.push_back({split_of(section.at("split"), path),
                                   count(section.at("batches"), path),
                                   count(section.at("seeds"), path)});
    }
    for (const Json& labels : json.at("train_labels")) {
      manifest.train_labels.push_back({count(labels.at(0), path), count(labels.at(1), path)});
    }
    manifest.vertices = count(json.at("vertices"), path);
    manifest.edges = count(json.at("edges"), path);
    manifest.most_rows = counts(json.at("most").at("rows"), path);
    manifest.most_edges = count(json.at("most").at("edges"), path);
    const Json& file = json.at("file");
    manifest.file = {static_cast<std::uint64_t>(count(file.at("bytes"), path)),
                     checksum_of_text(file.at("index_checksum"))};
    check(manifest, path);
    return manifest;
  } catch (const nlohmann::json::exception&) {
    throw DataError("damaged manifest", path, kSampleAgain);
  } catch (const std::logic_error&) {  // of a checksum that is no hexadecimal number
    throw DataError("damaged manifest", path, kSampleAgain);
  }
}

}  // namespace ooc
