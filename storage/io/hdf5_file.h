// HDF5 files for checkpoints and results: composed and read as one block of bytes, so that they go
// through the file seam like everything else (atomic, with its errors).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/base/types.h"

namespace ooc {

// One thread. Paths are absolute inside the file; groups are made as needed.
class Hdf5Writer {
 public:
  Hdf5Writer();
  ~Hdf5Writer();
  void write_array(const std::string& path, DType dtype, const std::vector<std::int64_t>& shape,
                   const void* data);
  // Attributes of the root group.
  void write_attribute(const std::string& name, std::int64_t value);
  void write_attribute(const std::string& name, double value);
  void write_attribute(const std::string& name, const std::string& value);
  // The finished file; call once, last.
  std::vector<std::byte> bytes();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Hdf5Array {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

// One thread; takes little memory but the bytes and what it returns. `where`
// names the file in errors: DataError if the bytes are no HDF5 file, or if what
// is asked for isn't there or is of another type.
class Hdf5Reader {
 public:
  Hdf5Reader(std::vector<std::byte> bytes, std::string where);
  ~Hdf5Reader();
  bool contains(const std::string& path) const;
  std::vector<std::string> list(const std::string& group) const;  // names; empty if no group
  Hdf5Array read_array(const std::string& path) const;
  bool has_attribute(const std::string& attribute) const;
  std::int64_t read_int(const std::string& attribute) const;
  double read_double(const std::string& attribute) const;
  std::string read_string(const std::string& attribute) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ooc
