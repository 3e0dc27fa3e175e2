// A vertex tensor that is written and rewritten chunk by chunk: activations that don't fit memory.
// Chunks as in storage/vertex_tensor.h, each at a multiple of kIoAlignment, without checksums, in
// a temporary file that is gone with the object, however the process ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/block_file.h"
#include "storage/tensor_layout.h"
#include "storage/types.h"

namespace ooc {

// Many threads; a chunk's reads and writes must not overlap in time.
class ScratchTensor {
 public:
  // Reserves the file's space in `directory`: IoError, and nothing is left, where there is not
  // enough. Every element is zero until it is written.
  ScratchTensor(BlockIo& io, const std::string& directory, DType dtype, const TensorLayout& layout);

  DType dtype() const { return dtype_; }
  const TensorLayout& layout() const { return layout_; }

  // Chunks are numbered as in a vertex tensor's file: vertex_chunk_of(), vertex_blocks_per_chunk().
  std::int64_t chunk_count() const { return static_cast<std::int64_t>(bytes_.size()); }
  // Of its rows; `data` below needs room for io_aligned() of it.
  std::size_t chunk_bytes(std::int64_t chunk) const { return bytes_[index(chunk)]; }

  // Submit; `data` as in BlockRequest: row-major rows of slice_stride() elements.
  void read(std::int64_t chunk, std::byte* data, BlockCompletion done) const;
  void write(std::int64_t chunk, std::byte* data, BlockCompletion done);

 private:
  static std::size_t index(std::int64_t chunk) { return static_cast<std::size_t>(chunk); }
  BlockRequest request(BlockRequest::Kind kind, std::int64_t chunk, std::byte* data,
                       BlockCompletion done) const;

  BlockIo& io_;
  DType dtype_;
  TensorLayout layout_;
  std::vector<std::uint64_t> bytes_;    // per chunk
  std::vector<std::uint64_t> offsets_;  // per chunk
  std::unique_ptr<BlockFile> file_;
};

}  // namespace ooc
