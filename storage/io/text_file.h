// Lines of text, written through a buffer. Under a temporary name until it is whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "storage/io/file.h"

namespace ooc {

// One thread. Destroyed before finish(), it removes what it wrote.
class TextFile {
 public:
  TextFile(FileSystem& files, std::string path);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  void add(std::string_view text);
  void add_line(std::string_view text) {
    add(text);
    add("\n");
  }
  // `text` as a field of a .csv: in quotes where it would not be read as it is.
  void add_field(std::string_view text);
  void finish();

 private:
  void flush();

  FileSystem& files_;
  std::string path_;
  std::unique_ptr<WritableFile> file_;
  std::string buffer_;
  std::uint64_t written_ = 0;
  bool finished_ = false;
};

}  // namespace ooc
