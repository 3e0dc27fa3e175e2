// One direction's edge chunks, of a dataset's file.
#pragma once

#include "storage/format/edge_file.h"
#include "storage/stores/chunk_store.h"
#include "storage/stores/direct_chunk_reader.h"

namespace ooc {

// Of chunks that are not empty. `data` has room for io_aligned() of a chunk's bytes.
class EdgeChunks final : public ChunkStore {
 public:
  // `io` and `file` must outlive it.
  EdgeChunks(BlockIo& io, const EdgeFile& file) : file_(file), reader_(io, file.file()) {}

  const EdgeFile& file() const { return file_; }
  std::size_t bytes(std::int64_t chunk) const { return file_.file().entry(index(chunk)).bytes; }
  // Where a chunk lies in memory, to read only, once read() into that place has completed, until
  // release(); null: nowhere.
  std::byte* mapped(std::int64_t chunk) const { return reader_.mapped(index(chunk)); }

  void read(std::int64_t chunk, std::int64_t, std::byte* data,
            BlockCompletion done) const override {
    reader_.read(index(chunk), data, std::move(done));
  }
  bool needs_decoding(std::int64_t chunk, std::int64_t) const override {
    return file_.file().needs_verify(index(chunk));
  }
  void verify_and_decode(std::int64_t chunk, std::int64_t, std::byte* data) const override {
    file_.tiles(chunk, {data, bytes(chunk)});
  }
  void release(std::int64_t chunk, std::int64_t) const override { reader_.release(index(chunk)); }

 private:
  static std::uint64_t index(std::int64_t chunk) { return static_cast<std::uint64_t>(chunk); }

  const EdgeFile& file_;
  DirectChunkReader reader_;
};

}  // namespace ooc
