#include "storage/vertex_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kNarrowChunkBytes = 1 << 20;
constexpr std::int64_t kMaxCols = 1 << 20;  // so that no count overflows

std::uint64_t row_bytes(const TensorLayout& layout, DType dtype, std::int64_t slice) {
  return static_cast<std::uint64_t>(layout.slice_stride(slice)) * dtype_bytes(dtype);
}

ChunkFileShape shape_of(const TensorLayout& layout, DType dtype) {
  ChunkFileShape shape;
  shape.kind = ChunkFileKind::kVertexTensor;
  shape.dtype = static_cast<std::uint32_t>(dtype);
  shape.rows = static_cast<std::uint64_t>(layout.rows);
  shape.cols = static_cast<std::uint64_t>(layout.cols);
  shape.block_rows = static_cast<std::uint64_t>(layout.block_rows);
  shape.slice_width = kSliceWidth;
  const std::int64_t blocks = vertex_blocks_per_chunk(layout, dtype);
  shape.blocks_per_chunk = static_cast<std::uint64_t>(blocks);
  shape.chunk_count =
      static_cast<std::uint64_t>(layout.slice_count() * ceil_div(layout.block_count(), blocks));
  return shape;
}

}  // namespace

std::int64_t vertex_blocks_per_chunk(const TensorLayout& layout, DType dtype) {
  if (layout.cols >= 8) return 1;
  const auto block_bytes =
      layout.block_rows * layout.cols * static_cast<std::int64_t>(dtype_bytes(dtype));
  return std::max<std::int64_t>(1, kNarrowChunkBytes / block_bytes);
}

std::vector<std::uint64_t> vertex_chunk_bytes(const TensorLayout& layout, DType dtype) {
  const std::int64_t chunk_rows = layout.block_rows * vertex_blocks_per_chunk(layout, dtype);
  std::vector<std::uint64_t> bytes;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    for (std::int64_t begin = 0; begin < layout.rows; begin += chunk_rows) {
      const auto rows = static_cast<std::uint64_t>(std::min(chunk_rows, layout.rows - begin));
      bytes.push_back(rows * row_bytes(layout, dtype, slice));
    }
  }
  return bytes;
}

VertexTensorWriter::VertexTensorWriter(FileSystem& files, const std::string& path, DType dtype,
                                       const TensorLayout& layout)
    : layout_(layout),
      element_bytes_(dtype_bytes(dtype)),
      blocks_per_chunk_(vertex_blocks_per_chunk(layout, dtype)),
      file_(files, path, shape_of(layout, dtype), vertex_chunk_bytes(layout, dtype)) {}

void VertexTensorWriter::append_rows(const void* data, std::int64_t row_count) {
  OOC_CHECK(next_row_ + row_count <= layout_.rows);
  auto* bytes = static_cast<const std::byte*>(data);
  while (row_count > 0) {
    const std::int64_t in_block = next_row_ % layout_.block_rows;
    const std::int64_t count = std::min(row_count, layout_.block_rows - in_block);
    append_within_block(bytes, count);
    bytes += static_cast<std::size_t>(count * layout_.cols) * element_bytes_;
    next_row_ += count;
    row_count -= count;
  }
}

void VertexTensorWriter::append_within_block(const std::byte* data, std::int64_t row_count) {
  const std::int64_t chunk_rows = layout_.block_rows * blocks_per_chunk_;
  const std::int64_t chunks_per_slice = ceil_div(layout_.rows, chunk_rows);
  const auto in_row_bytes = static_cast<std::size_t>(layout_.cols) * element_bytes_;
  for (std::int64_t slice = 0; slice < layout_.slice_count(); ++slice) {
    const auto copy_bytes = static_cast<std::size_t>(layout_.slice_cols(slice)) * element_bytes_;
    const auto out_row_bytes =
        static_cast<std::size_t>(layout_.slice_stride(slice)) * element_bytes_;
    const auto column = static_cast<std::size_t>(slice * kSliceWidth) * element_bytes_;
    slice_rows_.assign(out_row_bytes * static_cast<std::size_t>(row_count), std::byte{0});
    for (std::size_t row = 0; row < static_cast<std::size_t>(row_count); ++row) {
      std::memcpy(slice_rows_.data() + row * out_row_bytes, data + row * in_row_bytes + column,
                  copy_bytes);
    }
    file_.append(static_cast<std::uint64_t>(slice * chunks_per_slice + next_row_ / chunk_rows),
                 slice_rows_, static_cast<std::uint64_t>(row_count));
  }
}

