// The chunks of a chunk file through storage/io/block_file.h: into the caller's buffers, past the
// page cache, many at once; or, where the BlockIo maps files, where they lie. The other mapped way
// to the same chunks is ChunkFileReader::chunk().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "storage/format/chunk_file.h"
#include "storage/io/block_file.h"

namespace ooc {

// Many threads. `io` and `file` must outlive it, and it the reads it submitted.
class DirectChunkReader {
 public:
  DirectChunkReader(BlockIo& io, const ChunkFileReader& file);

  // What read() needs room for; 0 for an empty chunk.
  std::size_t buffer_bytes(std::uint64_t chunk) const { return io_aligned(bytes(chunk)); }
  // Where a chunk that is not empty lies in memory, to read only, once read() into that place has
  // completed; null where the file isn't mapped.
  std::byte* mapped(std::uint64_t chunk) const;
  // A chunk that is mapped needn't stay in memory.
  void release(std::uint64_t chunk) const;
  // Submits the read of a chunk that is not empty into `data`, which is a multiple of kIoAlignment.
  void read(std::uint64_t chunk, std::byte* data, BlockCompletion done) const;
  // The payload in `data`, once it is there: its checksum is compared under the file's policy
  // (DataError). Takes time: not for completions.
  std::span<const std::byte> payload(std::uint64_t chunk, const std::byte* data) const;

 private:
  std::size_t bytes(std::uint64_t chunk) const { return file_.entry(chunk).bytes; }

  BlockIo& io_;
  const ChunkFileReader& file_;
  std::unique_ptr<BlockFile> blocks_;
};

}  // namespace ooc
