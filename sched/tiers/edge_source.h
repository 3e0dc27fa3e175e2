// Where edge chunks come from: the direction's file, or host memory above it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "storage/format/edge_file.h"
#include "storage/io/block_file.h"
#include "storage/stores/direct_chunk_reader.h"

namespace ooc {

// Many threads.
class EdgeSource {
 public:
  virtual ~EdgeSource() = default;
  virtual const EdgeFile& file() const = 0;
  // Where a chunk that is not empty lies in memory, to read only, once read() into that place has
  // completed, until release(); null: nowhere.
  virtual std::byte* mapped(std::int64_t /*chunk*/) const { return nullptr; }
  virtual void release(std::int64_t /*chunk*/) const {}
  // Submits the read of a chunk that is not empty into `data`, a multiple of kIoAlignment with room
  // for io_aligned() of its bytes.
  virtual void read(std::int64_t chunk, std::byte* data, BlockCompletion done) = 0;
  // The tiles of what came. Whoever reads the file checks it: DataError. Takes time: not for
  // completions.
  virtual std::vector<PanelTile> tiles(std::int64_t chunk,
                                       std::span<const std::byte> payload) const = 0;
};

// The file itself; `io` and `file` must outlive it.
class FileEdges final : public EdgeSource {
 public:
  FileEdges(BlockIo& io, const EdgeFile& file) : file_(file), reader_(io, file.file()) {}

  const EdgeFile& file() const override { return file_; }
  std::byte* mapped(std::int64_t chunk) const override {
    return reader_.mapped(static_cast<std::uint64_t>(chunk));
  }
  void release(std::int64_t chunk) const override {
    reader_.release(static_cast<std::uint64_t>(chunk));
  }
  void read(std::int64_t chunk, std::byte* data, BlockCompletion done) override {
    reader_.read(static_cast<std::uint64_t>(chunk), data, std::move(done));
  }
  std::vector<PanelTile> tiles(std::int64_t chunk,
                               std::span<const std::byte> payload) const override {
    return file_.tiles(chunk, payload);
  }

 private:
  const EdgeFile& file_;
  DirectChunkReader reader_;
};

}  // namespace ooc
