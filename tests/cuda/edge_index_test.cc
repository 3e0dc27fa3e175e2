#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "kernels/device/device_cuda.h"
#include "kernels/edges/edge_index_cuda.h"
#include "kernels/spec/compute_shape.h"
#include "storage/format/format.h"
#include "tests/support/cuda/device_copies.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::test {
namespace {

using cuda::Device;
using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto* at = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), at, at + sizeof value);
}

// An edge chunk of tiles by block of the panel, whose edges weigh what `weight` says.
Bytes chunk_of(const std::map<std::uint16_t, std::vector<LocalEdge>>& tiles, const EdgeData& data,
               std::mt19937& random, std::set<TileEncoding>& encodings) {
  Bytes headers, body;
  const std::size_t header_bytes = sizeof(EdgeChunkHeader) + tiles.size() * sizeof(TileHeader);
  append(headers, EdgeChunkHeader{static_cast<std::uint32_t>(tiles.size()), 0});
  for (const auto& [block, edges] : tiles) {
    TileHeader header{.block = block, .offset = header_bytes + body.size()};
    const TileView tile = encode_tile(edges, body);
    header.encoding = static_cast<std::uint16_t>(tile.encoding);
    header.edge_count = tile.edge_count;
    header.row_count = tile.row_count;
    header.escape_count = tile.escape_count;
    encodings.insert(tile.encoding);
    append(headers, header);
    Bytes weights;
    for (std::size_t i = 0; data.weights && i < edges.size(); ++i) {
      append(weights, static_cast<float>(random() % 1000) / 8);
    }
    encode_tile_data(weights, data, body);
  }
  headers.insert(headers.end(), body.begin(), body.end());
  return headers;
}

struct WindowCase {
  EdgeLayout layout;
  std::int64_t panel = 0;
  std::vector<Bytes> chunks;                      // by span
  std::vector<std::vector<std::uint8_t>> splits;  // by span; empty: every edge is taken
  std::vector<std::uint64_t> loops;               // empty: no edges are added
  std::set<TileEncoding> encodings;
};

// Two panels of two blocks, of which the last one isn't whole; blocks without edges, rows without,
// hubs, parallel edges, gaps that only an escape takes.
WindowCase make_case(std::int64_t block_rows, int edges, bool weights, bool train, bool loops,
                     unsigned seed) {
  WindowCase made;
  made.layout = {.vertices = 4 * block_rows - block_rows / 3,
                 .edges = 0,
                 .block_rows = block_rows,
                 .span_rows = 2 * block_rows,
                 .panel_blocks = 2,
                 .data = {.weights = weights}};
  std::mt19937 random(seed);
  made.panel = 1;
  for (std::int64_t span = 0; span < made.layout.span_count(); ++span) {
    std::map<std::uint16_t, std::vector<LocalEdge>> tiles;
    for (std::uint16_t block = 0; block < 2; ++block) {
      if (seed % 3 == 0 && span == 0 && block == 0) continue;
      const std::int64_t rows =
          std::min(block_rows, made.layout.vertices - (2 + block) * block_rows);
      const std::int64_t sources =
          std::min(made.layout.span_rows, made.layout.vertices - span * made.layout.span_rows);
      std::vector<LocalEdge>& list = tiles[block];
      const int count = span == 0 ? edges : edges / 40 + 1;  // dense, then sparse
      for (int e = 0; e < count; ++e) {
        const bool hub = e % 5 == 0 && span == 0;
        list.push_back({static_cast<std::uint16_t>(hub ? 7 % rows : random() % rows),
                        static_cast<std::uint16_t>(random() % sources)});
        if (e % 9 == 0) list.push_back(list.back());
      }
      std::sort(list.begin(), list.end(), [](LocalEdge a, LocalEdge b) {
        return a.row != b.row ? a.row < b.row : a.source < b.source;
      });
    }
    made.chunks.push_back(chunk_of(tiles, made.layout.data, random, made.encodings));
    made.splits.emplace_back();
    for (std::int64_t i = 0; train && i < made.layout.span_rows; ++i) {
      made.splits.back().push_back(static_cast<std::uint8_t>(random() % 4));
    }
  }
  for (std::int64_t i = 0; loops && i < ceil_div(made.layout.vertices, 64); ++i) {
    made.loops.push_back(std::uint64_t{random()} << 32 | random());
  }
  return made;
}

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
