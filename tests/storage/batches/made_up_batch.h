// Batches of random vertices and edges, for tests of the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "storage/base/aligned_vector.h"
#include "storage/batches/batch_file.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {

struct MadeUpBatch {
  std::vector<std::int64_t> level_rows;
  std::vector<BatchEdge> edges;
  std::vector<std::byte> records;
  std::vector<AlignedVector<std::byte>> rows;  // by tensor

  BatchView view() const {
    BatchView view{level_rows, edges, records, {}};
    for (const auto& tensor : rows) view.rows.push_back(tensor.data());
    return view;
  }
};

// Of a dataset of single labels; levels of `level_rows`.
inline MadeUpBatch made_up_batch(const BatchesManifest& manifest, Split split,
                                 std::vector<std::int64_t> level_rows, std::uint64_t seed) {
  SplitMix random(mix64(seed));
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  MadeUpBatch batch;
  batch.level_rows = level_rows;
  for (std::size_t level = 0; level + 1 < level_rows.size(); ++level) {
    for (std::int64_t row = level == 0 ? 0 : level_rows[level - 1]; row < level_rows[level];
         ++row) {
      std::vector<std::uint32_t> sources(static_cast<std::size_t>(below(4)));
      for (std::uint32_t& source : sources) {
        source = static_cast<std::uint32_t>(below(level_rows[level + 1]));
      }
      std::sort(sources.begin(), sources.end());
      for (const std::uint32_t source : sources) {
        batch.edges.push_back({static_cast<std::uint32_t>(row), source});
      }
    }
  }
  const EdgeData& data = manifest.dataset.edges.data;
  batch.records.resize(batch.edges.size() * data.bytes());
  for (std::size_t i = 0; data.types && i < batch.edges.size(); ++i) {
    const auto type = static_cast<std::uint16_t>(below(manifest.dataset.edge_types));
    std::memcpy(batch.records.data() + i * data.bytes() + data.type_offset(), &type, sizeof type);
  }
  for (const BatchTensor& tensor : batch_tensors(manifest.dataset)) {
    const std::int64_t rows = BatchLayout::rows_of(tensor, level_rows);
    std::int64_t bytes = 0;
    for (std::int64_t slice = 0; slice < ceil_div(tensor.cols, kSliceWidth); ++slice) {
      bytes += BatchLayout::slice_bytes(tensor, rows, slice);
    }
    AlignedVector<std::byte> values(static_cast<std::size_t>(bytes));
    if (tensor.name == "splits") {
      std::fill(values.begin(), values.end(), static_cast<std::byte>(split));
    } else if (tensor.dtype == DType::kF32) {
      auto* const at = reinterpret_cast<float*>(values.data());
      for (std::int64_t i = 0; i < bytes / 4; ++i) at[i] = static_cast<float>(below(1000));
    } else if (tensor.dtype == DType::kI64) {
      auto* const at = reinterpret_cast<std::int64_t*>(values.data());
      for (std::int64_t i = 0; i < bytes / 8; ++i) at[i] = below(manifest.dataset.edges.vertices);
    } else {
      auto* const at = reinterpret_cast<std::int32_t*>(values.data());
      for (std::int64_t i = 0; i < bytes / 4; ++i) at[i] = static_cast<std::int32_t>(below(3));
    }
    batch.rows.push_back(std::move(values));
  }
  return batch;
}

// What a writer of made-up batches begins with.
inline BatchesManifest made_up_manifest(const Manifest& dataset,
                                        std::vector<BatchSection> sections) {
  BatchesManifest manifest;
  manifest.dataset = dataset;
  manifest.sampled.fanouts = {3, -1};
  manifest.sampled.batch_size = 4;
  manifest.sampled.sampler = "neighbor";
  manifest.sections = std::move(sections);
  return manifest;
}

}  // namespace ooc::test
