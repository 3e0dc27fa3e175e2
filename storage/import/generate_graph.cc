#include <algorithm>
#include <bit>

#include "storage/base/counter_random.h"
#include "storage/import/generate.h"

namespace ooc {
namespace {

constexpr std::uint64_t kEdgeStream = 0x4544;
// rmat: a, a + b and a + b + c in 65536ths.
constexpr std::uint32_t kCornerA = 37356;
constexpr std::uint32_t kCornerB = 49807;
constexpr std::uint32_t kCornerC = 62259;

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

}  // namespace

DrawEdge edge_draws(const GenerateOptions& options) {
  return options.kind == GraphKind::kRmat ? rmat_edges(options) : sbm_edges(options);
}

}  // namespace ooc
