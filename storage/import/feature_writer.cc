#include "storage/import/feature_writer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "storage/errors.h"
#include "storage/import/features_input.h"

namespace ooc {
namespace {

// Hands every block of rows to take(rows, count), in order.
template <class Take>
void for_each_block(std::int64_t vertices, std::int64_t cols, const NextRows& next_rows,
                    std::string_view phase, const Control& control, Take&& take) {
  std::vector<float> block(static_cast<std::size_t>(feature_rows_at_once(cols) * cols));
  std::int64_t done = 0;
  while (const std::int64_t count = next_rows(block)) {
    take(std::span<const float>(block).first(static_cast<std::size_t>(count * cols)), count);
    done += count;
    control.step(phase, static_cast<double>(done), static_cast<double>(vertices));
  }
  OOC_CHECK(done == vertices);
}

void spool_rows(FileSystem& files, const std::string& path, std::int64_t vertices,
                std::int64_t cols, const NextRows& next_rows, const Control& control) {
  const auto file = files.create(path);
  std::uint64_t offset = 0;
  for_each_block(vertices, cols, next_rows, "spooling features", control,
                 [&](std::span<const float> rows, std::int64_t) {
                   file->write_at(offset, std::as_bytes(rows));
                   offset += rows.size_bytes();
                 });
  file->close();
}

}  // namespace

void write_features(FileSystem& files, DatasetWriter& writer, std::int64_t vertices,
                    std::int64_t cols, const NextRows& next_rows, std::span<const VertexId> order,
                    const Control& control) {
  VertexTensorWriter& features = writer.features(cols);
  const auto append = [&](std::span<const float> rows, std::int64_t count) {
    features.append_rows(rows.data(), count);
  };
  if (order.empty()) {
    for_each_block(vertices, cols, next_rows, "writing features", control, append);
    writer.finish_features();
    return;
  }
  const std::string path = writer.scratch_path("features");
  spool_rows(files, path, vertices, cols, next_rows, control);
  {
    const auto file = files.open(path);
    const std::byte* const spooled = file->map().data();
    const std::size_t row_bytes = static_cast<std::size_t>(cols) * sizeof(float);
    std::int64_t next = 0;
    const auto gather = [&](std::span<float> out) {
      const std::int64_t count =
          std::min(static_cast<std::int64_t>(out.size()) / cols, vertices - next);
      for (std::int64_t i = 0; i < count; ++i, ++next) {
        std::memcpy(out.data() + i * cols, spooled + order[next] * row_bytes, row_bytes);
      }
      return count;
    };
    for_each_block(vertices, cols, gather, "writing features", control, append);
  }
  writer.finish_features();
  files.remove_all(path);
}

}  // namespace ooc
