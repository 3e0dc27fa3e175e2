#include "storage/import/formats/mtx_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::string_view kMagic = "%%matrixmarket";
constexpr std::uint64_t kLeastEntryBytes = 4;  // "1 1" and the line's end
constexpr std::uint64_t kLeastValueBytes = 2;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty() && words.size() < 8) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    if (end > 0) words.push_back(lower_case(line.substr(0, end)));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

void parse_kind(MtxLines& lines, MtxHeader& header) {
  std::string_view line;
  lines.reader().next(line);
  const std::vector<std::string> words = words_of(line);
  if (words.size() != 5 || words[0] != kMagic || words[1] != "matrix" ||
      (words[2] != "coordinate" && words[2] != "array")) {
    throw DataError("not a Matrix Market file: its first line is not '%%MatrixMarket matrix ...'",
                    lines.name(), "write the file again, such as with scipy.io.mmwrite");
  }
  header.dense = words[2] == "array";
  header.pattern = words[3] == "pattern";
  header.integer = words[3] == "integer";
  header.symmetric = words[4] == "symmetric";
  if (words[3] != "real" && words[3] != "double" && !header.integer &&
      !(header.pattern && !header.dense)) {
    throw DataError(fmt::format("a matrix of {} values cannot be read", words[3]), lines.name(),
                    "write it as real, integer or (coordinate only) pattern");
  }
  if (words[4] != "general" && !(header.symmetric && !header.dense)) {
    throw DataError(fmt::format("a {} {} matrix cannot be read", words[4], words[2]), lines.name(),
                    header.dense ? "write it as general" : "write it as general or symmetric");
  }
}

}  // namespace

bool MtxLines::next() {
  while (lines_.next(line_)) {
    at_ = line_.data();
    if (line_.front() != '%') return true;
  }
  return false;
}

std::string MtxLines::place() const {
  return fmt::format("{}, line {}", name(), lines_.line_number());
}

void MtxLines::refuse(std::string_view what, std::string_view remedy) const {
  throw DataError(what, place(), remedy);
}

MtxHeader read_mtx_header(MtxLines& lines) {
  MtxHeader header;
  parse_kind(lines, header);
  if (!lines.next()) throw DataError("there is no line of sizes", lines.name(), "write it again");
  header.rows = lines.number<std::int64_t>();
  header.cols = lines.number<std::int64_t>();
  bool overflow = false;
  if (header.dense) {
    overflow = __builtin_mul_overflow(header.rows, header.cols, &header.entries);
  } else {
    header.entries = lines.number<std::int64_t>();
  }
  if (lines.more() || overflow || header.rows < 0 || header.cols < 0 || header.entries < 0) {
    lines.refuse("the line of sizes is not one", "it has rows, columns and, coordinate, entries");
  }
  const auto size = lines.reader().source().size();
  const std::uint64_t least = header.dense ? kLeastValueBytes : kLeastEntryBytes;
  if (size && static_cast<std::uint64_t>(header.entries) > *size / least + 1) {
    lines.refuse(fmt::format("{} entries do not fit a file of {} bytes", header.entries, *size),
                 "write or download the file again");
  }
  return header;
}

}  // namespace ooc
