#include "storage/stores/dataset_tensor.h"

#include <utility>

#include "storage/base/errors.h"

namespace ooc {

DatasetTensor::DatasetTensor(BlockIo& io, const VertexTensorFile& file)
    : file_(file),
      io_chunk_blocks_(vertex_blocks_per_chunk(file.layout(), file.dtype())),
      chunks_(io, file.file()),
      mapped_(is_dense() ? chunks_.mapped(0) : nullptr) {}

bool DatasetTensor::is_dense() const {
  const ChunkFileReader& file = file_.file();
  const std::uint64_t count = file.shape().chunk_count;
  for (std::uint64_t i = 1; i < count; ++i) {
    const ChunkIndexEntry& before = file.entry(i - 1);
    if (file.entry(i).offset != before.offset + io_aligned(before.bytes)) return false;
  }
  return count > 0;
}

void DatasetTensor::release(std::int64_t io_chunk, std::int64_t slice) const {
  chunks_.release(chunk(io_chunk, slice));
}

std::uint64_t DatasetTensor::chunk(std::int64_t io_chunk, std::int64_t slice) const {
  return static_cast<std::uint64_t>(
      vertex_chunk_of(layout(), dtype(), io_chunk * io_chunk_blocks_, slice));
}

void DatasetTensor::read(std::int64_t io_chunk, std::int64_t slice, std::byte* data,
                         BlockCompletion done) const {
  chunks_.read(chunk(io_chunk, slice), data, std::move(done));
}

void DatasetTensor::write(std::int64_t, std::int64_t, std::byte*, std::int64_t, BlockCompletion) {
  OOC_CHECK(!"a dataset is never written");
}

bool DatasetTensor::needs_decoding(std::int64_t io_chunk, std::int64_t slice) const {
  return file_.file().needs_verify(chunk(io_chunk, slice));
}

void DatasetTensor::verify_and_decode(std::int64_t io_chunk, std::int64_t slice,
                                      std::byte* data) const {
  const std::uint64_t index = chunk(io_chunk, slice);
  chunks_.payload(index, data);
}

}  // namespace ooc
