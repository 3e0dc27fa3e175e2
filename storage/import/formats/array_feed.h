// The elements of a vector, one after another, read through a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

// Throws DataError for a table of other than one column, and past its end.
template <class T>
class Feed {
 public:
  explicit Feed(std::unique_ptr<TableReader> table) : table_(std::move(table)) {
    if (table_->cols() != 1) {
      throw DataError("the array is not a vector", table_->name(),
                      "save the matrix again with scipy.sparse.save_npz");
    }
  }

  T next() {
    if (used_ == filled_) {
      filled_ = static_cast<std::size_t>(table_->read(std::span<T>(buffer_)));
      used_ = 0;
      if (filled_ == 0) {
        throw DataError("the array ends early", table_->name(),
                        "the file is damaged: make it again");
      }
    }
    ++position_;
    return buffer_[used_++];
  }

  void rewind() {
    table_->rewind();
    used_ = filled_ = 0;
    position_ = 0;
  }

  TableReader& table() const { return *table_; }
  // Where the element that next() gave last lies.
  std::string where() { return table_->where(position_ - 1); }

 private:
  static constexpr std::size_t kElements = 64 << 10;

  std::unique_ptr<TableReader> table_;
  std::vector<T> buffer_ = std::vector<T>(kElements);
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  std::int64_t position_ = 0;
};

}  // namespace ooc