ChunkFileInfo VertexTensorWriter::finish() {
  OOC_CHECK(next_row_ == layout_.rows);
  return file_.finish();
}

VertexTensorFile::VertexTensorFile(FileSystem& files, const std::string& path, VerifyPolicy verify,
                                   DType dtype, std::int64_t rows, std::int64_t block_rows,
                                   std::optional<std::int64_t> cols)
    : file_(files, path, ChunkFileKind::kVertexTensor, verify), dtype_(dtype) {
  const ChunkFileShape& found = file_.shape();
  layout_ = {rows, cols.value_or(static_cast<std::int64_t>(found.cols)), block_rows};
  if (layout_.cols <= 0 || layout_.cols > kMaxCols || found != shape_of(layout_, dtype)) {
    throw DataError(
        fmt::format("vertex tensor of the wrong shape: {} x {} in blocks of {}, expected {} x {} "
                    "{} in blocks of {}",
                    found.rows, found.cols, found.block_rows, rows, layout_.cols, dtype_name(dtype),
                    block_rows),
        path, "import the dataset again");
  }
  const std::vector<std::uint64_t> bytes = vertex_chunk_bytes(layout_, dtype);
  for (std::uint64_t i = 0; i < bytes.size(); ++i) {
    if (file_.entry(i).bytes != bytes[i]) {
      throw DataError(fmt::format("vertex chunk {} has {} bytes, expected {}", i,
                                  file_.entry(i).bytes, bytes[i]),
                      path, "import the dataset again");
    }
  }
  blocks_per_chunk_ = static_cast<std::int64_t>(found.blocks_per_chunk);
}

const std::byte* VertexTensorFile::chunk(std::int64_t block, std::int64_t slice) const {
  const std::int64_t chunks_per_slice = ceil_div(layout_.block_count(), blocks_per_chunk_);
  const std::int64_t index = slice * chunks_per_slice + block / blocks_per_chunk_;
  const std::int64_t first_row = block % blocks_per_chunk_ * layout_.block_rows;
  return file_.chunk(static_cast<std::uint64_t>(index)).data() +
         static_cast<std::uint64_t>(first_row) * row_bytes(layout_, dtype_, slice);
}

void VertexTensorFile::read_rows(std::int64_t begin, std::int64_t count, void* out) const {
  OOC_CHECK(begin >= 0 && begin + count <= layout_.rows);
  const std::size_t element = dtype_bytes(dtype_);
  auto* to = static_cast<std::byte*>(out);
  const auto to_row_bytes = static_cast<std::size_t>(layout_.cols) * element;
  for (std::int64_t row = begin; row < begin + count;) {
    const std::int64_t block = row / layout_.block_rows;
    const std::int64_t in_block = row % layout_.block_rows;
    const std::int64_t part = std::min(begin + count - row, layout_.rows_of(block) - in_block);
    for (std::int64_t slice = 0; slice < layout_.slice_count(); ++slice) {
      const std::size_t stride = row_bytes(layout_, dtype_, slice);
      const std::byte* from = chunk(block, slice) + static_cast<std::size_t>(in_block) * stride;
      const auto column = static_cast<std::size_t>(slice * kSliceWidth) * element;
      const auto copy_bytes = static_cast<std::size_t>(layout_.slice_cols(slice)) * element;
      for (std::int64_t i = 0; i < part; ++i) {
        std::memcpy(to + static_cast<std::size_t>(row - begin + i) * to_row_bytes + column,
                    from + static_cast<std::size_t>(i) * stride, copy_bytes);
      }
    }
    row += part;
  }
}

}  // namespace ooc
