#include "storage/format/vertex_tensor.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstring>

#include "storage/base/aligned_vector.h"
#include "storage/base/errors.h"
#include "storage/base/half.h"

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

std::int64_t vertex_chunk_of(const TensorLayout& layout, DType dtype, std::int64_t block,
                             std::int64_t slice) {
  const std::int64_t blocks = vertex_blocks_per_chunk(layout, dtype);
  return slice * ceil_div(layout.block_count(), blocks) + block / blocks;
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

struct VertexTensorWriter::SliceRows {
  tbb::enumerable_thread_specific<AlignedVector<std::byte>> of_threads;
};

VertexTensorWriter::VertexTensorWriter(FileSystem& files, const std::string& path, DType dtype,
                                       const TensorLayout& layout)
    : layout_(layout),
      element_bytes_(dtype_bytes(dtype)),
      blocks_per_chunk_(vertex_blocks_per_chunk(layout, dtype)),
      slice_rows_(std::make_unique<SliceRows>()),
      file_(files, path, shape_of(layout, dtype), vertex_chunk_bytes(layout, dtype)) {}

VertexTensorWriter::~VertexTensorWriter() = default;

void VertexTensorWriter::append_rows(const void* data, std::int64_t row_count) {
  OOC_CHECK(next_row_ + row_count <= layout_.rows);
  const std::int64_t chunk_rows = layout_.block_rows * blocks_per_chunk_;
  std::vector<RowRun> runs;  // of different chunks
  for (std::int64_t row = next_row_; row < next_row_ + row_count;) {
    const std::int64_t count =
        std::min(next_row_ + row_count, (row / chunk_rows + 1) * chunk_rows) - row;
    for (std::int64_t slice = 0; slice < layout_.slice_count(); ++slice) {
      runs.push_back({row, count, slice});
    }
    row += count;
  }
  const auto row_size = static_cast<std::size_t>(layout_.cols) * element_bytes_;
  tbb::parallel_for(std::size_t{0}, runs.size(), [&](std::size_t i) {
    const auto row = static_cast<std::size_t>(runs[i].begin - next_row_);
    append_run(runs[i], static_cast<const std::byte*>(data) + row * row_size);
  });
  next_row_ += row_count;
}

void VertexTensorWriter::append_run(const RowRun& run, const std::byte* rows) {
  const std::int64_t chunk_rows = layout_.block_rows * blocks_per_chunk_;
  const std::int64_t chunks_per_slice = ceil_div(layout_.rows, chunk_rows);
  const auto in_row_bytes = static_cast<std::size_t>(layout_.cols) * element_bytes_;
  const auto copy_bytes = static_cast<std::size_t>(layout_.slice_cols(run.slice)) * element_bytes_;
  const auto out_row_bytes =
      static_cast<std::size_t>(layout_.slice_stride(run.slice)) * element_bytes_;
  const auto column = static_cast<std::size_t>(run.slice * kSliceWidth) * element_bytes_;
  const auto count = static_cast<std::size_t>(run.count);
  AlignedVector<std::byte>& slice_rows = slice_rows_->of_threads.local();
  slice_rows.resize(out_row_bytes * count);
  if (out_row_bytes > copy_bytes) std::fill(slice_rows.begin(), slice_rows.end(), std::byte{0});
  for (std::size_t row = 0; row < count; ++row) {
    std::memcpy(slice_rows.data() + row * out_row_bytes, rows + row * in_row_bytes + column,
                copy_bytes);
  }
  file_.append(static_cast<std::uint64_t>(run.slice * chunks_per_slice + run.begin / chunk_rows),
               slice_rows, static_cast<std::uint64_t>(run.count));
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
  const std::int64_t index = vertex_chunk_of(layout_, dtype_, block, slice);
  const std::int64_t first_row = block % blocks_per_chunk_ * layout_.block_rows;
  return file_.chunk(static_cast<std::uint64_t>(index)).data() +
         static_cast<std::uint64_t>(first_row) * row_bytes(layout_, dtype_, slice);
}

void VertexTensorFile::check_chunk(std::uint64_t index) const {
  const std::int64_t chunks_per_slice = ceil_div(layout_.block_count(), blocks_per_chunk_);
  const std::int64_t slice = static_cast<std::int64_t>(index) / chunks_per_slice;
  const std::int64_t chunk_rows = blocks_per_chunk_ * layout_.block_rows;
  const std::int64_t first = static_cast<std::int64_t>(index) % chunks_per_slice * chunk_rows;
  const auto rows = static_cast<std::uint64_t>(std::min(chunk_rows, layout_.rows - first));
  const auto refuse = [&](std::string_view what, std::uint64_t at) {
    throw DataError(fmt::format("vertex chunk {}: {}", index, what),
                    fmt::format("{}, offset {}", file_.path(), file_.entry(index).offset + at),
                    "import the dataset again");
  };
  if (file_.entry(index).items != rows) refuse("its index has another number of rows", 0);
  const std::span<const std::byte> bytes = file_.chunk(index);
  const std::size_t stride = row_bytes(layout_, dtype_, slice);
  const auto used = static_cast<std::size_t>(layout_.slice_cols(slice)) * dtype_bytes(dtype_);
  if (used == stride) return;
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::size_t at = row * stride + used; at < (row + 1) * stride; ++at) {
      if (bytes[at] != std::byte{0}) refuse("its padding is not zero", at);
    }
  }
}

// Calls visit(place of the first element among those asked for, the stored elements, their number)
// for each row of each slice.
template <class Visit>
void VertexTensorFile::visit_rows(std::int64_t begin, std::int64_t count, Visit&& visit) const {
  OOC_CHECK(begin >= 0 && begin + count <= layout_.rows);
  for (std::int64_t row = begin; row < begin + count;) {
    const std::int64_t block = row / layout_.block_rows;
    const std::int64_t in_block = row % layout_.block_rows;
    const std::int64_t part = std::min(begin + count - row, layout_.rows_of(block) - in_block);
    for (std::int64_t slice = 0; slice < layout_.slice_count(); ++slice) {
      const std::size_t stride = row_bytes(layout_, dtype_, slice);
      const std::byte* from = chunk(block, slice) + static_cast<std::size_t>(in_block) * stride;
      const auto cols = static_cast<std::size_t>(layout_.slice_cols(slice));
      for (std::int64_t i = 0; i < part; ++i) {
        const std::int64_t place = (row - begin + i) * layout_.cols + slice * kSliceWidth;
        visit(static_cast<std::size_t>(place), from + static_cast<std::size_t>(i) * stride, cols);
      }
      file_.release(static_cast<std::uint64_t>(vertex_chunk_of(layout_, dtype_, block, slice)));
    }
    row += part;
  }
}

void VertexTensorFile::read_rows(std::int64_t begin, std::int64_t count, void* out) const {
  const std::size_t element = dtype_bytes(dtype_);
  visit_rows(begin, count, [&](std::size_t place, const std::byte* from, std::size_t cols) {
    std::memcpy(static_cast<std::byte*>(out) + place * element, from, cols * element);
  });
}

void VertexTensorFile::read_rows_f32(std::int64_t begin, std::int64_t count, float* out) const {
  visit_rows(begin, count, [&](std::size_t place, const std::byte* from, std::size_t cols) {
    widen(dtype_, from, DType::kF32, out + place, cols);
  });
}

}  // namespace ooc
