// File systems for tests: one in memory, and one that puts faults into any other.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "storage/io/file.h"

namespace ooc::test {

// Files and directories in memory, with the contract of storage/io/file.h: an open file keeps its
// bytes when its name is removed or taken by another. "/" and "." exist from the start.
// Thread-safe.
class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<WritableFile> update(const std::string& path) override;
  bool exists(const std::string& path) override;
  bool is_directory(const std::string& path) override;
  std::vector<std::string> list(const std::string& directory) override;
  void create_directories(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void exchange(const std::string& a, const std::string& b) override;
  void remove_all(const std::string& path) override;
  std::unique_ptr<FileLock> lock(const std::string& path) override;
  void sync_directory(const std::string& path) override;

  // The bytes of one file.
  struct Content {
    std::mutex mutex;
    std::vector<std::byte> bytes;
    std::atomic<bool> locked{false};
  };

 private:
  using Tree = std::map<std::string, std::shared_ptr<Content>>;  // null: a directory

  // Takes `path` and all below it out of the tree, under names relative to `path`.
  Tree take(const std::string& path);
  void put(const std::string& path, const Tree& tree);
  Tree::iterator find(const std::string& path, const char* action);
  void require_parent(const std::string& path, const char* action);

  std::mutex mutex_;
  Tree tree_;
};

// What goes wrong. Counts are from 1; 0: never. A fault stays: every later call of its kind fails
// too, as on a full disk.
struct Faults {
  std::int64_t first_failing_write = 0;
  std::int64_t first_failing_sync = 0;  // of files and of directories
  std::int64_t first_failing_read = 0;
  std::int64_t first_failing_rename = 0;  // renames and exchanges
  int write_error = ENOSPC;               // errno of failing writes; the others fail with EIO
  bool torn_write = false;                // the first failing write leaves half of its bytes
  // The process dies at this call that changes something, of the first half of its bytes if it is a
  // write: all later ones fail, so nothing is cleaned up.
  std::int64_t dies_at_change = 0;
  std::size_t short_read_bytes = 0;  // at most this many bytes per read_at(); 0: all
};

// Passes everything on to `base`, which must outlive it, counts it and puts the faults in. Set the
// faults while no call runs; the calls themselves may come from many threads.
class FaultyFileSystem final : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& base) : base_(base) {}

  Faults faults;

  // What was asked for so far, failed calls included.
  struct Counts {
    std::atomic<std::int64_t> writes{0};
    std::atomic<std::int64_t> syncs{0};
    std::atomic<std::int64_t> reads{0};
    std::atomic<std::int64_t> renames{0};
    std::atomic<std::int64_t> maps{0};
    std::atomic<std::int64_t> changes{0};  // writes, syncs, names made, changed and removed
    std::atomic<std::size_t> largest_read{0};
  };
  Counts counts;

  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<WritableFile> update(const std::string& path) override;
  bool exists(const std::string& path) override { return base_.exists(path); }
  bool is_directory(const std::string& path) override { return base_.is_directory(path); }
  std::vector<std::string> list(const std::string& path) override { return base_.list(path); }
  void create_directories(const std::string& path) override {
    change(path);
    base_.create_directories(path);
  }
  void rename(const std::string& from, const std::string& to) override;
  void exchange(const std::string& a, const std::string& b) override;
  void remove_all(const std::string& path) override {
    change(path);
    base_.remove_all(path);
  }
  std::unique_ptr<FileLock> lock(const std::string& path) override { return base_.lock(path); }
  void sync_directory(const std::string& path) override;
  // Counts a change; throws if the process is dead, or dies of it.
  void change(const std::string& path);

 private:
  FileSystem& base_;
};

// A new empty directory of the operating system, removed with all it holds by the destructor.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return join_path(path_, name); }

 private:
  std::string path_;
};

}  // namespace ooc::test
