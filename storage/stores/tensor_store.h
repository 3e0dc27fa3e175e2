// Where the rows of a vertex tensor lie in storage: a dataset's file
// (storage/stores/dataset_tensor.h), or a temporary one (storage/stores/scratch_tensor.h). Read and
// written I/O chunk by I/O chunk and slice by slice, past the page cache, many transfers at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/base/types.h"
#include "storage/format/tensor_layout.h"
#include "storage/io/block_file.h"

namespace ooc {

// All methods may be called from many threads. An I/O chunk's transfers must not overlap in time if
// one of them is a write.
class TensorStore {
 public:
  virtual ~TensorStore() = default;
  virtual DType dtype() const = 0;
  virtual const TensorLayout& layout() const = 0;
  // Blocks of an I/O chunk; the last one has what is left.
  virtual std::int64_t io_chunk_blocks() const = 0;
  // Where all rows lie in memory, to read only: slice after slice, I/O chunk after I/O chunk, each
  // I/O chunk at a multiple of kIoAlignment; null: nowhere. An I/O chunk's rows are there once
  // read() into their place has completed, until release().
  virtual std::byte* mapped() const { return nullptr; }
  virtual void release(std::int64_t /*I/O chunk*/, std::int64_t /*slice*/) const {}
  // Submits; `data` as in BlockRequest, for the I/O chunk's rows of the slice: row-major, rows of
  // slice_stride() elements.
  virtual void read(std::int64_t io_chunk, std::int64_t slice, std::byte* data,
                    BlockCompletion done) const = 0;
  // Whether what was read has to be gone over before it is used: a checksum to be compared, which
  // is DataError where it differs, zeros to be put back. verify_and_decode() does it. Takes time:
  // not for completions.
  virtual bool needs_decoding(std::int64_t io_chunk, std::int64_t slice) const = 0;
  virtual void verify_and_decode(std::int64_t io_chunk, std::int64_t slice,
                                 std::byte* data) const = 0;
  // The bytes of the I/O chunk's slice that read() doesn't move: zeros.
  virtual std::int64_t zeros(std::int64_t /*I/O chunk*/, std::int64_t /*slice*/) const { return 0; }

  // Whether pack() may be of use.
  virtual bool packs() const { return false; }
  // Leaves the zeros out, in place, before write(); returns the bytes that are left out, at the
  // beginning. The rows can't be used any more, unless that is 0. Takes time: not for completions.
  virtual std::int64_t pack(std::int64_t /*I/O chunk*/, std::int64_t /*slice*/,
                            std::byte* /*data*/) {
    return 0;
  }
  // Submits; `zeros`: what pack() left out, 0 for rows as they are.
  virtual void write(std::int64_t io_chunk, std::int64_t slice, std::byte* data, std::int64_t zeros,
                     BlockCompletion done) = 0;
};

}  // namespace ooc
