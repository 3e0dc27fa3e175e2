// An array written row by row as the user asked for it: NumPy (.npy), HDF5 (.h5, dataset "/data")
// or text (.csv, a header and a line a row that begins with its id). Under a temporary name until
// it is whole. Ids of the rows, where they aren't 0 to V - 1, go into a file beside it
// (NAME.ids.npy; strings, a line each: NAME.ids.txt) or into "/ids" (strings: UTF-8 of variable
// length).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/base/types.h"
#include "storage/format/manifest.h"
#include "storage/io/file.h"

namespace ooc {

struct ResultShape {
  DType dtype = DType::kF32;  // fp32, int64 or uint8
  std::int64_t rows = 0;
  std::int64_t cols = 0;  // 0: one dimension
  // Of .csv: what a column is called, after which comes its number if there are some; names instead
  // of numbers, of columns or, in int64 of one dimension, of values.
  std::string what = "value";
  std::vector<std::string> names = {};
  IdKind ids = IdKind::kDense;
};

// One thread. Destroyed before finish(), it removes what it wrote.
class ResultFile {
 public:
  virtual ~ResultFile() = default;
  virtual void append(const void* data, std::int64_t row_count) = 0;
  // The ids of the rows that were appended last, unless ResultShape::ids are dense.
  virtual void append_ids(std::span<const std::int64_t> ids) = 0;
  virtual void append_names(std::span<const std::string> names) = 0;
  virtual void finish() = 0;  // all rows must be there
};

// UsageError: the name ends in none of them, or its directory isn't there.
void check_result_path(FileSystem& files, const std::string& path);
// The file that append_ids() or append_names() adds to the result `path`; empty where ids lie in
// the same.
std::string result_ids_path(const std::string& path, IdKind ids);
// UsageError: the result `path` or the file of its ids exists, and `force` is not set.
void check_result_is_free(FileSystem& files, const std::string& path, IdKind ids, bool force);
std::unique_ptr<ResultFile> make_result_file(FileSystem& files, const std::string& path,
                                             const ResultShape& shape);

}  // namespace ooc
