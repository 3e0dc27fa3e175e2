#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "kernels/cuda/argument_ring_cuda.h"
#include "kernels/edges/edge_work_cuda.h"
#include "storage/format/tensor_layout.h"
#include "tests/cuda/window_case.h"
#include "tests/support/cuda/device_copies.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::test {
namespace {

using cuda::Device;

constexpr std::int64_t kCols = 200;  // six slices of 32, one of 8

EdgeProgram sum_of_rows() {
  EdgeProgram program;
  program.streamed = program.accumulators = program.values = {{kCols, DType::kF32}};
  program.loads = {{EdgeLoad::kStreamed, 0, 0}};
  program.folds = {{Fold::kSum, {0}, {0}}};
  program.slice_local_cols = kCols;
  return program;
}

// Of each row of a span or a block, in slices: small whole numbers, whose sums are exact.
std::vector<float> rows_of(std::int64_t rows, std::int64_t first_row) {
  const TensorLayout layout{rows, kCols, rows};
  std::vector<float> all;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < layout.slice_stride(slice); ++i) {
        all.push_back(static_cast<float>((first_row + row) % 13 + slice * 32 + i));
      }
    }
  }
  return all;
}

SlicedRows view_of(float* rows, std::int64_t count) {
  auto* const first = reinterpret_cast<std::byte*>(rows);
  const std::int64_t stride = count * kSliceWidth * static_cast<std::int64_t>(sizeof(float));
  return {first, stride, first + stride * (ceil_div(kCols, kSliceWidth) - 1)};
}

// Of a panel's blocks, one after the other.
std::vector<std::vector<float>> sums_of(Device& device, const WindowCase& on,
                                        std::size_t ring_bytes) {
  const EdgeLayout& layout = on.layout;
  DeviceCopies copies(device);
  EdgeWindow window;
  window.layout = &layout;
  window.begins = true;
  window.first_block = on.panel * layout.panel_blocks;
  window.end_block = window.first_block + layout.panel_blocks;
  window.end_slice = ceil_div(kCols, kSliceWidth);
  std::int64_t chunk_bytes = 0;
  for (std::size_t span = 0; span < on.chunks.size(); ++span) {
    window.spans.push_back({{copies.of(on.chunks[span]), on.chunks[span].size()}, {}});
    chunk_bytes += std::ssize(on.chunks[span]);
    const auto first = static_cast<std::int64_t>(span) * layout.span_rows;
    window.streamed.push_back(
        view_of(copies.of(rows_of(layout.span_rows, first)), layout.span_rows));
  }
  std::vector<std::vector<float>> sums(static_cast<std::size_t>(layout.panel_blocks),
                                       rows_of(layout.block_rows, 0));
  std::vector<float*> there;
  for (const std::vector<float>& block : sums) {
    there.push_back(copies.of(block));
    window.accumulators.push_back(view_of(there.back(), layout.block_rows));
  }
  const std::int64_t rows = layout.panel_blocks * layout.block_rows;
  const std::vector<std::byte> room(
      static_cast<std::size_t>(edge_index_bytes(layout.data, rows, chunk_bytes)));
  const EdgeCall call{window.first_block, window.end_block, 0, window.end_slice,
                      std::span(copies.of(room), room.size())};
  cuda::StreamQueue& queue = device.queue(QueueKind::kCompute);
  const auto pinned = device.allocate_pinned(ring_bytes, "test");
  const auto ours = device.allocate(ring_bytes);
  cuda::ArgumentRing ring(0, {pinned->data(), ring_bytes}, ours->data(), queue.stream());
  cuda::make_edge_work(sum_of_rows(), ring)->run(window, call);
  for (std::size_t i = 0; i < sums.size(); ++i) copies.back(sums[i], there[i]);
  return sums;
}

// Column by column, by the host's reading of the chunks.
float sum_at(const WindowCase& on, std::int64_t block, std::int64_t row, std::int64_t col) {
  float sum = 0;
  for (std::size_t span = 0; span < on.chunks.size(); ++span) {
    const auto first = static_cast<std::int64_t>(span) * on.layout.span_rows;
    for (const PanelTile& tile : panel_tiles(on.layout, on.panel, on.chunks[span])) {
      if (tile.block != on.panel * on.layout.panel_blocks + block) continue;
      for_each_edge(tile.tile, [&](std::uint16_t to, std::uint16_t source) {
        if (to == row) sum += static_cast<float>((first + source) % 13 + col);
      });
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("cuda edges: sums are the same where the ring takes few slices at a time") {
  const WindowCase on = make_case(64, 900, false, false, false, 1);
  for_each_order(1, {}, [&] {
    Device device(0, 0);
    const std::vector<std::vector<float>> whole = sums_of(device, on, 64 << 10);
    CHECK(sums_of(device, on, 256) == whole);
    for (const std::int64_t row : {0, 7, 40}) {
      CHECK(whole[0][static_cast<std::size_t>(row * kSliceWidth + 5)] == sum_at(on, 0, row, 5));
      const std::int64_t third = 2 * 64 * kSliceWidth + row * kSliceWidth;
      CHECK(whole[1][static_cast<std::size_t>(third)] == sum_at(on, 1, row, 64));
    }
  });
}

}  // namespace ooc::test
