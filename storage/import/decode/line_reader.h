// Splits a byte stream into lines, in a bounded buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "storage/import/decode/byte_source.h"

namespace ooc {

class LineReader {
 public:
  static constexpr std::size_t kBufferBytes = 1 << 20;
  enum class Comments {
    kNone,
    kAnywhere,    // from '#' on; lines that start with '%'
    kWholeLines,  // lines that start with '#' or '%' before a blank
  };

  // The buffer grows where a line takes more.
  explicit LineReader(std::unique_ptr<ByteSource> source, std::size_t buffer_bytes = kBufferBytes,
                      Comments comments = Comments::kAnywhere);

  // The next line that holds something, without its end, its comment and blanks around it. False at
  // the end. Valid until the next call. Throws DataError for a line beyond 64 MiB.
  bool next(std::string_view& line);
  // Of the line that next() gave last, from 1.
  std::int64_t line_number() const { return line_number_; }
  // Empty lines, or of a comment, just before it.
  std::int64_t blank_lines() const { return blank_lines_; }
  // Where the next line starts.
  std::uint64_t offset() const { return source_offset_ - (end_ - begin_); }
  void rewind() { seek(0, 0); }
  // Goes on at `offset`, with `line_number` lines before it.
  void seek(std::uint64_t offset, std::int64_t line_number);
  const ByteSource& source() const { return *source_; }

 private:
  bool next_raw(std::string_view& line);
  void check_encoding(std::string_view& line) const;
  std::string_view without_comment(std::string_view line);
  bool is_comment(std::string_view line) const;
  bool refill();

  std::unique_ptr<ByteSource> source_;
  Comments comments_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // what next() has not given yet lies in [begin_, end_)
  std::size_t end_ = 0;
  std::size_t hash_ = 0;  // the first '#' at or after the line before, or end_
  bool hash_known_ = false;
  std::uint64_t source_offset_ = 0;  // bytes of the source read so far
  std::int64_t line_number_ = 0;
  std::int64_t blank_lines_ = 0;
};

// What a message quotes: cut after 60 bytes of UTF-8.
std::string shortened(std::string_view text);

}  // namespace ooc
