#include "storage/batches/batch_layout.h"

#include <array>
#include <limits>
#include <utility>

namespace ooc {
namespace {

constexpr std::array<std::byte, BatchLayout::kAlignment> kZeros{};
// Of vertices and of edges: their numbers have 32 bits.
constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();

std::int64_t aligned(std::int64_t offset) { return round_up(offset, BatchLayout::kAlignment); }

// A slice's rows without what aligns them.
std::int64_t row_bytes(const BatchTensor& tensor, std::int64_t rows, std::int64_t slice) {
  const TensorLayout layout{rows, tensor.cols, rows};
  return rows * layout.slice_stride(slice) * static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
}

std::int64_t slices_of(const BatchTensor& tensor) { return ceil_div(tensor.cols, kSliceWidth); }

}  // namespace

std::int64_t BatchLayout::slice_bytes(const BatchTensor& tensor, std::int64_t rows,
                                      std::int64_t slice) {
  return aligned(row_bytes(tensor, rows, slice));
}

BatchLayout::Places BatchLayout::places(std::span<const std::int64_t> level_rows,
                                        std::int64_t edges) const {
  Places at;
  at.edges = aligned((2 + hops_) * static_cast<std::int64_t>(sizeof(std::uint64_t)));
  at.records = at.edges + aligned(edges * static_cast<std::int64_t>(sizeof(BatchEdge)));
  at.end = at.records + aligned(edges * static_cast<std::int64_t>(data_.bytes()));
  for (const BatchTensor& tensor : tensors_) {
    at.rows.push_back(at.end);
    for (std::int64_t slice = 0; slice < slices_of(tensor); ++slice) {
      at.end += slice_bytes(tensor, rows_of(tensor, level_rows), slice);
    }
  }
  return at;
}

std::int64_t BatchLayout::bytes(std::span<const std::int64_t> level_rows,
                                std::int64_t edges) const {
  return places(level_rows, edges).end;
}

std::vector<std::span<const std::byte>> BatchLayout::parts(
    const BatchView& batch, std::vector<std::uint64_t>& header) const {
  header.assign({batch.edges.size()});
  header.insert(header.end(), batch.level_rows.begin(), batch.level_rows.end());
  std::vector<std::span<const std::byte>> parts;
  const auto add = [&](std::span<const std::byte> part) {
    const auto bytes = static_cast<std::int64_t>(part.size());
    parts.push_back(part);
    parts.push_back(std::span(kZeros).first(static_cast<std::size_t>(aligned(bytes) - bytes)));
  };
  add(std::as_bytes(std::span(header)));
  add(std::as_bytes(batch.edges));
  add(batch.records);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::int64_t rows = rows_of(tensors_[i], batch.level_rows);
    const std::byte* at = batch.rows[i];
    for (std::int64_t slice = 0; slice < slices_of(tensors_[i]); ++slice) {
      add({at, static_cast<std::size_t>(row_bytes(tensors_[i], rows, slice))});
      at += slice_bytes(tensors_[i], rows, slice);
    }
  }
  return parts;
}

std::optional<BatchView> BatchLayout::view(std::span<const std::byte> chunk) const {
  const auto levels = static_cast<std::size_t>(hops_ + 1);
  if (chunk.size() < (1 + levels) * sizeof(std::uint64_t)) return std::nullopt;
  const std::span header(reinterpret_cast<const std::uint64_t*>(chunk.data()), 1 + levels);
  std::uint64_t least = 1;
  BatchView batch;
  for (const std::uint64_t rows : header.subspan(1)) {
    if (rows < least || rows > kMost) return std::nullopt;
    batch.level_rows.push_back(static_cast<std::int64_t>(rows));
    least = rows;
  }
  if (header[0] > kMost) return std::nullopt;
  const auto edges = static_cast<std::size_t>(header[0]);
  const Places at = places(batch.level_rows, static_cast<std::int64_t>(edges));
  if (static_cast<std::uint64_t>(at.end) != chunk.size()) return std::nullopt;
  batch.edges = {reinterpret_cast<const BatchEdge*>(chunk.data() + at.edges), edges};
  batch.records = chunk.subspan(static_cast<std::size_t>(at.records), edges * data_.bytes());
  for (const std::int64_t offset : at.rows) batch.rows.push_back(chunk.data() + offset);
  return batch;
}

}  // namespace ooc
