// Headerless arrays: the elements of a matrix one after another, row by row, little-endian, and
// nothing else. What they are is said beside the name: "edges.bin:int64x2" is two columns of int64,
// "labels.bin:int32" one column. A file that starts with NumPy's magic is read as .npy all the
// same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/import/formats/table_reader.h"
#include "storage/io/file.h"

namespace ooc {

struct RawFormat {
  char kind = 0;  // as NumPy writes it: b, i, u, f
  std::int64_t item_bytes = 0;
  std::int64_t cols = 1;
};

// "int64x2", "float32"; empty for anything else. Types: bool, int8 to int64, uint8 to uint64,
// float16 to float64, and fp16, fp32, fp64.
std::optional<RawFormat> parse_raw_format(std::string_view text);

// Splits "path:TYPExCOLUMNS"; empty where `input` does not end that way. `path` views `input`.
std::optional<RawFormat> raw_suffix(std::string_view input, std::string_view& path);

// Whether the file starts as a .npy does.
bool has_npy_magic(FileSystem& files, const std::string& path);

// Throws DataError where the file's size is no multiple of a row's, or where the file is a .npy
// with another number of columns.
std::unique_ptr<TableReader> open_raw_table(FileSystem& files, const std::string& path,
                                            const RawFormat& format);

}  // namespace ooc
