#include "storage/import/formats/raw.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

#include "storage/base/errors.h"
#include "storage/import/formats/npy.h"

namespace ooc {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct TypeName {
  std::string_view name;
  char kind;
  std::int64_t item_bytes;
};
constexpr std::array<TypeName, 15> kTypes = {{{"bool", 'b', 1},
                                              {"int8", 'i', 1},
                                              {"int16", 'i', 2},
                                              {"int32", 'i', 4},
                                              {"int64", 'i', 8},
                                              {"uint8", 'u', 1},
                                              {"uint16", 'u', 2},
                                              {"uint32", 'u', 4},
                                              {"uint64", 'u', 8},
                                              {"float16", 'f', 2},
                                              {"float32", 'f', 4},
                                              {"float64", 'f', 8},
                                              {"fp16", 'f', 2},
                                              {"fp32", 'f', 4},
                                              {"fp64", 'f', 8}}};

}  // namespace

std::optional<RawFormat> parse_raw_format(std::string_view text) {
  const std::size_t cross = text.find('x');
  RawFormat format;
  for (const TypeName& type : kTypes) {
    if (type.name != text.substr(0, cross)) continue;
    format.kind = type.kind;
    format.item_bytes = type.item_bytes;
  }
  if (format.kind == 0) return std::nullopt;
  if (cross == std::string_view::npos) return format;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data() + cross + 1, end, format.cols);
  constexpr std::int64_t kMaxCols = std::int64_t{1} << 40;
  if (status != std::errc() || stop != end || format.cols < 1 || format.cols > kMaxCols) {
    return std::nullopt;
  }
  return format;
}

std::optional<RawFormat> raw_suffix(std::string_view input, std::string_view& path) {
  const std::size_t colon = input.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto format = parse_raw_format(input.substr(colon + 1));
  if (format) path = input.substr(0, colon);
  return format;
}

bool has_npy_magic(FileSystem& files, const std::string& path) {
  std::array<std::byte, kNpyMagic.size()> start;
  const auto source = open_byte_source(files, path);
  return source->read(start) == start.size() &&
         std::memcmp(start.data(), kNpyMagic.data(), start.size()) == 0;
}

std::unique_ptr<TableReader> open_raw_table(FileSystem& files, const std::string& path,
                                            const RawFormat& format) {
  auto source = open_byte_source(files, path);
  if (has_npy_magic(files, path)) {
    auto table = open_npy_table(std::move(source));
    if (table->cols() == format.cols) return table;
    throw DataError(
        fmt::format("a .npy of {} columns where {} are said", table->cols(), format.cols), path,
        "a .npy says itself what it holds: give its name alone");
  }
  if (!source->size()) {
    throw DataError("a headerless file must not be compressed", path, "decompress it first");
  }
  const std::uint64_t row_bytes = static_cast<std::uint64_t>(format.cols * format.item_bytes);
  if (*source->size() % row_bytes != 0) {
    throw DataError(fmt::format("{} bytes are no whole number of rows of {} bytes ({} columns)",
                                *source->size(), row_bytes, format.cols),
                    path, "correct the type or the columns, or write the file again");
  }
  NpyHeader header;
  header.kind = format.kind;
  header.item_bytes = format.item_bytes;
  header.shape = {static_cast<std::int64_t>(*source->size() / row_bytes), format.cols};
  header.payload_bytes = *source->size();
  return open_array_table(std::move(source), std::move(header));
}

}  // namespace ooc
