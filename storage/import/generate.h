// `ooc-prep generate`: graphs to train on, of any size.
//
//   rmat  R-MAT with (a, b, c, d) = (0.57, 0.19, 0.19, 0.05): degrees are skewed, many vertices
//         have no edge.
//   sbm   all vertices alike (a stochastic block model).
//
// In both, classes are equally large and about 80 % of the edges stay inside one. Edges are
// undirected, distinct and no self loops; both directions are stored. Vertex ids are shuffled, so
// that neither classes nor degrees lie in order. Features are fp32: the class's centroid, of
// expected length 1, plus standard normal noise in every column. So features alone say little, and
// averages over neighbours much. Every vertex is labelled: with its class, or with values that are
// its class's, standard normal, plus normal noise of deviation 0.1. 60 % train, 20 % valid, 20 %
// test, at random. All of it depends on the options only, not on threads or memory: edges are
// sorted outside memory; held are 9 bytes a vertex.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/base/control.h"
#include "storage/format/edge_file.h"
#include "storage/format/tensor_layout.h"
#include "storage/import/edges/distinct_edges.h"
#include "storage/import/values/findings.h"

namespace ooc {

// Share of the edges that stay inside a class.
inline constexpr double kInsideShare = 0.8;

inline constexpr std::int64_t kMaxGeneratedClasses = 65536;

enum class GraphKind { kRmat, kSbm };
inline constexpr std::array<std::string_view, 2> kGraphKindNames = {"rmat", "sbm"};

struct GenerateOptions {
  GraphKind kind = GraphKind::kRmat;
  std::int64_t vertices = 0;
  std::int64_t edges = 0;  // undirected
  std::int64_t features = 0;
  std::int64_t classes = 0;
  std::int64_t targets = 0;  // values a vertex that are its labels; 0: they are the classes
  std::uint64_t seed = 0;
  std::int64_t block_rows = kDefaultBlockRows;
  std::int64_t memory_bytes = 0;  // 0: default_import_memory()
  bool force = false;
};

// Writes the dataset `output`. Throws UsageError for counts that are not possible together and for
// an output that exists, BudgetError where memory_bytes is too little.
Findings generate_dataset(FileSystem& files, const GenerateOptions& options,
                          const std::string& output, const Control& control);

// The edges, in ids before shuffling, where vertex v is in class v mod classes. A draw that came to
// no edge (both ends the same, or beyond the vertices) is a self loop.
DrawEdge edge_draws(const GenerateOptions& options);

}  // namespace ooc
