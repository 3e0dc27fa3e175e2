// An open file of the operating system, closed with its owner.
#pragma once

#include <cstdint>
#include <string>

namespace ooc {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor();
  int get() const { return fd_; }
  // Linux frees the descriptor even where close() fails, so it is never tried twice.
  int close();

 private:
  int fd_;
};

// open(2), again where a signal interrupted it; -1 and errno where it fails.
int open_retrying(const std::string& path, int flags);

// Bytes of an open file. DataError for what is no regular file.
std::uint64_t regular_file_bytes(int fd, const std::string& path);

}  // namespace ooc
