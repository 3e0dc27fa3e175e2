// NumPy's .npy format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
// Versions 1 to 3, little-endian booleans, integers and floats of 2, 4 and 8 bytes, C and Fortran
// order, one or two dimensions; strings (ids/id_array.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/import/decode/byte_source.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

struct NpyHeader {
  std::string descr;  // as written: "<i4", "|b1", "<f8", "|S3"
  char kind = 0;      // b, i, u, f, S or U
  std::int64_t item_bytes = 0;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::uint64_t payload_offset = 0;
  std::uint64_t payload_bytes = 0;
};

// Reads the header and leaves the source at the payload. Throws DataError for what is not a .npy
// file, big-endian numbers, Python objects and structures, a shape that overflows, and a payload
// whose length is not what the header promises.
NpyHeader read_npy_header(ByteSource& source);

// The array as a table; one dimension is one column. Reads numbers only, no strings.
std::unique_ptr<TableReader> open_npy_table(std::unique_ptr<ByteSource> source);

// The same for an array whose header lies elsewhere.
std::unique_ptr<TableReader> open_array_table(std::unique_ptr<ByteSource> source, NpyHeader header);

// The text of a scalar string array (SciPy's "format" member).
std::string read_npy_string(ByteSource& source);

}  // namespace ooc
