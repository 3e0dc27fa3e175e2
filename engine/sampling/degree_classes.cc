#include "engine/sampling/degree_classes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace ooc {
namespace {

// Degrees up to this one make a class each; above, four do from one power of two to the next.
constexpr std::int64_t kFewEdges = 16;

int class_of(std::int64_t degree) {
  if (degree <= kFewEdges) return static_cast<int>(degree);
  const double times = static_cast<double>(degree) / static_cast<double>(kFewEdges);
  return static_cast<int>(kFewEdges) + 1 + static_cast<int>(4 * std::log2(times));
}

using Classes = std::map<std::pair<int, int>, DegreeClass>;

// Adds the vertices of a block: sums of degrees.
void add_block(const Dataset& dataset, std::int64_t first, std::int64_t rows, Classes& classes) {
  std::vector<std::int32_t> degrees(static_cast<std::size_t>(rows * kDegreeColumns));
  std::vector<std::uint8_t> splits(static_cast<std::size_t>(rows));  // none
  dataset.tensor("degrees")->read_rows(first, rows, degrees.data());
  if (const VertexTensorFile* const file = dataset.tensor("splits")) {
    file->read_rows(first, rows, splits.data());
  }
  for (std::size_t row = 0; row < splits.size(); ++row) {
    const std::int32_t* const of = degrees.data() + row * kDegreeColumns;
    const std::int64_t in = of[kInDegree] + of[kSelfLoops], out = of[kOutDegree] + of[kSelfLoops];
    DegreeClass& found = classes[{class_of(in), class_of(out)}];
    const auto split = static_cast<Split>(splits[row]);
    found.vertices += 1;
    found.train += split == Split::kTrain ? 1 : 0;
    found.valid += split == Split::kValid ? 1 : 0;
    found.test += split == Split::kTest ? 1 : 0;
    found.in += static_cast<double>(in);
    found.out += static_cast<double>(out);
  }
}

}  // namespace

std::vector<DegreeClass> degree_classes(const Dataset& dataset) {
  const EdgeLayout& layout = dataset.manifest().edges;
  const std::int64_t stride = ceil_div(layout.vertices, kMostClassified);
  Classes classes;
  double seen = 0;
  for (std::int64_t block = 0; block < layout.block_count(); block += stride) {
    const std::int64_t first = block * layout.block_rows;
    const std::int64_t rows = std::min(layout.block_rows, layout.vertices - first);
    add_block(dataset, first, rows, classes);
    seen += static_cast<double>(rows);
  }
  const double share = seen / static_cast<double>(layout.vertices);
  std::vector<DegreeClass> all;
  for (const auto& [key, found] : classes) {
    all.push_back({found.vertices / share, found.train / share, (found.valid + found.test) / share,
                   found.in / found.vertices, found.out / found.vertices, found.valid / share,
                   found.test / share});
  }
  return all;
}

double DegreeClass::*seen_seeds(const std::vector<DegreeClass>& degrees, double DegreeClass::*seeds,
                                std::int64_t vertices) {
  const bool are_seen = std::any_of(degrees.begin(), degrees.end(),
                                    [seeds](const DegreeClass& of) { return of.*seeds > 0; });
  return are_seen || vertices <= kMostClassified ? seeds : &DegreeClass::vertices;
}

std::vector<DegreeClass> assumed_degrees(std::int64_t vertices, std::int64_t edges,
                                         std::int64_t train) {
  constexpr int kRanks = 64, kAskers = 16;  // classes by out-edges, by in-edges
  constexpr double kScale = 5.4, kShape = 0.72, kLeastShare = 1e-7;
  const auto all_vertices = static_cast<double>(vertices);
  const double mean = static_cast<double>(edges) / all_vertices;
  const auto left = [](double share) { return std::exp(-kScale * std::pow(share, kShape)); };
  // Of an exponential distribution of mean 1: of numbers above the quantile the sum.
  const auto above = [](double quantile) {
    return quantile == 1 ? 0 : (1 - quantile) * (1 - std::log1p(-quantile));
  };
  std::vector<DegreeClass> all;
  double from = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const double to = std::pow(kLeastShare, 1 - (rank + 1.0) / kRanks);
    const double out = mean * (left(from) - left(to)) / (to - from);
    const double share = (to - from) / kAskers;
    for (int asker = 0; asker < kAskers; ++asker) {
      const double low = static_cast<double>(asker) / kAskers;
      const double in = 2 * mean * kAskers * (above(low) - above(low + 1.0 / kAskers));
      all.push_back({share * all_vertices, share * static_cast<double>(train), 0, in, out});
    }
    from = to;
  }
  return all;
}

}  // namespace ooc
