// A vertex tensor that is written and rewritten: what a run makes and doesn't fit memory. Its units
// have no checksums and lie in a temporary file that is gone with the object, however the process
// ends. The file has room for all of them as they are; what is packed (zero_packing.h) leaves the
// beginning of its unit's place alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/stores/tensor_store.h"

namespace ooc {

class ScratchTensor final : public TensorStore {
 public:
  // Reserves the file's space in `directory`: IoError, and nothing is left, where there is not
  // enough. Every element is zero until it is written. `io` must outlive it.
  ScratchTensor(BlockIo& io, const std::string& directory, DType dtype, const TensorLayout& layout);

  DType dtype() const override { return dtype_; }
  const TensorLayout& layout() const override { return layout_; }
  std::int64_t unit_blocks() const override { return unit_blocks_; }
  void read(std::int64_t unit, std::int64_t slice, std::byte* data,
            BlockCompletion done) const override;
  bool needs_settling(std::int64_t unit, std::int64_t slice) const override {
    return zeros(unit, slice) > 0;
  }
  // IoError where what is there can't be what was written.
  void settle(std::int64_t unit, std::int64_t slice, std::byte* data) const override;
  std::int64_t zeros(std::int64_t unit, std::int64_t slice) const override {
    return packs() ? zeros_[index(unit, slice)] : 0;
  }
  bool packs() const override { return !zeros_.empty(); }
  std::int64_t pack(std::int64_t unit, std::int64_t slice, std::byte* data) override;
  void write(std::int64_t unit, std::int64_t slice, std::byte* data, std::int64_t zeros,
             BlockCompletion done) override;

 private:
  std::size_t index(std::int64_t unit, std::int64_t slice) const {
    return static_cast<std::size_t>(slice * units_ + unit);
  }
  // The unit's, at `data`.
  std::span<std::byte> rows(std::int64_t unit, std::int64_t slice, std::byte* data) const;
  BlockRequest request(BlockRequest::Kind kind, std::int64_t unit, std::int64_t slice,
                       std::byte* data, BlockCompletion done) const;

  BlockIo& io_;
  DType dtype_;
  TensorLayout layout_;
  std::int64_t unit_blocks_, units_;
  std::vector<std::uint64_t> slice_offsets_;
  std::vector<std::int64_t> zeros_;  // bytes, by unit and slice; empty: never packed
  std::unique_ptr<BlockFile> file_;
};

// Blocks of its units: the smallest power of two whose rows take whole pages in every slice, so
// that units lie gapless behind each other, and in the first at least a quarter of what a block of
// a whole slice of fp32 takes (512 KiB with the default blocks); never more than needed for all
// rows.
std::int64_t scratch_unit_blocks(const TensorLayout& layout, DType dtype);
// Bytes of one slice's unit with that many blocks, unpadded; the last one has what is left.
std::uint64_t unit_payload_bytes(const TensorLayout& layout, DType dtype, std::int64_t unit_blocks,
                                 std::int64_t unit, std::int64_t slice);

}  // namespace ooc
