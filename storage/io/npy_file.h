// NumPy arrays (.npy, format version 1.0) of a known shape, written in any order of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/io/file.h"

namespace ooc {

struct NpyShape {
  std::string descr;  // NumPy's: "<f4", "<i8", "|i1"
  std::int64_t item_bytes = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;  // 0: one dimension

  std::uint64_t row_bytes() const {
    return static_cast<std::uint64_t>(item_bytes * (cols == 0 ? 1 : cols));
  }
};

// Magic, version, header length, a Python literal padded with blanks to a multiple of 64.
std::string npy_header(const NpyShape& shape);

// One thread. Rows that were never written are zero. The file appears under its own name at once.
class NpyFileWriter {
 public:
  NpyFileWriter(FileSystem& files, const std::string& path, const NpyShape& shape);
  const NpyShape& shape() const { return shape_; }
  // `data`: row-major.
  void write_rows(std::int64_t row, const void* data, std::int64_t count);
  // Makes it durable.
  void finish();

 private:
  NpyShape shape_;
  std::unique_ptr<WritableFile> file_;
  std::uint64_t begin_;  // of the first row
};

}  // namespace ooc
