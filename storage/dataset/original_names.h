// What the input calls the vertices of a dataset, where ids are strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "storage/dataset/dataset.h"

namespace ooc {

// The dataset must be there as long as this. Many threads.
class OriginalNames {
 public:
  // Of a dataset whose manifest says IdKind::kStrings.
  explicit OriginalNames(const Dataset& dataset);
  // The id of the vertex in this row, UTF-8. Valid as long as `buffer` is not changed. DataError
  // where the dataset is damaged.
  std::string_view of(std::int64_t row, std::string& buffer) const;
  // Where the id of the last row ends.
  std::int64_t end() const { return end_of(ends_.layout().rows - 1); }

  // Rows of the same place lie in the same chunks of both files. Those of other places needn't stay
  // resident: release() them.
  std::pair<std::int64_t, std::int64_t> place_of(std::int64_t row) const;
  void release() const;
  // Bytes that two places take at most.
  std::int64_t resident_bytes() const;

 private:
  std::int64_t end_of(std::int64_t row) const;

  const VertexTensorFile& ends_;
  const VertexTensorFile& bytes_;
};

}  // namespace ooc
