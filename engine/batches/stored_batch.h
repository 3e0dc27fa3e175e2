// A stored batch as programs read it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/batches/loaded_batch.h"
#include "kernels/device/host_buffer.h"
#include "storage/batches/batch_layout.h"

namespace ooc {

// The content of stored batches: what its chunk has in the type that programs read stays where it
// is, the rest is widened into memory that one batch after the other takes. One thread.
class StoredBatch {
 public:
  // Batches of `layout` have all that the options ask for; a programmer's mistake else. Both
  // outlive this.
  StoredBatch(const BatchLoaderOptions& options, const BatchLayout& layout);

  // Of this batch, whose chunk stays where it is as long as the content is used; until the next
  // one.
  const BatchContent& open(const BatchView& batch);
  // Of memory, for batches of so many rows.
  std::int64_t widened_bytes(std::span<const std::int64_t> level_rows) const;

 private:
  // A tensor that is read.
  struct Input {
    std::size_t tensor = 0;
    DType dtype = DType::kF32;
  };
  BatchTensor widened(const Input& input) const;
  void widen_rows(const Input& input, const std::byte* from, std::int64_t rows,
                  std::byte* to) const;

  const BatchLayout& layout_;
  std::vector<Input> inputs_;
  std::optional<HostBuffer> memory_;
  BatchContent content_;
};

}  // namespace ooc
