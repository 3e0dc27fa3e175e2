// Where the rows of a vertex tensor lie in storage: a dataset's file
// (storage/stores/dataset_tensor.h), or a temporary one (storage/stores/scratch_tensor.h). Read and
// written I/O chunk by I/O chunk and slice by slice: row-major, rows of slice_stride() elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/base/types.h"
#include "storage/format/tensor_layout.h"
#include "storage/io/block_file.h"
#include "storage/stores/chunk_store.h"

namespace ooc {

// An I/O chunk's transfers must not overlap in time if one of them is a write.
class TensorStore : public ChunkStore {
 public:
  virtual DType dtype() const = 0;
  virtual const TensorLayout& layout() const = 0;
  // Blocks of an I/O chunk; the last one has what is left.
  virtual std::int64_t io_chunk_blocks() const = 0;
  // Where all rows lie in memory, to read only: slice after slice, I/O chunk after I/O chunk, each
  // I/O chunk at a multiple of kIoAlignment; null: nowhere. An I/O chunk's rows are there once
  // read() into their place has completed, until release().
  virtual std::byte* mapped() const { return nullptr; }
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
