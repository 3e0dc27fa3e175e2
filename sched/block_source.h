// Where the rows of an input vertex tensor come from: a dataset's mapped file, or memory.
#pragma once

#include <string>
#include <vector>

#include "storage/tensor_layout.h"
#include "storage/vertex_tensor.h"

namespace ooc {

// Read by many threads.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  virtual DType dtype() const = 0;
  virtual const TensorLayout& layout() const = 0;
  // Whether its chunks are bytes of a dataset's file.
  virtual bool in_storage() const = 0;
  // Row-major chunk, rows lie layout().slice_stride(slice) elements apart.
  virtual const void* chunk(std::int64_t block, std::int64_t slice) const = 0;
};

// A vertex tensor of a dataset, read in place. The file outlives it.
class MappedSource final : public BlockSource {
 public:
  explicit MappedSource(const VertexTensorFile& file) : file_(file) {}
  DType dtype() const override { return file_.dtype(); }
  const TensorLayout& layout() const override { return file_.layout(); }
  bool in_storage() const override { return true; }
  const void* chunk(std::int64_t block, std::int64_t slice) const override {
    return file_.chunk(block, slice);
  }

 private:
  const VertexTensorFile& file_;
};

// A vertex tensor in host memory, one slice after the other.
template <class T>
class MemorySource final : public BlockSource {
 public:
  explicit MemorySource(const TensorLayout& layout) : layout_(layout) {
    for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
      slices_.emplace_back(static_cast<std::size_t>(layout.rows * layout.slice_stride(slice)));
    }
  }
  DType dtype() const override { return DTypeOf<T>::value; }
  const TensorLayout& layout() const override { return layout_; }
  bool in_storage() const override { return false; }
  const void* chunk(std::int64_t block, std::int64_t slice) const override {
    return slices_[static_cast<std::size_t>(slice)].data() +
           block * layout_.block_rows * layout_.slice_stride(slice);
  }
  T& at(std::int64_t row, std::int64_t col) {
    const std::int64_t slice = col / kSliceWidth;
    return slices_[static_cast<std::size_t>(slice)]
                  [static_cast<std::size_t>(row * layout_.slice_stride(slice) + col % kSliceWidth)];
  }

 private:
  TensorLayout layout_;
  std::vector<std::vector<T>> slices_;
};

}  // namespace ooc
