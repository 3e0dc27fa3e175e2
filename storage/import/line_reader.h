// Splits a byte stream into lines, in a bounded buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "storage/import/byte_source.h"

namespace ooc {

class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source);

  // The next line that holds something, without its end, its comment and blanks around it. False at
  // the end. Valid until the next call. Throws DataError for a line beyond 64 MiB.
  bool next(std::string_view& line);
  // Of the line that next() gave last, from 1.
  std::int64_t line_number() const { return line_number_; }
  void rewind();
  const ByteSource& source() const { return *source_; }

 private:
  bool next_raw(std::string_view& line);
  bool refill();

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // what next() has not given yet lies in [begin_, end_)
  std::size_t end_ = 0;
  std::int64_t line_number_ = 0;
};

}  // namespace ooc
