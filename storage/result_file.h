// An array written row by row as the user asked for it: NumPy (.npy) or HDF5 (.h5, dataset
// "/data"). Under a temporary name until it is whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/file.h"
#include "storage/types.h"

namespace ooc {

struct ResultShape {
  DType dtype = DType::kF32;  // fp32 or int64
  std::int64_t rows = 0;
  std::int64_t cols = 0;  // 0: one dimension
};

// One thread. Destroyed before finish(), it removes what it wrote.
class ResultFile {
 public:
  virtual ~ResultFile() = default;
  virtual void append(const void* data, std::int64_t row_count) = 0;
  virtual void finish() = 0;  // all rows must be there
};

// UsageError: the name ends in neither, or the file exists and `force` is not set.
void check_result_path(FileSystem& files, const std::string& path, bool force);
std::unique_ptr<ResultFile> make_result_file(FileSystem& files, const std::string& path,
                                             const ResultShape& shape);

}  // namespace ooc
