#include "storage/stores/direct_chunk_reader.h"

#include <utility>

#include "storage/base/errors.h"

namespace ooc {

static_assert(kChunkAlignment % kIoAlignment == 0);

DirectChunkReader::DirectChunkReader(BlockIo& io, const ChunkFileReader& file)
    : io_(io), file_(file), blocks_(io.open(file.path())) {
  if (blocks_->size() != file.info().bytes) {
    throw DataError("the file was replaced while it was opened", file.path(), "try again");
  }
}

std::byte* DirectChunkReader::mapped(std::uint64_t chunk) const {
  const std::span<const std::byte> mapping = blocks_->mapping();
  if (mapping.empty()) return nullptr;
  return const_cast<std::byte*>(mapping.data()) + file_.entry(chunk).offset;
}

void DirectChunkReader::release(std::uint64_t chunk) const {
  blocks_->release(file_.entry(chunk).offset, bytes(chunk));
}

void DirectChunkReader::read(std::uint64_t chunk, std::byte* data, BlockCompletion done) const {
  io_.submit({BlockRequest::Kind::kRead, blocks_.get(), file_.entry(chunk).offset, data,
              bytes(chunk), std::move(done)});
}

std::span<const std::byte> DirectChunkReader::payload(std::uint64_t chunk,
                                                      const std::byte* data) const {
  const std::span payload(data, bytes(chunk));
  file_.verify(chunk, payload);
  return payload;
}

}  // namespace ooc
