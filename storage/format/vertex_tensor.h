// A V x d vertex tensor in a chunk file: the grid of vertex chunks of
// storage/format/tensor_layout.h, slice after slice, block after block. Tensors under 8 columns
// have one slice and chunks that cover as many blocks as make about 1 MiB.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/aligned_vector.h"
#include "storage/format/chunk_file.h"
#include "storage/format/tensor_layout.h"

namespace ooc {

// Writes a tensor from rows in order. One thread drives it; the work runs on all of TBB's.
class VertexTensorWriter {
 public:
  VertexTensorWriter(FileSystem& files, const std::string& path, DType dtype,
                     const TensorLayout& layout);
  ~VertexTensorWriter();
  // `data`: row-major, layout.cols elements of dtype a row, no padding.
  void append_rows(const void* data, std::int64_t row_count);
  ChunkFileInfo finish();  // every row must be there

 private:
  struct RowRun {
    std::int64_t begin;  // row, within one chunk's rows
    std::int64_t count;
    std::int64_t slice;
  };
  void append_run(const RowRun& run, const std::byte* rows);

  TensorLayout layout_;
  std::size_t element_bytes_;
  std::int64_t blocks_per_chunk_;
  std::int64_t next_row_ = 0;
  struct SliceRows;  // of each thread
  std::unique_ptr<SliceRows> slice_rows_;
  ChunkFileWriter file_;
};

// Reads a tensor through the mapping. Many threads.
class VertexTensorFile {
 public:
  // DataError if it isn't a tensor of this dtype, this many rows and this block size; `cols` is
  // checked where given.
  VertexTensorFile(FileSystem& files, const std::string& path, VerifyPolicy verify, DType dtype,
                   std::int64_t rows, std::int64_t block_rows, std::optional<std::int64_t> cols);

  DType dtype() const { return dtype_; }
  const TensorLayout& layout() const { return layout_; }
  const ChunkFileReader& file() const { return file_; }
  // Row-major chunk: layout().rows_of(block) rows of layout().slice_stride(slice) elements.
  const std::byte* chunk(std::int64_t block, std::int64_t slice) const;
  // DataError where chunk `index` of the file has another number of rows than belong there, or
  // padding that is not zero.
  void check_chunk(std::uint64_t index) const;
  // Copies rows [begin, begin + count) without padding into `out`, row-major. What it read doesn't
  // stay resident.
  void read_rows(std::int64_t begin, std::int64_t count, void* out) const;
  // The same as fp32, of a tensor of fp32, fp16 or bf16.
  void read_rows_f32(std::int64_t begin, std::int64_t count, float* out) const;

 private:
  template <class Visit>
  void visit_rows(std::int64_t begin, std::int64_t count, Visit&& visit) const;

  ChunkFileReader file_;
  DType dtype_;
  TensorLayout layout_;
  std::int64_t blocks_per_chunk_ = 1;
};

// Bytes of each chunk of such a file, in file order.
std::vector<std::uint64_t> vertex_chunk_bytes(const TensorLayout& layout, DType dtype);
// Blocks that one chunk covers.
std::int64_t vertex_blocks_per_chunk(const TensorLayout& layout, DType dtype);
// The chunk, in file order, that holds this block's rows of this slice.
std::int64_t vertex_chunk_of(const TensorLayout& layout, DType dtype, std::int64_t block,
                             std::int64_t slice);

}  // namespace ooc
