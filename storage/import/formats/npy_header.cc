#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "storage/base/errors.h"
#include "storage/import/formats/npy.h"

namespace ooc {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeaderBytes = 1 << 20;
constexpr const char* kSaveAgain = "save the array again with numpy.save";

[[noreturn]] void refuse_header(const ByteSource& source, std::string_view what) {
  throw DataError(fmt::format("not a readable .npy header: {}", what), source.name(), kSaveAgain);
}

// Reads the header's Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}.
class DictParser {
 public:
  DictParser(const ByteSource& source, std::string_view text) : source_(source), text_(text) {}

  void parse(NpyHeader& header) {
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') refuse_structure();
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        refuse_header(source_, fmt::format("the key '{}' is not known", key));
      }
      if (!accept(',') && peek() != '}') refuse_header(source_, "expected ',' or '}'");
    }
    if (!has_descr || !has_order || !has_shape) {
      refuse_header(source_, "it lacks descr, fortran_order or shape");
    }
  }

 private:
  char peek() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) {
      text_.remove_prefix(1);
    }
    return text_.empty() ? '\0' : text_.front();
  }

  bool accept(char wanted) {
    if (peek() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) refuse_header(source_, fmt::format("expected '{}'", wanted));
  }

  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse_header(source_, "expected a quoted string");
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) refuse_header(source_, "a quoted string does not end");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    peek();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    refuse_header(source_, "fortran_order is neither True nor False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      peek();
      std::int64_t value = 0;
      const auto [end, status] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (status != std::errc() || value < 0) refuse_header(source_, "the shape is not one");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      accept('L');  // Python 2 wrote (3L, 4L)
      values.push_back(value);
      if (!accept(',') && peek() != ')') refuse_header(source_, "the shape does not end");
    }
    return values;
  }

  [[noreturn]] void refuse_structure() {
    throw DataError("the array has a structured type", source_.name(),
                    "save one plain array of numbers per file");
  }

  const ByteSource& source_;
  std::string_view text_;
};

void parse_type(const ByteSource& source, NpyHeader& header) {
  const std::string& descr = header.descr;
  const bool has_form = descr.size() >= 2 && std::strchr("<>|=", descr[0]) != nullptr;
  header.kind = has_form ? descr[1] : '\0';
  if (header.kind == 'O') {
    throw DataError("the array holds Python objects", source.name(),
                    "save it as an array of numbers, such as x.astype('float32'), or of strings, "
                    "x.astype('str')");
  }
  if (!has_form || std::strchr("biufSU", header.kind) == nullptr) {
    throw DataError(fmt::format("the array's type '{}' is not supported", descr), source.name(),
                    "save it as integers, floats or booleans");
  }
  const char* end = descr.data() + descr.size();
  const auto [stop, status] = std::from_chars(descr.data() + 2, end, header.item_bytes);
  if (status != std::errc() || stop != end || header.item_bytes < 0) {
    refuse_header(source, fmt::format("the type '{}' has no size", descr));
  }
  const bool is_string = header.kind == 'S' || header.kind == 'U';
  if (descr[0] == '>' && header.item_bytes > 1 && !is_string) {
    throw DataError(fmt::format("the array is big-endian (type '{}')", descr), source.name(),
                    fmt::format("save it as little-endian, x.astype('<{}')", descr.substr(1)));
  }
  if (header.kind == 'U' && __builtin_mul_overflow(header.item_bytes, 4, &header.item_bytes)) {
    refuse_header(source, fmt::format("the type '{}' is too long", descr));
  }
}

void check_payload(const ByteSource& source, NpyHeader& header) {
  std::int64_t bytes = header.item_bytes;
  for (const std::int64_t extent : header.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      throw DataError("the array's shape overflows 64 bits",
                      fmt::format("{}, shape ({})", source.name(), fmt::join(header.shape, ", ")),
                      kSaveAgain);
    }
  }
  header.payload_bytes = static_cast<std::uint64_t>(bytes);
  const auto size = source.size();
  if (!size || *size - header.payload_offset == header.payload_bytes) return;
  const std::uint64_t there = *size - header.payload_offset;
  throw DataError(
      there < header.payload_bytes ? "truncated: the array ends early"
                                   : "the file goes on after the array's end",
      fmt::format("{}, {} bytes of data where shape ({}) of {} takes {}", source.name(), there,
                  fmt::join(header.shape, ", "), header.descr, header.payload_bytes),
      "write or download the file again");
}

}  // namespace

NpyHeader read_npy_header(ByteSource& source) {
  std::array<unsigned char, 12> start;
  const auto bytes = std::as_writable_bytes(std::span(start));
  const std::size_t got = source.read(bytes.first(10));
  if (got < 10 || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    throw DataError("not a .npy file: its first bytes are not NumPy's", source.name(),
                    "save the array again with numpy.save, or say with --raw-dtype and "
                    "--raw-columns what a headerless file holds");
  }
  const int version = start[6];
  if (version < 1 || version > 3) {
    refuse_header(source, fmt::format("version {} is not known", version));
  }
  std::size_t text_bytes = start[8] + 256u * start[9];
  std::uint64_t offset = 10;
  if (version > 1) {
    read_exact(source, bytes.subspan(10));
    text_bytes += 65536u * start[10] + 16777216u * start[11];
    offset = 12;
  }
  if (text_bytes > kMaxHeaderBytes) {
    refuse_header(source, fmt::format("its length of {} bytes is not credible", text_bytes));
  }
  std::string text(text_bytes, '\0');
  read_exact(source, std::as_writable_bytes(std::span(text)));

  NpyHeader header;
  DictParser(source, text).parse(header);
  parse_type(source, header);
  header.payload_offset = offset + text_bytes;
  check_payload(source, header);
  return header;
}

std::string read_npy_string(ByteSource& source) {
  const NpyHeader header = read_npy_header(source);
  if ((header.kind != 'S' && header.kind != 'U') || header.payload_bytes > 4096) {
    throw DataError(fmt::format("expected a short string but found type '{}'", header.descr),
                    source.name(), "save the matrix again with scipy.sparse.save_npz");
  }
  std::string text(header.payload_bytes, '\0');
  read_exact(source, std::as_writable_bytes(std::span(text)));
  std::erase(text, '\0');  // padding, and the upper bytes of UCS-4
  return text;
}

}  // namespace ooc
