// A chunk file: header, 4 KiB aligned payloads, index, committing footer (storage/format/format.h).
// The one container for vertex tensors (storage/format/vertex_tensor.h), edges
// (storage/format/edge_file.h) and sampled batches (storage/batches/batch_file.h).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/checksum.h"
#include "storage/base/control.h"
#include "storage/base/types.h"
#include "storage/format/format.h"
#include "storage/io/file.h"

namespace ooc {

// What to do about a damaged dataset, and about damaged batches.
inline constexpr std::string_view kImportAgain = "import the dataset again";
inline constexpr std::string_view kSampleAgain = "sample the batches again";

// When checksums are compared: on the first read of each chunk, on every read, not at all.
enum class VerifyPolicy { kFirst, kAlways, kNever };

// The header's facts, as the caller sees them.
struct ChunkFileShape {
  ChunkFileKind kind = ChunkFileKind::kVertexTensor;
  std::uint32_t dtype = 0;
  std::uint32_t edge_data = 0;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t block_rows = 0;
  std::uint64_t slice_width = 0;
  std::uint64_t blocks_per_chunk = 0;
  std::uint64_t span_rows = 0;
  std::uint64_t chunk_count = 0;

  bool operator==(const ChunkFileShape&) const = default;
};

// What identifies a finished file's contents; the manifest keeps it.
struct ChunkFileInfo {
  std::uint64_t bytes = 0;
  std::uint64_t index_checksum = 0;

  bool operator==(const ChunkFileInfo&) const = default;
};

// Writes under a temporary name; the file appears under its own only when finish() has made it
// durable. Destroyed before that, it removes what it wrote.
class ChunkFileWriter {
 public:
  // With `chunk_bytes` (one entry a chunk) the chunks' places are fixed at once and append() may
  // fill them in any order, different chunks from different threads; without, write_next() puts one
  // chunk after the other, from one thread.
  ChunkFileWriter(FileSystem& files, std::string path, const ChunkFileShape& shape,
                  std::span<const std::uint64_t> chunk_bytes = {});
  ~ChunkFileWriter();
  ChunkFileWriter(const ChunkFileWriter&) = delete;
  ChunkFileWriter& operator=(const ChunkFileWriter&) = delete;

  // Continues a chunk where its last append() ended.
  void append(std::uint64_t chunk, std::span<const std::byte> data, std::uint64_t items);
  // The next chunk, whole, in parts; empty chunks take no space.
  void write_next(std::span<const std::span<const std::byte>> parts, std::uint64_t items);
  // Every chunk must be complete. Where the number of columns was not known before, the shape's is
  // replaced.
  ChunkFileInfo finish(std::optional<std::uint64_t> cols = std::nullopt);
  // A writer of the file `path` that has been given what this one has (with write_next()). Copies
  // it.
  std::unique_ptr<ChunkFileWriter> fork(std::string path, const Control& control) const;

 private:
  FileSystem& files_;
  std::string path_;
  ChunkFileShape shape_;
  std::unique_ptr<WritableFile> file_;
  std::vector<ChunkIndexEntry> index_;
  std::vector<std::uint64_t> written_;  // bytes of each chunk so far, where places are fixed
  std::vector<std::optional<Checksum>> checksums_;  // of chunks that are begun, likewise
  std::uint64_t next_chunk_ = 0;
  std::uint64_t end_ = kChunkAlignment;
  bool finished_ = false;
};

// Reads header and index, and chunks by mapping; storage/stores/direct_chunk_reader.h is the other
// way to the chunks. All methods may be called from many threads.
class ChunkFileReader {
 public:
  // Checks header, footer and index: DataError names the file and what is wrong with it.
  ChunkFileReader(FileSystem& files, const std::string& path, ChunkFileKind kind,
                  VerifyPolicy verify);
  // Of a file that isn't there, of no bytes: what its index would say, to simulate with.
  ChunkFileReader(const ChunkFileShape& shape, std::vector<ChunkIndexEntry> index);

  const std::string& path() const { return path_; }
  const ChunkFileShape& shape() const { return shape_; }
  const ChunkFileInfo& info() const { return info_; }
  const ChunkIndexEntry& entry(std::uint64_t chunk) const { return index_[chunk]; }
  // The payload, 4 KiB aligned and verified; valid as long as the reader. The first call maps the
  // file.
  std::span<const std::byte> chunk(std::uint64_t chunk) const;
  // A chunk, or all, that was read so needn't stay resident.
  void release(std::uint64_t chunk) const;
  void release() const { file_->release(0, file_->size()); }
  // Compares the checksum of a chunk's payload, however it was read, where the policy asks for it:
  // DataError if it is wrong.
  void verify(std::uint64_t chunk, std::span<const std::byte> payload) const;
  // Whether verify() would compare it.
  bool needs_verify(std::uint64_t chunk) const;
  // What lies between the chunks is zero, and no two overlap; DataError.
  void verify_gaps() const;

 private:
  [[noreturn]] void corrupt(std::string_view what, std::uint64_t offset) const;
  ChunkFileHeader read_header(ChunkFileKind kind) const;
  ChunkFileFooter read_footer() const;
  void read_index(const ChunkFileFooter& footer, std::uint64_t chunk_count);
  void check_zero(std::uint64_t begin, std::uint64_t end) const;

  std::string path_;
  std::unique_ptr<ReadableFile> file_;  // null: it isn't there
  ChunkFileShape shape_;
  ChunkFileInfo info_;
  std::vector<ChunkIndexEntry> index_;
  VerifyPolicy verify_;
  mutable std::vector<std::atomic<bool>> verified_;
};

}  // namespace ooc
