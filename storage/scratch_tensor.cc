#include "storage/scratch_tensor.h"

#include <utility>

#include "storage/errors.h"
#include "storage/vertex_tensor.h"

namespace ooc {

ScratchTensor::ScratchTensor(BlockIo& io, const std::string& directory, DType dtype,
                             const TensorLayout& layout)
    : io_(io), dtype_(dtype), layout_(layout), bytes_(vertex_chunk_bytes(layout, dtype)) {
  std::uint64_t end = 0;
  for (const std::uint64_t bytes : bytes_) {
    offsets_.push_back(end);
    end += io_aligned(bytes);
  }
  file_ = io.create_temporary(directory, end);
}

BlockRequest ScratchTensor::request(BlockRequest::Kind kind, std::int64_t chunk, std::byte* data,
                                    BlockCompletion done) const {
  OOC_CHECK(chunk >= 0 && chunk < chunk_count());
  return {kind, file_.get(), offsets_[index(chunk)], data, bytes_[index(chunk)], std::move(done)};
}

void ScratchTensor::read(std::int64_t chunk, std::byte* data, BlockCompletion done) const {
  io_.submit(request(BlockRequest::Kind::kRead, chunk, data, std::move(done)));
}

void ScratchTensor::write(std::int64_t chunk, std::byte* data, BlockCompletion done) {
  io_.submit(request(BlockRequest::Kind::kWrite, chunk, data, std::move(done)));
}

}  // namespace ooc
