// The one seam between ooc and the operating system's files (after LevelDB's Env). Everything that
// is stored goes through it, so tests can put a memory-backed or a faulty implementation behind it
// (tests/support/fake_file_system.h).
//
// Errors: IoError with the path and, where there is one, the offset; a missing file is a DataError.
// Threads: a FileSystem and a ReadableFile may be used by many threads; so may write_at() of a
// WritableFile, for ranges that don't overlap; its other methods by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ooc {

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual const std::string& path() const = 0;
  virtual std::uint64_t size() const = 0;
  // Reads up to out.size() bytes at `offset`; returns how many. Fewer is no error: the end of the
  // file, or a short read. Most callers want read_exact().
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // The whole file as memory, valid as long as the file object; empty for an empty file.
  virtual std::span<const std::byte> map() = 0;
  // Pages of the mapping that lie in this range needn't stay resident: they come back when they are
  // read again.
  virtual void release(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) const {}
};

// Fills `out` from `offset`. Throws DataError where the file ends before ("truncated").
void read_exact(const ReadableFile& file, std::uint64_t offset, std::span<std::byte> out);

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // without close(): the file stays, possibly incomplete
  virtual const std::string& path() const = 0;
  // Writes all of `data`, extending the file where needed; bytes never written read as zero.
  virtual void write_at(std::uint64_t offset, std::span<const std::byte> data) = 0;
  // Cuts off what lies after the first `bytes`.
  virtual void truncate(std::uint64_t bytes) = 0;
  // Makes everything written so far durable.
  virtual void sync() = 0;
  virtual void close() = 0;
};

// Held until it is destroyed, or the process ends however it does.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // DataError for what is no regular file.
  virtual std::unique_ptr<ReadableFile> open(const std::string& path) = 0;
  // Creates or truncates.
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;
  // Opens an existing file to write over parts of it or to extend it.
  virtual std::unique_ptr<WritableFile> update(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  virtual bool is_directory(const std::string& path) = 0;
  virtual std::vector<std::string> list(const std::string& directory) = 0;  // names, sorted
  virtual void create_directories(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;  // replaces a file
  // Swaps two existing names in one step.
  virtual void exchange(const std::string& a, const std::string& b) = 0;
  virtual void remove_all(const std::string& path) = 0;  // a file or a tree; missing is fine
  // Takes the one lock on a file, which is made where it is missing; null while another holds it,
  // in this process or another. Where the file system knows no locks, everyone gets one.
  virtual std::unique_ptr<FileLock> lock(const std::string& path) = 0;
  virtual void sync_directory(const std::string& path) = 0;
};

// The operating system's files: pread, pwrite, fsync; mapped through Boost.Interprocess.
FileSystem& posix_file_system();

// Writes a small file so that `path` holds either its old bytes or all of the new ones: temporary
// name, sync, rename, sync of the directory.
void write_file_atomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> data);
std::vector<std::byte> read_file(FileSystem& files, const std::string& path);

// Throws the error of a failed call: `action` says what was tried ("cannot read"). A missing file
// is a DataError, everything else an IoError; a full disk says "no space left" and what to do.
[[noreturn]] void throw_file_error(int error_number, std::string_view action,
                                   const std::string& path,
                                   std::optional<std::uint64_t> offset = std::nullopt);

// "dir/name"; the part before the last slash ("." if there is none); the part after it.
std::string join_path(const std::string& directory, const std::string& name);
std::string parent_path(const std::string& path);
std::string base_name(const std::string& path);

}  // namespace ooc
