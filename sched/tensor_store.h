// Where the rows of a vertex tensor lie in storage: a dataset's file, or a temporary file that is
// gone with the process. Read and written unit by unit and slice by slice, past the page cache,
// many transfers at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "storage/block_file.h"
#include "storage/direct_chunk_reader.h"
#include "storage/tensor_layout.h"
#include "storage/vertex_tensor.h"

namespace ooc {

// All methods may be called from many threads. A unit's transfers must not overlap in time if one
// of them is a write.
class TensorStore {
 public:
  virtual ~TensorStore() = default;
  virtual DType dtype() const = 0;
  virtual const TensorLayout& layout() const = 0;
  // Blocks of a unit; the last one has what is left.
  virtual std::int64_t unit_blocks() const = 0;
  // Submits; `data` as in BlockRequest, with room for unit_bytes() (sched/plan.h): row-major rows
  // of slice_stride() elements.
  virtual void read(std::int64_t unit, std::int64_t slice, std::byte* data,
                    BlockCompletion done) const = 0;
  virtual void write(std::int64_t unit, std::int64_t slice, std::byte* data,
                     BlockCompletion done) = 0;
  // Compares the checksum of what was read, where there is one and the dataset's policy asks for
  // it: DataError. Takes time: not for completions.
  virtual void verify(std::int64_t unit, std::int64_t slice, const std::byte* data) const = 0;
};

// A vertex tensor of a dataset; read only. `io` and `file` must outlive it.
std::unique_ptr<TensorStore> open_tensor(BlockIo& io, const VertexTensorFile& file);

// A new one in `directory`, every element zero until it is written; its space is reserved at once:
// IoError, and nothing is left, where there is not enough.
std::unique_ptr<TensorStore> create_tensor(BlockIo& io, const std::string& directory, DType dtype,
                                           const TensorLayout& layout);

}  // namespace ooc
