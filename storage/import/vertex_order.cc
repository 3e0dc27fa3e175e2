#include "storage/import/vertex_order.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "storage/import/counter_random.h"
#include "storage/tensor_layout.h"

namespace ooc {
namespace {

constexpr std::uint64_t kShuffleStream = 0x5348;

std::vector<VertexId> natural_order(std::int64_t vertices) {
  std::vector<VertexId> order(static_cast<std::size_t>(vertices));
  std::iota(order.begin(), order.end(), VertexId{0});
  return order;
}

std::vector<VertexId> by_descending(const std::vector<std::int64_t>& degrees) {
  std::vector<VertexId> order = natural_order(static_cast<std::int64_t>(degrees.size()));
  tbb::parallel_sort(order.begin(), order.end(), [&](VertexId a, VertexId b) {
    return degrees[a] != degrees[b] ? degrees[a] > degrees[b] : a < b;
  });
  return order;
}

std::vector<std::int64_t> in_degrees(const std::vector<Edge>& edges, std::int64_t vertices) {
  std::vector<std::int64_t> degrees(static_cast<std::size_t>(vertices), 0);
  for (const Edge& edge : edges) ++degrees[edge.destination];
  return degrees;
}

}  // namespace

std::vector<VertexId> random_order(std::int64_t vertices, std::uint64_t seed) {
  std::vector<VertexId> order = natural_order(vertices);
  const CounterRandom random(seed, kShuffleStream);
  for (std::int64_t i = vertices - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(static_cast<std::uint64_t>(i), i + 1)]);
  }
  return order;
}

std::vector<VertexId> degree_order(const std::vector<Edge>& edges, std::int64_t vertices) {
  std::vector<std::int64_t> degrees = in_degrees(edges, vertices);
  for (const Edge& edge : edges) ++degrees[edge.source];
  return by_descending(degrees);
}

std::vector<VertexId> balanced_order(const std::vector<Edge>& edges, std::int64_t vertices,
                                     std::int64_t block_rows) {
  const std::vector<std::int64_t> degrees = in_degrees(edges, vertices);
  const TensorLayout layout{vertices, 1, block_rows};
  using Load = std::pair<std::int64_t, std::int64_t>;  // in-edges, block
  std::priority_queue<Load, std::vector<Load>, std::greater<Load>> open_blocks;
  for (std::int64_t block = 0; block < layout.block_count(); ++block) open_blocks.push({0, block});
  std::vector<std::int64_t> rows(static_cast<std::size_t>(layout.block_count()), 0);
  std::vector<VertexId> order(static_cast<std::size_t>(vertices));
  for (const VertexId vertex : by_descending(degrees)) {
    auto [load, block] = open_blocks.top();
    open_blocks.pop();
    order[block * block_rows + rows[block]++] = vertex;
    if (rows[block] < layout.rows_of(block)) open_blocks.push({load + degrees[vertex], block});
  }
  return order;
}

std::vector<VertexId> inverse_order(const std::vector<VertexId>& order) {
  std::vector<VertexId> inverse(order.size());
  tbb::parallel_for(std::size_t{0}, order.size(),
                    [&](std::size_t i) { inverse[order[i]] = static_cast<VertexId>(i); });
  return inverse;
}

void renumber_edges(std::vector<Edge>& edges, const std::vector<VertexId>& new_ids) {
  tbb::parallel_for(std::size_t{0}, edges.size(), [&](std::size_t i) {
    edges[i] = {new_ids[edges[i].source], new_ids[edges[i].destination]};
  });
}

}  // namespace ooc
