// The operating system's files behind storage/io/block_file.h, opened to bypass the page cache
// (O_DIRECT) where their file system can.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "storage/io/block_file.h"
#include "storage/io/file_descriptor.h"

namespace ooc {

class DirectFile final : public BlockFile {
 public:
  DirectFile(std::string path, FileDescriptor fd, std::uint64_t bytes, bool direct)
      : path_(std::move(path)), fd_(std::move(fd)), bytes_(bytes), direct_(direct) {}
  const std::string& path() const override { return path_; }
  std::uint64_t size() const override { return bytes_; }
  bool direct() const override { return direct_; }
  int fd() const { return fd_.get(); }

 private:
  std::string path_;
  FileDescriptor fd_;
  std::uint64_t bytes_;
  bool direct_;
};

// Opens them as BlockIo says. Many threads.
class DirectFiles {
 public:
  // `refuse_direct` as in BlockIoOptions.
  explicit DirectFiles(int refuse_direct) : refuse_direct_(refuse_direct) {}
  std::unique_ptr<BlockFile> open(const std::string& path);
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory, std::uint64_t bytes);

 private:
  bool make_direct(int fd, const std::string& path);

  int refuse_direct_;
  std::atomic<bool> said_{false};
};

}  // namespace ooc
