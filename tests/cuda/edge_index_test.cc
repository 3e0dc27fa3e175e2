#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <utility>
#include <vector>

#include "kernels/device/device_cuda.h"
#include "kernels/edges/edge_index_cuda.h"
#include "kernels/spec/compute_shape.h"
#include "tests/cuda/window_case.h"
#include "tests/support/cuda/device_copies.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::test {
namespace {

using cuda::Device;

struct Found {
  std::vector<std::uint32_t> row_ptr, neighbours;
  std::vector<float> weights;
  bool operator==(const Found&) const = default;
};

// Row after row, by the host's reading of the chunks.
Found expected_of(const WindowCase& on) {
  const std::int64_t rows = on.layout.panel_blocks * on.layout.block_rows;
  std::vector<std::vector<std::pair<std::uint32_t, float>>> of_row(static_cast<std::size_t>(rows));
  for (std::size_t span = 0; span < on.chunks.size(); ++span) {
    const auto first = static_cast<std::int64_t>(span) * on.layout.span_rows;
    for (const PanelTile& tile : panel_tiles(on.layout, on.panel, on.chunks[span])) {
      const std::int64_t begin =
          (tile.block - on.panel * on.layout.panel_blocks) * on.layout.block_rows;
      std::size_t edge = 0;
      for_each_edge(tile.tile, [&](std::uint16_t row, std::uint16_t source) {
        const std::size_t at = edge++;
        if (!on.splits[span].empty() && on.splits[span][source] != 1) return;
        of_row[static_cast<std::size_t>(begin + row)].emplace_back(
            static_cast<std::uint32_t>(span) << 16 | source,
            on.layout.data.weights ? tile.tile.weights[at] : 0.0f);
      });
    }
    for (std::int64_t row = 0; row < rows && !on.loops.empty(); ++row) {
      const std::int64_t vertex = on.panel * rows + row;
      const bool own = vertex >= first && vertex < first + on.layout.span_rows;
      if (!own || vertex >= on.layout.vertices) continue;
      if ((on.loops[static_cast<std::size_t>(vertex / 64)] >> (vertex % 64) & 1) != 0) continue;
      of_row[static_cast<std::size_t>(row)].emplace_back(
          static_cast<std::uint32_t>(span) << 16 | static_cast<std::uint32_t>(vertex - first),
          1.0f);
    }
  }
  Found found{{0}, {}, {}};
  for (const auto& edges : of_row) {
    std::uint32_t span = ~0u, of_span = 0;
    for (const auto& [neighbour, weight] : edges) {
      of_span = neighbour >> 16 == span ? of_span + 1 : 0;
      span = neighbour >> 16;
      const bool begins_piece = of_span % cuda::kPieceEdges == 0;
      found.neighbours.push_back(cuda::IndexedEdge(span, neighbour & 0xffff, begins_piece).word);
      if (on.layout.data.weights) found.weights.push_back(weight);
    }
    found.row_ptr.push_back(static_cast<std::uint32_t>(found.neighbours.size()));
  }
  return found;
}

Found index_of(Device& device, const WindowCase& on, const Found& expected) {
  DeviceCopies copies(device);
  std::vector<cuda::IndexedSpan> spans;
  for (std::size_t i = 0; i < on.chunks.size(); ++i) {
    spans.push_back({copies.of(on.chunks[i]), copies.of(on.splits[i])});
  }
  cuda::IndexedWindow window{.layout = on.layout,
                             .first_span = 0,
                             .span_count = std::ssize(spans),
                             .first_block = on.panel * on.layout.panel_blocks,
                             .block_count = on.layout.panel_blocks};
  window.spans = copies.of(spans);
  window.self_loops = copies.of(on.loops);
  Found found = expected;
  std::fill(found.row_ptr.begin(), found.row_ptr.end(), 77u);
  std::fill(found.neighbours.begin(), found.neighbours.end(), 77u);
  std::fill(found.weights.begin(), found.weights.end(), 77.0f);
  const std::vector<std::uint32_t> sums(
      static_cast<std::size_t>(ceil_div(window.rows(), kIndexStrip)), 77u);
  const cuda::EdgeIndex index{copies.of(found.row_ptr), copies.of(sums),
                              copies.of(found.neighbours), copies.of(found.weights)};
  cuda::build_edge_index(window, index, device.queue(QueueKind::kCompute).stream());
  copies.back(found.row_ptr, index.row_ptr);
  copies.back(found.neighbours, index.neighbours);
  if (index.weights != nullptr) copies.back(found.weights, index.weights);
  return found;
}

}  // namespace

TEST_CASE("cuda edges: a window's edges by row, from both encodings, with filters and loops") {
  std::set<TileEncoding> encodings;
  for_each_order(1, {}, [&] {
    Device device(0, 0);
    unsigned seed = 0;
    for (const std::int64_t block_rows : {16, 512, 2048}) {
      for (const int edges : {1, 700, 4000}) {
        const unsigned kind = seed++;
        const WindowCase on =
            make_case(block_rows, edges, kind % 2 == 0, kind % 3 == 1, kind % 4 != 3, kind);
        const Found expected = expected_of(on);
        INFO("block rows " << block_rows << ", edges " << edges << ", seed " << kind);
        CHECK(index_of(device, on, expected) == expected);
        encodings.insert(on.encodings.begin(), on.encodings.end());
      }
    }
  });
  CHECK(encodings.size() == 2);
}

}  // namespace ooc::test
