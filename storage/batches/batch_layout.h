// How a sampled batch lies in its chunk of a batches file (storage/batches/README.md).
//
// A batch's vertices are numbered level after level: level 0 are the seeds, level l + 1 the sources
// of edges into level l that weren't there before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/types.h"
#include "storage/format/tensor_layout.h"
#include "storage/format/tile.h"

namespace ooc {

// By the numbers of its ends in the batch.
struct BatchEdge {
  std::uint32_t destination = 0, source = 0;

  bool operator==(const BatchEdge&) const = default;
};

// What batches have rows of: a vertex tensor of the dataset, in the type that it is stored in.
struct BatchTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::int64_t cols = 0;
  bool of_seeds = false;  // rows of level 0; else of all vertices

  bool operator==(const BatchTensor&) const = default;
};

// A batch in memory. It owns only the counts.
struct BatchView {
  std::vector<std::int64_t> level_rows;     // of levels 0 to hops: vertices of levels up to it
  std::span<const BatchEdge> edges;         // by destination, then source
  std::span<const std::byte> records;       // what each edge carries: EdgeData::bytes()
  std::vector<const std::byte*> rows = {};  // by tensor: BatchLayout::slice_bytes() for each slice
};

// What all batches of a file have in common. Immutable.
class BatchLayout {
 public:
  // Everything in a chunk begins at a multiple of it, and so does every slice of rows.
  static constexpr std::int64_t kAlignment = 64;

  BatchLayout(std::int64_t hops, const EdgeData& data, std::vector<BatchTensor> tensors)
      : hops_(hops), data_(data), tensors_(std::move(tensors)) {}

  std::int64_t hops() const { return hops_; }
  const EdgeData& data() const { return data_; }
  const std::vector<BatchTensor>& tensors() const { return tensors_; }

  static std::int64_t rows_of(const BatchTensor& tensor, std::span<const std::int64_t> level_rows) {
    return tensor.of_seeds ? level_rows.front() : level_rows.back();
  }
  // Of a tensor's rows, with what aligns them: rows of TensorLayout::slice_stride() elements.
  static std::int64_t slice_bytes(const BatchTensor& tensor, std::int64_t rows, std::int64_t slice);

  // Of a chunk.
  std::int64_t bytes(std::span<const std::int64_t> level_rows, std::int64_t edges) const;
  // What a chunk of this batch consists of. `header` is filled; the spans point into it and into
  // what the view points to. All of them may lie in memory as long as the result is used.
  std::vector<std::span<const std::byte>> parts(const BatchView& batch,
                                                std::vector<std::uint64_t>& header) const;
  // The batch of a chunk, into which it points. `chunk` begins at a multiple of kAlignment. Nothing
  // where lengths aren't what the counts say; no more is checked.
  std::optional<BatchView> view(std::span<const std::byte> chunk) const;

 private:
  // Offsets of what lies in a chunk.
  struct Places {
    std::int64_t edges = 0, records = 0, end = 0;
    std::vector<std::int64_t> rows = {};
  };
  Places places(std::span<const std::int64_t> level_rows, std::int64_t edges) const;

  std::int64_t hops_;
  EdgeData data_;
  std::vector<BatchTensor> tensors_;
};

// Calls visit(column, value) for every element of a tensor's rows in a batch; `rows` as in
// BatchView.
template <class T, class Visit>
void for_each_element(const BatchTensor& tensor, const std::byte* rows, std::int64_t count,
                      Visit&& visit) {
  const TensorLayout layout{count, tensor.cols, count};
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    const T* row = reinterpret_cast<const T*>(rows);
    for (std::int64_t i = 0; i < count; ++i, row += layout.slice_stride(slice)) {
      for (std::int64_t c = 0; c < layout.slice_cols(slice); ++c) {
        visit(slice * kSliceWidth + c, row[c]);
      }
    }
    rows += BatchLayout::slice_bytes(tensor, count, slice);
  }
}

}  // namespace ooc
