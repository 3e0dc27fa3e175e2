#include "bin/cli/batches_facts.h"

#include <nlohmann/json.hpp>

namespace ooc::cli {
namespace {

Facts sampled_facts(const SampledBy& sampled) {
  Facts facts;
  facts["fanouts"] = sampled.fanouts;
  facts["batch_size"] = sampled.batch_size;
  facts["sampler"] = sampled.sampler;
  if (sampled.batch_dependency > 1) facts["batch_dependency"] = sampled.batch_dependency;
  if (sampled.replace) facts["replace"] = true;
  if (sampled.weighted) facts["weighted"] = true;
  facts["seed"] = sampled.seed;
  return facts;
}

// By split; of the training vertices those of an epoch, and how many there are.
Facts seeds_facts(const BatchesManifest& manifest) {
  Facts facts;
  for (const BatchSection& section : manifest.sections) {
    Facts& split = facts[std::string(kSplitWords[static_cast<std::size_t>(section.split)])];
    split["seeds"] = section.seeds;
    split["batches"] = section.batches;
    if (section.split == Split::kTrain) split["epochs"] = split.value("epochs", 0) + 1;
  }
  return facts;
}

}  // namespace

Facts batches_facts(const std::string& path, const BatchesManifest& manifest) {
  const Manifest& dataset = manifest.dataset;
  Facts facts;
  facts["batches"] = path;
  facts["sampled"] = sampled_facts(manifest.sampled);
  facts["splits"] = seeds_facts(manifest);
  facts["total"] = {{"batches", manifest.batches()},
                    {"seeds", manifest.seeds()},
                    {"vertices", manifest.vertices},
                    {"edges", manifest.edges}};
  facts["largest_batch"] = {{"vertices", manifest.most_rows.back()},
                            {"by_level", manifest.most_rows},
                            {"edges", manifest.most_edges}};
  facts["dataset"] = {{"vertices", dataset.edges.vertices}, {"edges", dataset.edges.edges}};
  facts["dataset"]["features"] = dataset.feature_cols;
  if (dataset.feature_cols > 0)
    facts["dataset"]["feature_dtype"] = dtype_name(dataset.feature_dtype);
  if (dataset.classes > 0) {
    facts["dataset"][dataset.labels == LabelKind::kValues ? "targets" : "classes"] =
        dataset.classes;
    facts["dataset"]["labels"] = kLabelKindNames[static_cast<std::size_t>(dataset.labels)];
  }
  facts["dataset"]["edge_weights"] = dataset.edges.data.weights;
  facts["dataset"]["edge_types"] = dataset.edge_types;
  facts["dataset"]["edge_features"] = dataset.edges.data.feature_cols;
  facts["dataset"]["checksum"] = dataset.checksum;
  facts["total_bytes"] = manifest.file.bytes;
  return facts;
}

}  // namespace ooc::cli
