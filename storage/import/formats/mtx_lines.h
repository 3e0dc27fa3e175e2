// The text of a Matrix Market file below its tables (mtx.h): header, lines, numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "storage/import/decode/line_reader.h"
#include "storage/import/decode/number_text.h"

namespace ooc {

struct MtxHeader {
  bool dense = false;
  bool pattern = false;
  bool integer = false;
  bool symmetric = false;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t entries = 0;  // that the file lists
};

// The lines that hold something, and the numbers in them.
class MtxLines {
 public:
  explicit MtxLines(std::unique_ptr<ByteSource> source,
                    std::size_t buffer_bytes = LineReader::kBufferBytes)
      : lines_(std::move(source), buffer_bytes, LineReader::Comments::kNone) {}

  bool next();

  LineReader& reader() { return lines_; }
  const std::string& name() const { return lines_.source().name(); }
  std::string place() const;

  // Whether the line has another field.
  bool more() {
    while (at_ != end() && (*at_ == ' ' || *at_ == '\t')) ++at_;
    return at_ != end();
  }

  // The next field of the line. Throws DataError where there is none, or it is no number.
  template <class T>
  T number() {
    if (!more()) refuse("a field is missing", "every entry needs all its fields");
    T value{};
    const char* const stop = scan_number(at_, end(), value);
    if (stop != nullptr && (stop == end() || *stop == ' ' || *stop == '\t')) {
      at_ = stop;
      return value;
    }
    const std::string_view rest(at_, static_cast<std::size_t>(end() - at_));
    const std::string_view field = rest.substr(0, rest.find_first_of(" \t"));
    const Parse status = parse_field(field, value);
    if (status != Parse::kOk) refuse(describe(status, field), "correct the value");
    at_ += field.size();
    return value;
  }

  [[noreturn]] void refuse(std::string_view what, std::string_view remedy) const;

 private:
  const char* end() const { return line_.data() + line_.size(); }

  LineReader lines_;
  std::string_view line_;
  const char* at_ = nullptr;
};

// Reads up to the line of sizes. Throws DataError for a kind that cannot be read, and for more
// entries than the file has bytes for.
MtxHeader read_mtx_header(MtxLines& lines);

}  // namespace ooc
