#include "kernels/edges/gather_cpu.h"
#include "tests/kernels/edges/hand_tile.h"
#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
namespace {

std::int64_t chunk_stride(std::int64_t cols) { return cols < 8 ? cols : round_up(cols, 8); }

template <class T>
std::vector<T> random_chunk(std::int64_t rows, std::int64_t cols, unsigned seed) {
  const Dense dense = random_dense(rows, cols, seed);
  std::vector<T> chunk(static_cast<std::size_t>(rows * chunk_stride(cols)), T{0});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < cols; ++c) {
      chunk[static_cast<std::size_t>(i * chunk_stride(cols) + c)] = static_cast<T>(dense(i, c));
    }
  }
  return chunk;
}

template <class T>
struct Gather {
  const Graph& graph;
  std::int64_t cols;
  bool weighted;
  std::vector<std::vector<T>> sources;
  std::vector<std::vector<float>> weights;  // by span and edge

  Gather(const Graph& g, std::int64_t col_count, bool is_weighted = false)
      : graph(g), cols(col_count), weighted(is_weighted) {
    for (unsigned span = 0; span < g.spans.size(); ++span) {
      sources.push_back(random_chunk<T>(g.span_rows, cols, 100 + span));
      const Dense w = random_dense(static_cast<std::int64_t>(g.spans[span].size()), 1, 200 + span);
      weights.emplace_back(w.values.begin(), w.values.end());
    }
  }

  std::vector<T> initial() const { return random_chunk<T>(graph.rows, cols, 7); }

  // `group`: how many spans one call of the kernel takes.
  std::vector<T> run(TileEncoding encoding, std::size_t group) const {
    std::vector<T> accumulator = initial();
    for (std::size_t first = 0; first < graph.spans.size(); first += group) {
      const std::size_t last = std::min(first + group, graph.spans.size());
      std::vector<HandTile> tiles;
      for (std::size_t s = first; s < last; ++s) {
        tiles.emplace_back(graph.spans[s], encoding).weights = weights[s];
      }
      std::vector<cpu::SumGroup::Entry> entries;
      for (std::size_t s = first; s < last; ++s) {
        entries.push_back({tiles[s - first].view(), sources[s].data()});
      }
      cpu::gather_sum<T>({entries, accumulator.data(), chunk_stride(cols), weighted});
    }
    return accumulator;
  }

  // Counts parallel edges, or adds up their weights, in a dense matrix and multiplies, in double.
  Dense reference() const {
    Dense result(graph.rows, cols);
    const std::vector<T> start = initial();
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i) / cols;
      const auto col = static_cast<std::int64_t>(i) % cols;
      result.values[i] =
          static_cast<double>(start[static_cast<std::size_t>(row * chunk_stride(cols) + col)]);
    }
    for (std::size_t s = 0; s < graph.spans.size(); ++s) {
      Dense counts(graph.rows, graph.span_rows);
      for (std::size_t e = 0; e < graph.spans[s].size(); ++e) {
        const LocalEdge& edge = graph.spans[s][e];
        counts(edge.row, edge.source) += weighted ? static_cast<double>(weights[s][e]) : 1;
      }
      for (std::int64_t row = 0; row < graph.rows; ++row) {
        for (std::int64_t source = 0; source < graph.span_rows; ++source) {
          const double count = counts(row, source);
          if (count == 0) continue;
          for (std::int64_t c = 0; c < cols; ++c) {
            const auto at = static_cast<std::size_t>(source * chunk_stride(cols) + c);
            result(row, c) += count * static_cast<double>(sources[s][at]);
          }
        }
      }
    }
    return result;
  }
};

template <class T>
Dense unpadded(const std::vector<T>& chunk, std::int64_t rows, std::int64_t cols) {
  Dense result(rows, cols);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < chunk_stride(cols); ++c) {
      const T value = chunk[static_cast<std::size_t>(i * chunk_stride(cols) + c)];
      if (c < cols) {
        result(i, c) = static_cast<double>(value);
      } else if (value != T{0}) {
        FAIL("padding is no longer zero");
      }
    }
  }
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("gather: sum equals the dense product for both encodings", "", float, double) {
  for (const std::int64_t cols : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 24, 25, 31, 32}) {
    for (const int edges : {0, 60, 3000}) {
      const Graph graph = random_graph(900, 300, edges, static_cast<unsigned>(cols));
      for (const bool weighted : {false, true}) {
        const Gather<TestType> gather(graph, cols, weighted);
        const Dense expected = gather.reference();
        for (const TileEncoding encoding : {TileEncoding::kRuns, TileEncoding::kPairs}) {
          const std::vector<TestType> actual = gather.run(encoding, graph.spans.size());
          CHECK_CLOSE(unpadded(actual, graph.rows, cols), expected, tolerance<TestType>(200));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("gather: the bits do not depend on the grouping or the encoding", "", float,
                   double) {
  const Graph graph = random_graph(900, 300, 4000, 3);
  for (const bool weighted : {false, true}) {
    const Gather<TestType> gather(graph, 32, weighted);
    const std::vector<TestType> expected = gather.run(TileEncoding::kRuns, 3);
    for (const std::size_t group : {1, 2, 3}) {
      CHECK(gather.run(TileEncoding::kRuns, group) == expected);
      CHECK(gather.run(TileEncoding::kPairs, group) == expected);
    }
  }
}

// A group goes through its tiles strip by strip: of 1,024 rows where they have 32 columns of
// floats.
TEMPLATE_TEST_CASE("gather: nor do they where rows are gone through in strips", "", float, double) {
  Graph graph = random_graph(9000, 300, 60000, 4);
  std::erase_if(graph.spans[1], [](const LocalEdge& edge) { return edge.row > 1000; });
  graph.spans[2].clear();
  for (const std::int64_t cols : {5, 8, 16, 32}) {
    const Gather<TestType> gather(graph, cols);
    const std::vector<TestType> expected = gather.run(TileEncoding::kRuns, 1);
    for (const TileEncoding encoding : {TileEncoding::kRuns, TileEncoding::kPairs}) {
      CHECK(gather.run(encoding, graph.spans.size()) == expected);
    }
  }
}

TEST_CASE("gather: rows without edges keep their value, an empty tile does nothing") {
  const Graph graph = {300, 10, {{}, {{299, 9}}, {}}};
  const Gather<float> gather(graph, 8);
  for (const TileEncoding encoding : {TileEncoding::kRuns, TileEncoding::kPairs}) {
    std::vector<float> expected = gather.initial();
    for (std::size_t c = 0; c < 8; ++c) expected[299 * 8 + c] += gather.sources[1][9 * 8 + c];
    CHECK(gather.run(encoding, 3) == expected);
  }
}

TEST_CASE("gather: reads the last local ids of the largest span and block") {
  const Graph graph = {65536, 65536, {{{0, 65535}, {0, 65535}, {254, 1}, {65535, 65535}}}};
  const Gather<float> gather(graph, 3);
  std::vector<float> expected = gather.initial();
  for (std::size_t c = 0; c < 3; ++c) {
    const std::vector<float>& sources = gather.sources[0];
    const float last = sources[65535 * 3 + c];
    expected[c] = (expected[c] + last) + last;
    expected[254 * 3 + c] += sources[3 + c];
    expected[65535 * 3 + c] += last;
  }
  CHECK(gather.run(TileEncoding::kRuns, 1) == expected);
  CHECK(gather.run(TileEncoding::kPairs, 1) == expected);
}

}  // namespace ooc::testing
