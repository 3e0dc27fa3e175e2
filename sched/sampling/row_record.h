// The rows of several inputs of one vertex beside each other, as they are stored: a row record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "storage/stores/tensor_store.h"

namespace ooc {

// What a program reads of every vertex.
struct RowInput {
  std::string name;
  const TensorStore* store = nullptr;
  DType dtype = DType::kF32;  // as the program reads it: the stored one, or wider (half.h)
};

// Columns of an input that lie in one slice.
struct RowStrip {
  std::size_t input = 0;
  std::int64_t slice = 0;
  std::size_t offset = 0;   // in a record
  std::size_t bytes = 0;    // of its columns, as stored
  std::size_t padding = 0;  // bytes after them, zero
  std::size_t stride = 0;   // bytes between two stored rows
};

// Inputs in their order, each padded to kRowAlignment; columns without the stored padding.
class RowRecord {
 public:
  static constexpr std::size_t kRowAlignment = 4;

  // At least one input. All have as many rows, in blocks of as many; a programmer's mistake else,
  // as is a dtype that rows are not converted to. The stores outlive it.
  explicit RowRecord(std::vector<RowInput> inputs);

  const std::vector<RowInput>& inputs() const { return inputs_; }
  const std::vector<RowStrip>& strips() const { return strips_; }
  std::size_t bytes() const { return bytes_; }
  std::int64_t vertices() const { return inputs_.front().store->layout().rows; }
  std::int64_t block_rows() const { return inputs_.front().store->layout().block_rows; }

 private:
  std::vector<RowInput> inputs_;
  std::vector<RowStrip> strips_;
  std::size_t bytes_ = 0;
};

// memcpy, inline where rows have the usual bytes: a call takes longer than they do.
inline void copy_row_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  switch (bytes) {
    case 128:
      std::memcpy(to, from, 128);
      return;
    case 64:
      std::memcpy(to, from, 64);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

}  // namespace ooc
