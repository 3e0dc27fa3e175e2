#include "storage/import/rows/row_placer.h"

#include <utility>

namespace ooc {

RowPlacer::RowPlacer(FileSystem& files, VertexTensorWriter& tensor,
                     std::span<const VertexIndex> new_ids, const RowBuckets::Options& options)
    : tensor_(tensor), new_ids_(new_ids), row_bytes_(options.row_bytes) {
  if (!new_ids.empty()) buckets_ = std::make_unique<RowBuckets>(files, options);
}

RowPlacer::~RowPlacer() = default;

void RowPlacer::add(std::span<const std::byte> rows) {
  const auto count = static_cast<std::int64_t>(rows.size() / row_bytes_);
  if (!buckets_) {
    tensor_.append_rows(rows.data(), count);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    buckets_->add(new_ids_[static_cast<std::size_t>(next_row_ + i)],
                  rows.data() + static_cast<std::size_t>(i) * row_bytes_);
  }
  next_row_ += count;
}

void RowPlacer::finish(std::string_view phase, const Control& control) {
  if (!buckets_) return;
  buckets_->finish();
  std::int64_t done = 0;
  for (auto rows = buckets_->next(); !rows.empty(); rows = buckets_->next()) {
    const auto count = static_cast<std::int64_t>(rows.size() / row_bytes_);
    tensor_.append_rows(rows.data(), count);
    done += count;
    control.step(phase, static_cast<double>(done), static_cast<double>(new_ids_.size()));
  }
  buckets_.reset();
}

}  // namespace ooc
