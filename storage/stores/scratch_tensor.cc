#include "storage/stores/scratch_tensor.h"

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"
#include "storage/format/zero_packing.h"

namespace ooc {
namespace {

// A quarter of a chunk of fp32: 512 KiB with the default blocks.
std::uint64_t least_io_chunk_bytes(const TensorLayout& layout) {
  return static_cast<std::uint64_t>(layout.block_rows * kSliceWidth);
}

std::uint64_t row_bytes(const TensorLayout& layout, DType dtype, std::int64_t slice) {
  return static_cast<std::uint64_t>(layout.slice_stride(slice)) * dtype_bytes(dtype);
}

}  // namespace

std::int64_t scratch_io_chunk_blocks(const TensorLayout& layout, DType dtype, std::int64_t most) {
  std::int64_t blocks = 1;
  const auto fits = [&] {
    const auto rows = static_cast<std::uint64_t>(blocks * layout.block_rows);
    const bool small = rows * row_bytes(layout, dtype, 0) < least_io_chunk_bytes(layout);
    if (small && 2 * blocks <= most) return false;
    return rows * row_bytes(layout, dtype, 0) % kIoAlignment == 0 &&
           rows * row_bytes(layout, dtype, layout.slice_count() - 1) % kIoAlignment == 0;
  };
  while (blocks < layout.block_count() && !fits()) blocks *= 2;
  return blocks;
}

std::uint64_t io_chunk_payload_bytes(const TensorLayout& layout, DType dtype,
                                     std::int64_t io_chunk_blocks, std::int64_t io_chunk,
                                     std::int64_t slice) {
  const std::int64_t rows = io_chunk_blocks * layout.block_rows;
  return static_cast<std::uint64_t>(std::min(rows, layout.rows - io_chunk * rows)) *
         row_bytes(layout, dtype, slice);
}

ScratchTensor::ScratchTensor(BlockIo& io, const std::string& directory, DType dtype,
                             const TensorLayout& layout, std::int64_t io_chunk_blocks)
    : io_(io),
      dtype_(dtype),
      layout_(layout),
      io_chunk_blocks_(io_chunk_blocks),
      io_chunks_(ceil_div(layout.block_count(), io_chunk_blocks_)) {
  // Of a page nothing can be left out.
  if (dtype == DType::kF32 && rows(0, 0, nullptr).size() > kIoAlignment && io.moves_data()) {
    zeros_.resize(static_cast<std::size_t>(io_chunks_ * layout.slice_count()));
  }
  std::uint64_t end = 0;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    slice_offsets_.push_back(end);
    for (std::int64_t io_chunk = 0; io_chunk < io_chunks_; ++io_chunk) {
      end += io_aligned(io_chunk_payload_bytes(layout, dtype_, io_chunk_blocks_, io_chunk, slice));
    }
  }
  file_ = io.create_temporary(directory, end);
}

std::span<std::byte> ScratchTensor::rows(std::int64_t io_chunk, std::int64_t slice,
                                         std::byte* data) const {
  return {data, io_chunk_payload_bytes(layout_, dtype_, io_chunk_blocks_, io_chunk, slice)};
}

BlockRequest ScratchTensor::request(BlockRequest::Kind kind, std::int64_t io_chunk,
                                    std::int64_t slice, std::byte* data,
                                    BlockCompletion done) const {
  OOC_CHECK(io_chunk >= 0 && io_chunk < io_chunks_);
  const auto whole =
      io_aligned(io_chunk_payload_bytes(layout_, dtype_, io_chunk_blocks_, 0, slice));
  const auto left_out = static_cast<std::uint64_t>(zeros(io_chunk, slice));
  const std::uint64_t begin = slice_offsets_[static_cast<std::size_t>(slice)] +
                              static_cast<std::uint64_t>(io_chunk) * whole;
  return {kind,
          file_.get(),
          begin + left_out,
          data + left_out,
          rows(io_chunk, slice, data).size() - left_out,
          std::move(done)};
}

void ScratchTensor::read(std::int64_t io_chunk, std::int64_t slice, std::byte* data,
                         BlockCompletion done) const {
  io_.submit(request(BlockRequest::Kind::kRead, io_chunk, slice, data, std::move(done)));
}

void ScratchTensor::verify_and_decode(std::int64_t io_chunk, std::int64_t slice,
                                      std::byte* data) const {
  const auto begin = static_cast<std::size_t>(zeros(io_chunk, slice));
  if (begin == 0 || unpack_zeros(rows(io_chunk, slice, data), begin)) return;
  throw IoError("what was written came back as something else", file_->path(),
                "the disk may be failing: use another one for scratch");
}

std::int64_t ScratchTensor::pack(std::int64_t io_chunk, std::int64_t slice, std::byte* data) {
  return packs() ? static_cast<std::int64_t>(pack_zeros(rows(io_chunk, slice, data))) : 0;
}

void ScratchTensor::write(std::int64_t io_chunk, std::int64_t slice, std::byte* data,
                          std::int64_t zeros, BlockCompletion done) {
  if (packs()) zeros_[index(io_chunk, slice)] = zeros;
  io_.submit(request(BlockRequest::Kind::kWrite, io_chunk, slice, data, std::move(done)));
}

}  // namespace ooc
