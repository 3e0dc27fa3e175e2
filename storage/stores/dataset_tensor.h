// A dataset's vertex tensor as a store: read only, past the page cache or in a mapping, as its
// BlockIo has it.
#pragma once

#include "storage/format/vertex_tensor.h"
#include "storage/stores/direct_chunk_reader.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

class DatasetTensor final : public TensorStore {
 public:
  // `io` and `file` must outlive it.
  DatasetTensor(BlockIo& io, const VertexTensorFile& file);

  DType dtype() const override { return file_.dtype(); }
  const TensorLayout& layout() const override { return file_.layout(); }
  std::int64_t io_chunk_blocks() const override { return io_chunk_blocks_; }
  std::byte* mapped() const override { return mapped_; }
  void release(std::int64_t io_chunk, std::int64_t slice) const override;
  void read(std::int64_t io_chunk, std::int64_t slice, std::byte* data,
            BlockCompletion done) const override;
  // A programmer's mistake.
  void write(std::int64_t io_chunk, std::int64_t slice, std::byte* data, std::int64_t zeros,
             BlockCompletion done) override;
  bool needs_decoding(std::int64_t io_chunk, std::int64_t slice) const override;
  void verify_and_decode(std::int64_t io_chunk, std::int64_t slice, std::byte* data) const override;

 private:
  std::uint64_t chunk(std::int64_t io_chunk, std::int64_t slice) const;
  // Whether chunks follow each other as the format's writer puts them.
  bool is_dense() const;

  const VertexTensorFile& file_;
  std::int64_t io_chunk_blocks_;
  DirectChunkReader chunks_;
  std::byte* mapped_;
};

}  // namespace ooc
