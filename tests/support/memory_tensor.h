// A vertex tensor that a test fills element by element, as a store.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "storage/stores/scratch_tensor.h"
#include "tests/support/aligned_buffer.h"

namespace ooc::test {

class AnyMemoryTensor {
 public:
  virtual ~AnyMemoryTensor() = default;
  virtual DType dtype() const = 0;
  // With the elements as they are now; until the next call. `io` outlives it.
  virtual TensorStore& store(BlockIo& io) = 0;
};

template <class T>
class MemoryTensor final : public AnyMemoryTensor {
 public:
  explicit MemoryTensor(const TensorLayout& layout)
      : layout_(layout), values_(static_cast<std::size_t>(layout.rows * layout.cols)) {}

  DType dtype() const override { return DTypeOf<T>::value; }
  T& at(std::int64_t row, std::int64_t col) {
    return values_[static_cast<std::size_t>(row * layout_.cols + col)];
  }

  TensorStore& store(BlockIo& io) override {
    store_ = std::make_unique<ScratchTensor>(io, "/", dtype(), layout_);
    const std::int64_t io_chunk_rows = store_->io_chunk_blocks() * layout_.block_rows;
    for (std::int64_t first = 0; first < layout_.rows; first += io_chunk_rows) {
      for (std::int64_t slice = 0; slice < layout_.slice_count(); ++slice) {
        write(first, std::min(io_chunk_rows, layout_.rows - first), slice);
      }
    }
    return *store_;
  }

 private:
  void write(std::int64_t first, std::int64_t count, std::int64_t slice) {
    const std::int64_t stride = layout_.slice_stride(slice), io_chunk_rows = count;
    AlignedBuffer buffer(io_aligned(static_cast<std::size_t>(io_chunk_rows * stride) * sizeof(T)));
    auto* rows = reinterpret_cast<T*>(buffer.data());
    for (std::int64_t row = 0; row < count; ++row) {
      std::memcpy(rows + row * stride, &at(first + row, slice * kSliceWidth),
                  static_cast<std::size_t>(layout_.slice_cols(slice)) * sizeof(T));
    }
    BlockWait wait;
    store_->write(first / (store_->io_chunk_blocks() * layout_.block_rows), slice, buffer.data(), 0,
                  wait.completion());
    wait.wait();
  }

  TensorLayout layout_;
  std::vector<T> values_;
  std::unique_ptr<ScratchTensor> store_;
};

}  // namespace ooc::test
