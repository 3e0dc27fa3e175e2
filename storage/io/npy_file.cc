#include "storage/io/npy_file.h"

#include <fmt/format.h>

#include <span>

#include "storage/base/errors.h"

namespace ooc {

std::string npy_header(const NpyShape& shape) {
  constexpr std::size_t kAlignment = 64, kPreamble = 10;
  const std::string extents = shape.cols == 0 ? fmt::format("({},)", shape.rows)
                                              : fmt::format("({}, {})", shape.rows, shape.cols);
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", shape.descr, extents);
  dict.append(kAlignment - (kPreamble + dict.size() + 1) % kAlignment, ' ');
  dict.push_back('\n');
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(dict.size() & 0xFF));
  header.push_back(static_cast<char>(dict.size() >> 8));
  return header + dict;
}

NpyFileWriter::NpyFileWriter(FileSystem& files, const std::string& path, const NpyShape& shape)
    : shape_(shape), file_(files.create(path)) {
  const std::string header = npy_header(shape_);
  file_->write_at(0, std::as_bytes(std::span(header)));
  begin_ = header.size();
}

void NpyFileWriter::write_rows(std::int64_t row, const void* data, std::int64_t count) {
  OOC_CHECK(row >= 0 && count >= 0 && row + count <= shape_.rows);
  const std::uint64_t row_bytes = shape_.row_bytes();
  file_->write_at(begin_ + static_cast<std::uint64_t>(row) * row_bytes,
                  {static_cast<const std::byte*>(data),
                   static_cast<std::size_t>(static_cast<std::uint64_t>(count) * row_bytes)});
}

void NpyFileWriter::finish() {
  file_->sync();
  file_->close();
}

}  // namespace ooc
