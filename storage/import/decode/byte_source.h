// Sequential bytes of an input after decoding: a plain file, an inflated .gz, a member of a .npz
// (npz.h). Everything under storage/import reads through it, in bounded buffers.
//
// Errors: DataError for what the bytes are (truncated, corrupt), IoError from the file below.
// Threads: one at a time; reopen() gives another stream for another thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "storage/io/file.h"

namespace ooc {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // For messages: "dir/edges.npy" or "dir/graph.npz:edges".
  virtual const std::string& name() const = 0;
  // Decoded bytes in all; empty where only reading to the end tells (.gz).
  virtual std::optional<std::uint64_t> size() const = 0;
  // True where seek() costs nothing, so that many streams may lie open side by side.
  virtual bool seekable() const = 0;
  // The next bytes; returns fewer than asked only at the end.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  // Continues at `offset`. Where bytes are compressed this decodes up to there.
  virtual void seek(std::uint64_t offset) = 0;
  // Reads all bytes once where they have a checksum that reading them out of order would not
  // compare (a stored member of a .npz). The position is lost: seek() next.
  virtual void compare_checksum() {}
  // Another stream over the same bytes, at the start.
  virtual std::unique_ptr<ByteSource> reopen() const = 0;
};

// The file as it is, or inflated if its name ends in ".gz", or is that of text and its first bytes
// are gzip's.
std::unique_ptr<ByteSource> open_byte_source(FileSystem& files, const std::string& path);

// Fills `out`. Throws DataError ("truncated") where the bytes end before.
void read_exact(ByteSource& source, std::span<std::byte> out);

// Reads and drops `count` bytes: seek() for streams that can only go forward.
void skip_bytes(ByteSource& source, std::uint64_t count);

}  // namespace ooc
