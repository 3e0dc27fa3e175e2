// The sum over in-edges for one slice of 32 fp32 columns, on one thread, uniform random edges.
//
// The bound is the memory traffic that the order of work makes unavoidable over the bandwidth
// measured in the same run: topology once; sources once, or, where the rows of the spans at once
// are more than 32 MiB, every row that a tile touches; and every accumulator row that the tiles of
// a block at once touch read and written.
//   vertices / degree / span_rows / spans at once
#include <cmath>

#include "bench/bench_support.h"
#include "kernels/edges/edge_work_cpu.h"
#include "kernels/edges/gather_cpu.h"
#include "kernels/spec/row_kernels.h"
#include "storage/format/tile.h"

namespace ooc::bench {
namespace {

constexpr std::int64_t kBlockRows = kDefaultBlockRows;

struct Tiles {
  std::vector<std::byte> bytes;
  std::vector<TileView> views;  // span-major
  std::int64_t spans = 0;
  std::int64_t blocks = 0;
  std::int64_t edges = 0;
  std::int64_t touched_sources = 0;  // over all tiles
};

Tiles random_tiles(std::int64_t vertices, std::int64_t degree, std::int64_t span_rows) {
  Tiles tiles;
  tiles.spans = vertices / span_rows;
  tiles.blocks = vertices / kBlockRows;
  const std::int64_t count = degree * kBlockRows / tiles.spans;
  std::minstd_rand engine(1);
  std::vector<LocalEdge> edges(static_cast<std::size_t>(count));
  std::vector<std::size_t> offsets;
  for (std::int64_t t = 0; t < tiles.spans * tiles.blocks; ++t) {
    for (LocalEdge& edge : edges) {
      edge = {static_cast<std::uint16_t>(engine() % kBlockRows),
              static_cast<std::uint16_t>(engine() % static_cast<std::uint64_t>(span_rows))};
    }
    std::sort(edges.begin(), edges.end(), [](LocalEdge a, LocalEdge b) {
      return a.row != b.row ? a.row < b.row : a.source < b.source;
    });
    std::vector<bool> seen(static_cast<std::size_t>(span_rows));
    for (const LocalEdge& edge : edges) {
      tiles.touched_sources += seen[edge.source] ? 0 : 1;
      seen[edge.source] = true;
    }
    offsets.push_back(tiles.bytes.size());
    tiles.views.push_back(encode_tile(edges, tiles.bytes));
    tiles.edges += count;
  }
  for (std::size_t t = 0; t < tiles.views.size(); ++t) {
    attach_tile(tiles.views[t], tiles.bytes.data() + offsets[t]);
  }
  return tiles;
}

// Bytes a second one thread reads from a buffer far larger than L3.
double read_bandwidth() {
  constexpr std::int64_t kWords = (512LL << 20) / 8;
  static const auto buffer = backend().allocate(kWords * 8);
  auto* words = reinterpret_cast<std::uint64_t*>(buffer->data());
  std::fill_n(words, kWords, std::uint64_t{1});
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    std::uint64_t sum = 0;
    best = std::min(best, seconds_of([&] {
                      for (std::int64_t i = 0; i < kWords; ++i) sum += words[i];
                      benchmark::DoNotOptimize(sum);
                    }));
  }
  return static_cast<double>(kWords * 8) / best;
}

cpu::SumGroup group_of(std::span<const cpu::SumGroup::Entry> entries, float* accumulator) {
  return {entries, accumulator, kSliceWidth};
}

void gather(benchmark::State& state) {
  const std::int64_t vertices = state.range(0);
  const std::int64_t span_rows = state.range(2);
  const std::int64_t at_once = state.range(3);
  const Tiles tiles = random_tiles(vertices, state.range(1), span_rows);
  const Matrix sources(vertices, kSliceWidth);
  const Matrix accumulators(vertices, kSliceWidth);
  const auto entry = [&](std::int64_t span, std::int64_t block) -> cpu::SumGroup::Entry {
    return {tiles.views[static_cast<std::size_t>(span * tiles.blocks + block)],
            sources.data() + span * span_rows * kSliceWidth};
  };
  const auto accumulator = [&](std::int64_t block) {
    return accumulators.data() + block * kBlockRows * kSliceWidth;
  };
  const auto pass = [&] {
    std::vector<cpu::SumGroup::Entry> entries;
    for (std::int64_t first = 0; first < tiles.spans; first += at_once) {
      for (std::int64_t block = 0; block < tiles.blocks; ++block) {
        entries.clear();
        for (std::int64_t span = first; span < std::min(first + at_once, tiles.spans); ++span) {
          entries.push_back(entry(span, block));
        }
        cpu::gather_sum<float>(group_of(entries, accumulator(block)));
      }
    }
  };
  double best = 1e30;
  for (auto _ : state) {
    const double seconds = seconds_of(pass);
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  constexpr double kRowBytes = kSliceWidth * sizeof(float), kCacheBytes = 32 << 20;
  const auto rows = static_cast<double>(vertices);
  const auto groups = static_cast<double>(ceil_div(tiles.spans, at_once));
  const double edges_a_row = static_cast<double>(state.range(1)) / groups;
  const double accumulated = groups * rows * (1 - std::exp(-edges_a_row));
  const bool cached = static_cast<double>(at_once * span_rows) * kRowBytes <= kCacheBytes;
  const double read = cached ? rows : static_cast<double>(tiles.touched_sources);
  const double bytes =
      static_cast<double>(tiles.bytes.size()) + kRowBytes * (read + 2 * accumulated);
  static const double bandwidth = read_bandwidth();
  const auto edges = static_cast<double>(tiles.edges);
  state.counters["Medges_per_s"] = edges / best * 1e-6;
  state.counters["of_bound"] = bytes / bandwidth / best;
  state.counters["bytes_per_edge"] = static_cast<double>(tiles.bytes.size()) / edges;
  state.counters["read_GB_per_s"] = bandwidth * 1e-9;
  state.counters["slice_MiB"] = kRowBytes * rows / (1 << 20);
}

BENCHMARK(gather)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Args({16384, 64, 16384, 1})    // everything in L2 and L3
    ->Args({1 << 18, 16, 65536, 1})  // 32 MiB a slice: L3
    ->Args({1 << 21, 4, 65536, 1})   // 256 MiB: 8 x L3
    ->Args({1 << 21, 16, 65536, 1})
    ->Args({1 << 21, 16, 65536, 2})
    ->Args({1 << 21, 16, 65536, 4})
    ->Args({1 << 21, 16, 65536, 8})
    ->Args({1 << 21, 16, 65536, 32})
    ->Args({1 << 21, 32, 65536, 1})
    ->Args({1 << 21, 32, 65536, 4});

std::vector<PanelTile> panel_tiles_of(const Tiles& tiles) {
  std::vector<PanelTile> all;
  for (std::int64_t i = 0; i < tiles.spans * tiles.blocks; ++i) {
    all.push_back({i % tiles.blocks, tiles.views[static_cast<std::size_t>(i)]});
  }
  return all;
}

// A window a span: all blocks, which it adds to.
std::vector<EdgeWindow> windows_of(const EdgeLayout& layout, std::span<const PanelTile> tiles,
                                   float* sources, std::uint8_t* splits, float* accumulators) {
  const std::int64_t blocks = layout.block_count();
  std::vector<EdgeWindow> windows;
  for (std::int64_t span = 0; span < layout.span_count(); ++span) {
    EdgeWindow& window = windows.emplace_back();
    window.layout = &layout;
    window.first_span = span;
    window.end_block = blocks;
    window.spans = {
        {{},
         tiles.subspan(static_cast<std::size_t>(span * blocks), static_cast<std::size_t>(blocks))}};
    window.streamed = {one_slice(sources + span * layout.span_rows * kSliceWidth),
                       one_slice(splits + span * layout.span_rows)};
    for (std::int64_t block = 0; block < blocks; ++block) {
      window.accumulators.push_back(one_slice(accumulators + block * kBlockRows * kSliceWidth));
    }
  }
  return windows;
}

// The same span after span over the edges whose neighbours are in the train split: that share of
// all in percent, drawn evenly. 0: without splits, every edge.
//   vertices / degree / span_rows / percent
void gather_train(benchmark::State& state) {
  const std::int64_t vertices = state.range(0);
  const std::int64_t span_rows = state.range(2);
  const Tiles tiles = random_tiles(vertices, state.range(1), span_rows);
  const Matrix sources(vertices, kSliceWidth);
  const Matrix accumulators(vertices, kSliceWidth);
  std::vector<std::uint8_t> splits(static_cast<std::size_t>(vertices));
  std::minstd_rand engine(2);
  for (std::uint8_t& split : splits) split = engine() % 100 < state.range(3) ? kTrainSplit : 3;
  EdgeProgram program;
  program.streamed = {{kSliceWidth, DType::kF32}, {1, DType::kU8}};
  program.accumulators = program.values = {{kSliceWidth, DType::kF32}};
  program.loads = {{EdgeLoad::kStreamed, 0, 0}};
  program.folds = {{Fold::kSum, {0}, {0}}};
  program.batch_edges = 512;
  if (state.range(3) > 0) program.splits = 1;
  const auto work = cpu::make_edge_work(program, {});
  const EdgeLayout layout{.vertices = vertices,
                          .edges = tiles.edges,
                          .block_rows = kBlockRows,
                          .span_rows = span_rows,
                          .panel_blocks = tiles.blocks};
  const std::vector<PanelTile> panels = panel_tiles_of(tiles);
  const std::vector<EdgeWindow> windows =
      windows_of(layout, panels, sources.data(), splits.data(), accumulators.data());
  std::vector<std::byte> scratch(static_cast<std::size_t>(edge_scratch_bytes(program)));
  double best = 1e30;
  for (auto _ : state) {
    const double seconds = seconds_of([&] {
      for (const EdgeWindow& window : windows) {
        work->run(window, {0, tiles.blocks, 0, 1, scratch});
      }
    });
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["ns_per_edge"] = best / static_cast<double>(tiles.edges) * 1e9;
  state.counters["edges_per_tile"] =
      static_cast<double>(tiles.edges) / static_cast<double>(tiles.views.size());
}

void train_shares(benchmark::internal::Benchmark* bench) {
  for (const std::vector<std::int64_t>& graph :
       {std::vector<std::int64_t>{16384, 64, 16384}, {1 << 20, 30, 65536}, {1 << 21, 4, 65536}}) {
    for (const std::int64_t percent : {0, 1, 5, 10, 20, 40, 50, 60, 80, 99}) {
      bench->Args({graph[0], graph[1], graph[2], percent});
    }
  }
}

BENCHMARK(gather_train)->UseManualTime()->Unit(benchmark::kMillisecond)->Apply(train_shares);

}  // namespace
}  // namespace ooc::bench
