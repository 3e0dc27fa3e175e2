// manifest.json of sampled batches: how they were sampled, how many there are, and what a training
// has to know of the graph. Its last member is the XXH3-64 of everything before it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/batches/batch_layout.h"
#include "storage/dataset/dataset.h"
#include "storage/format/manifest.h"

namespace ooc {

// The name of the file that holds the batches, and the member "format" of their manifest.
inline constexpr const char* kBatchesFile = "batches";
inline constexpr std::string_view kBatchesFormat = "ooc-batches";

inline constexpr std::array<std::string_view, 4> kSplitWords{"none", "train", "valid", "test"};

// The tensors of a dataset that batches have rows of: features, labels, splits, ids and degrees, as
// far as it has them.
std::vector<BatchTensor> batch_tensors(const Manifest& dataset);

// In the words of ooc-train's options.
struct SampledBy {
  std::vector<std::int64_t> fanouts;  // hop by hop from the seeds on
  std::int64_t batch_size = 0;
  bool replace = false;
  std::string sampler;
  std::int64_t batch_dependency = 1;
  bool weighted = false;
  std::int64_t seed = 0;

  bool operator==(const SampledBy&) const = default;
};

// Batches that follow each other in the file: seeds of one split, each once.
struct BatchSection {
  Split split = Split::kNone;
  std::int64_t batches = 0;
  std::int64_t seeds = 0;

  bool operator==(const BatchSection&) const = default;
};

// Of one class, or one column of a label matrix: entries of the training seeds' labels that aren't
// of it, and those that are.
using LabelCounts = std::array<std::int64_t, 2>;

struct BatchesManifest {
  Manifest dataset;  // that of the dataset they were sampled from
  SampledBy sampled;
  // Of the training vertices one for each epoch that was sampled.
  std::vector<BatchSection> sections;
  std::vector<LabelCounts> train_labels;  // of an epoch; empty where labels are values
  std::int64_t vertices = 0, edges = 0;   // of all batches together
  std::vector<std::int64_t> most_rows;    // of any batch, level by level as BatchView::level_rows
  std::int64_t most_edges = 0;            // of any batch
  ChunkFileInfo file;
  std::string checksum;  // identifies the batches; set where a manifest was read

  std::int64_t hops() const { return static_cast<std::int64_t>(sampled.fanouts.size()); }
  BatchLayout layout() const { return {hops(), dataset.edges.data, batch_tensors(dataset)}; }
  std::int64_t batches() const;
  std::int64_t seeds() const;
  // The section of a batch, and the first batch of a section.
  std::size_t section_of(std::int64_t batch) const;
  std::int64_t first_batch(std::size_t section) const;
  // Sections of a split, by their place among all.
  std::vector<std::size_t> sections_of(Split split) const;
};

std::string to_text(const BatchesManifest& manifest);
// DataError, naming `path`: not such a manifest, another format version, a wrong checksum, a member
// missing or wrong.
BatchesManifest batches_manifest_from_text(const std::string& text, const std::string& path);

}  // namespace ooc
