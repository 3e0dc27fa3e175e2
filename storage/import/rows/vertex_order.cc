#include "storage/import/rows/vertex_order.h"

#include <fmt/format.h>
#include <metis.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include "storage/base/counter_random.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc {
namespace {

constexpr std::uint64_t kShuffleStream = 0x5348;

std::vector<VertexIndex> natural_order(std::size_t vertices) {
  std::vector<VertexIndex> order(vertices);
  std::iota(order.begin(), order.end(), VertexIndex{0});
  return order;
}

// By value(vertex), largest first, ties by id.
template <class Value>
std::vector<VertexIndex> by_descending(std::size_t vertices, Value&& value) {
  std::vector<VertexIndex> order = natural_order(vertices);
  tbb::parallel_sort(order.begin(), order.end(), [&](VertexIndex a, VertexIndex b) {
    const std::int64_t of_a = value(a), of_b = value(b);
    return of_a != of_b ? of_a > of_b : a < b;
  });
  return order;
}

std::int64_t in_edges(const Degrees& degrees) { return std::int64_t{degrees.in} + degrees.loops; }

// METIS's compressed rows of a graph.
struct Adjacency {
  std::vector<idx_t> begins, neighbours;

  Adjacency(std::int64_t vertices, std::vector<Edge>& pairs)
      : begins(static_cast<std::size_t>(vertices) + 1, 0), neighbours(pairs.size()) {
    for (const Edge& pair : pairs) ++begins[static_cast<std::size_t>(pair.source) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<idx_t> next(begins.begin(), begins.end() - 1);
    for (const Edge& pair : pairs) {
      neighbours[static_cast<std::size_t>(next[pair.source]++)] =
          static_cast<idx_t>(pair.destination);
    }
    pairs = {};
  }
};

}  // namespace

void check_block_rows(std::int64_t block_rows) {
  if (block_rows >= 1 && block_rows <= kMaxBlockRows &&
      std::has_single_bit(static_cast<std::uint64_t>(block_rows))) {
    return;
  }
  throw UsageError(fmt::format("--block-rows {} is not possible", block_rows), "command line",
                   fmt::format("give a power of two up to {}", kMaxBlockRows));
}

std::vector<VertexIndex> random_order(std::int64_t vertices, std::uint64_t seed) {
  std::vector<VertexIndex> order = natural_order(static_cast<std::size_t>(vertices));
  const CounterRandom random(seed, kShuffleStream);
  for (std::int64_t i = vertices - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(static_cast<std::uint64_t>(i), i + 1)]);
  }
  return order;
}

std::vector<VertexIndex> degree_order(std::span<const Degrees> degrees) {
  return by_descending(degrees.size(), [&](VertexIndex v) {
    return std::int64_t{degrees[v].in} + degrees[v].out + 2 * std::int64_t{degrees[v].loops};
  });
}

std::vector<VertexIndex> balanced_order(std::span<const Degrees> degrees, std::int64_t block_rows) {
  const TensorLayout layout{static_cast<std::int64_t>(degrees.size()), 1, block_rows};
  using Load = std::pair<std::int64_t, std::int64_t>;  // in-edges, block
  std::priority_queue<Load, std::vector<Load>, std::greater<Load>> open_blocks;
  for (std::int64_t block = 0; block < layout.block_count(); ++block) open_blocks.push({0, block});
  std::vector<std::int64_t> rows(static_cast<std::size_t>(layout.block_count()), 0);
  std::vector<VertexIndex> order(degrees.size());
  const auto load_of = [&](VertexIndex v) { return in_edges(degrees[v]); };
  for (const VertexIndex vertex : by_descending(degrees.size(), load_of)) {
    auto [load, block] = open_blocks.top();
    open_blocks.pop();
    order[block * block_rows + rows[block]++] = vertex;
    if (rows[block] < layout.rows_of(block)) open_blocks.push({load + load_of(vertex), block});
  }
  return order;
}

std::int64_t metis_memory(std::int64_t vertices, std::int64_t pairs) {
  constexpr std::int64_t kCopies = 5;  // METIS keeps coarser and coarser graphs, with weights
  return kCopies * (pairs * 4 + vertices * 16) + pairs * static_cast<std::int64_t>(sizeof(Edge));
}

std::vector<VertexIndex> metis_order(std::int64_t vertices, std::vector<Edge>& pairs,
                                     std::int64_t block_rows) {
  constexpr std::int64_t kMost = std::numeric_limits<idx_t>::max();
  if (vertices > kMost || static_cast<std::int64_t>(pairs.size()) > kMost) {
    throw UsageError(fmt::format("METIS takes graphs of up to {} vertices and edges", kMost),
                     "--order metis", "choose another order, such as degree");
  }
  idx_t parts = static_cast<idx_t>(ceil_div(vertices, block_rows));
  std::vector<idx_t> part(static_cast<std::size_t>(vertices), 0);
  if (parts > 1) {
    Adjacency graph(vertices, pairs);
    idx_t count = static_cast<idx_t>(vertices), constraints = 1, cut = 0;
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 0;
    const int status = METIS_PartGraphKway(&count, &constraints, graph.begins.data(),
                                           graph.neighbours.data(), nullptr, nullptr, nullptr,
                                           &parts, nullptr, nullptr, options, &cut, part.data());
    if (status != METIS_OK) {
      throw BudgetError("METIS could not partition the graph (not enough memory)", "--order metis",
                        "choose another order, such as degree");
    }
  }
  std::vector<VertexIndex> order = natural_order(part.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](VertexIndex a, VertexIndex b) { return part[a] < part[b]; });
  return order;
}

std::vector<VertexIndex> inverse_order(const std::vector<VertexIndex>& order) {
  std::vector<VertexIndex> inverse(order.size());
  tbb::parallel_for(std::size_t{0}, order.size(),
                    [&](std::size_t i) { inverse[order[i]] = static_cast<VertexIndex>(i); });
  return inverse;
}

void renumber_edges(std::span<Edge> edges, std::span<const VertexIndex> new_ids) {
  for (Edge& edge : edges) {
    edge = {new_ids[static_cast<std::size_t>(edge.source)],
            new_ids[static_cast<std::size_t>(edge.destination)]};
  }
}

}  // namespace ooc
