#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_set>

#include "storage/errors.h"
#include "storage/import/counter_random.h"
#include "storage/import/generate.h"
#include "storage/import/vertex_order.h"

namespace ooc {
namespace {

constexpr std::uint64_t kEdgeStream = 0x4544;
// rmat: a, a + b and a + b + c in 65536ths.
constexpr std::uint32_t kCornerA = 37356;
constexpr std::uint32_t kCornerB = 49807;
constexpr std::uint32_t kCornerC = 62259;
constexpr std::int64_t kBulkShare = 64;  // fewer than a 64th missing: draw them one by one
constexpr std::int64_t kMaxDraws = 50;   // per edge that is wanted
constexpr std::int64_t kBatchDraws = 1 << 20;

// Draws an undirected edge, the smaller id first, in the ids before shuffling, where vertex v is in
// class v mod classes. A draw that gave no
// edge (both ends the same, or beyond the vertices) is a self loop, for the caller to drop.
using DrawEdge = std::function<Edge(std::uint64_t index)>;

Edge undirected(VertexId a, VertexId b) { return {std::min(a, b), std::max(a, b)}; }

// The class is a matter of the lowest bits of an id, the skew of all of them, so an edge that moves
// into its source's class hardly changes the degrees.
DrawEdge rmat_edges(const GenerateOptions& options) {
  const CounterRandom random(options.seed, kEdgeStream);
  const std::int64_t vertices = options.vertices;
  const std::int64_t classes = options.classes;
  const auto levels = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(vertices - 1)));
  return [=](std::uint64_t index) -> Edge {
    VertexId source = 0, destination = 0;
    std::uint64_t word = 0;
    for (int level = 0; level < levels; ++level, word >>= 16) {
      if (level % 4 == 0) word = random.bits(index * 16 + static_cast<std::uint64_t>(level / 4));
      const auto corner = static_cast<std::uint32_t>(word & 0xffff);
      source = source * 2 + (corner >= kCornerB ? 1 : 0);
      destination =
          destination * 2 + ((corner >= kCornerA && corner < kCornerB) || corner >= kCornerC);
    }
    if (random.uniform(index * 16 + 15) < kInsideShare) {
      destination += source % classes - destination % classes;
    }
    if (source >= vertices || destination >= vertices) return {0, 0};
    return undirected(source, destination);
  };
}

DrawEdge sbm_edges(const GenerateOptions& options) {
  const CounterRandom random(options.seed, kEdgeStream);
  const std::int64_t vertices = options.vertices;
  const std::int64_t classes = options.classes;
  return [=](std::uint64_t index) -> Edge {
    const VertexId a = random.below(index * 4, vertices);
    std::int64_t group = a % classes;
    if (classes > 1 && random.uniform(index * 4 + 1) >= kInsideShare) {
      group = (group + 1 + random.below(index * 4 + 2, classes - 1)) % classes;
    }
    const std::int64_t members = (vertices - group + classes - 1) / classes;
    return undirected(a, group + classes * random.below(index * 4 + 3, members));
  };
}

struct EdgeHash {
  std::size_t operator()(const Edge& edge) const {
    return std::hash<VertexId>()(edge.source * 0x9e3779b97f4a7c15 ^ edge.destination);
  }
};

[[noreturn]] void refuse_density(const GenerateOptions& options) {
  throw UsageError(fmt::format("{} distinct edges do not fit such a graph of {} vertices",
                               options.edges, options.vertices),
                   "", "give fewer --edges or more --vertices");
}

// `options.edges` distinct edges. First many at a time with a sort after each round; the last few
// one by one. The first draws win, whatever the order of threads.
std::vector<Edge> distinct_edges(const GenerateOptions& options, const DrawEdge& draw,
                                 const Control& control) {
  const auto wanted = static_cast<std::size_t>(options.edges);
  const auto is_loop = [](const Edge& edge) { return edge.source == edge.destination; };
  const auto by_pair = [](const Edge& a, const Edge& b) {
    return a.source != b.source ? a.source < b.source : a.destination < b.destination;
  };
  std::vector<Edge> edges;
  edges.reserve(2 * wanted);  // the reverse edges follow
  std::size_t drawn = 0;
  const std::size_t max_draws = kMaxDraws * wanted + 1000;
  while ((wanted - edges.size()) * kBulkShare > wanted) {
    if (drawn >= max_draws) refuse_density(options);
    const std::size_t begin = edges.size();
    edges.resize(wanted);
    for (std::size_t batch = begin; batch < wanted; batch += kBatchDraws) {
      tbb::parallel_for(batch, std::min<std::size_t>(batch + kBatchDraws, wanted),
                        [&](std::size_t i) { edges[i] = draw(drawn + i - begin); });
      control.step("drawing edges", static_cast<double>(batch), static_cast<double>(wanted));
    }
    drawn += wanted - begin;
    std::erase_if(edges, is_loop);
    tbb::parallel_sort(edges.begin(), edges.end(), by_pair);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  const auto sorted_end = static_cast<std::ptrdiff_t>(edges.size());
  std::unordered_set<Edge, EdgeHash> added;
  for (; edges.size() < wanted; ++drawn) {
    if (drawn >= max_draws) refuse_density(options);
    if (drawn % (1 << 16) == 0) control.check();
    const Edge edge = draw(drawn);
    if (is_loop(edge) ||
        std::binary_search(edges.begin(), edges.begin() + sorted_end, edge, by_pair)) {
      continue;
    }
    if (added.insert(edge).second) edges.push_back(edge);
  }
  return edges;
}

}  // namespace

GeneratedGraph generate_graph(const GenerateOptions& options, const Control& control) {
  const bool is_rmat = options.kind == GraphKind::kRmat;
  const DrawEdge draw = is_rmat ? rmat_edges(options) : sbm_edges(options);
  GeneratedGraph graph;
  graph.edges = distinct_edges(options, draw, control);
  control.step("shuffling vertices", 0, 1);
  const std::vector<VertexIndex> shuffled = random_order(options.vertices, options.seed);
  renumber_edges(graph.edges, shuffled);
  const std::size_t count = graph.edges.size();
  graph.edges.resize(2 * count);
  tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
    graph.edges[count + i] = {graph.edges[i].destination, graph.edges[i].source};
  });
  graph.labels.resize(shuffled.size());
  for (VertexId vertex = 0; vertex < options.vertices; ++vertex) {
    graph.labels[shuffled[vertex]] = static_cast<std::int32_t>(vertex % options.classes);
  }
  return graph;
}

}  // namespace ooc
