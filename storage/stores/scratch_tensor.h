// A vertex tensor that is written and rewritten: what a run makes and doesn't fit memory. Its I/O
// chunks have no checksums and lie in a temporary file that is gone with the object, however the
// process ends. The file has room for all of them as they are; what is packed (zero_packing.h)
// leaves the beginning of its I/O chunk's place alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/stores/tensor_store.h"

namespace ooc {

// Blocks of its I/O chunks: the smallest power of two whose rows take whole pages in every slice,
// so that I/O chunks lie gapless after each other, and, unless that takes more than `most`, in the
// first at least a quarter of what a block of a whole slice of fp32 takes (512 KiB with the default
// blocks); never more than needed for all rows.
inline constexpr std::int64_t kNoMostBlocks = std::numeric_limits<std::int64_t>::max();
std::int64_t scratch_io_chunk_blocks(const TensorLayout& layout, DType dtype,
                                     std::int64_t most = kNoMostBlocks);

class ScratchTensor final : public TensorStore {
 public:
  // Reserves the file's space in `directory`: IoError, and nothing is left, where there is not
  // enough. Every element is zero until it is written. `io` must outlive it. `io_chunk_blocks`:
  // scratch_io_chunk_blocks().
  ScratchTensor(BlockIo& io, const std::string& directory, DType dtype, const TensorLayout& layout,
                std::int64_t io_chunk_blocks);
  ScratchTensor(BlockIo& io, const std::string& directory, DType dtype, const TensorLayout& layout)
      : ScratchTensor(io, directory, dtype, layout, scratch_io_chunk_blocks(layout, dtype)) {}

  DType dtype() const override { return dtype_; }
  const TensorLayout& layout() const override { return layout_; }
  std::int64_t io_chunk_blocks() const override { return io_chunk_blocks_; }
  void read(std::int64_t io_chunk, std::int64_t slice, std::byte* data,
            BlockCompletion done) const override;
  bool needs_decoding(std::int64_t io_chunk, std::int64_t slice) const override {
    return zeros(io_chunk, slice) > 0;
  }
  // IoError where what is there can't be what was written.
  void verify_and_decode(std::int64_t io_chunk, std::int64_t slice, std::byte* data) const override;
  std::int64_t zeros(std::int64_t io_chunk, std::int64_t slice) const override {
    return packs() ? zeros_[index(io_chunk, slice)] : 0;
  }
  bool packs() const override { return !zeros_.empty(); }
  std::int64_t pack(std::int64_t io_chunk, std::int64_t slice, std::byte* data) override;
  void write(std::int64_t io_chunk, std::int64_t slice, std::byte* data, std::int64_t zeros,
             BlockCompletion done) override;

 private:
  std::size_t index(std::int64_t io_chunk, std::int64_t slice) const {
    return static_cast<std::size_t>(slice * io_chunks_ + io_chunk);
  }
  // The I/O chunk's, at `data`.
  std::span<std::byte> rows(std::int64_t io_chunk, std::int64_t slice, std::byte* data) const;
  BlockRequest request(BlockRequest::Kind kind, std::int64_t io_chunk, std::int64_t slice,
                       std::byte* data, BlockCompletion done) const;

  BlockIo& io_;
  DType dtype_;
  TensorLayout layout_;
  std::int64_t io_chunk_blocks_, io_chunks_;
  std::vector<std::uint64_t> slice_offsets_;
  std::vector<std::int64_t> zeros_;  // bytes, by I/O chunk and slice; empty: never packed
  std::unique_ptr<BlockFile> file_;
};

// Bytes of one slice's I/O chunk with that many blocks, unpadded; the last one has what is left.
std::uint64_t io_chunk_payload_bytes(const TensorLayout& layout, DType dtype,
                                     std::int64_t io_chunk_blocks, std::int64_t io_chunk,
                                     std::int64_t slice);

}  // namespace ooc
