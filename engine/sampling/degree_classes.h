// Vertices of a graph by their degrees: what decides how many vertices a batch reaches, and how
// often each is reached.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/dataset/dataset.h"

namespace ooc {

// Vertices that are alike.
struct DegreeClass {
  double vertices = 0;
  double train = 0, judged = 0;  // of these: seeds of the training, and of evaluations
  double in = 0, out = 0;        // edges of each, loops among them
  double valid = 0, test = 0;    // of those judged
};

// Vertices of a dataset that are looked at, about.
inline constexpr std::int64_t kMostClassified = 16 << 20;

// Of a dataset, as its degrees and splits say; of a large one some blocks stand for the others.
// Errors of storage pass through.
std::vector<DegreeClass> degree_classes(const Dataset& dataset);

// These seeds, or all vertices where none of them is among the few of a large graph that were
// looked at.
double DegreeClass::*seen_seeds(const std::vector<DegreeClass>& degrees, double DegreeClass::*seeds,
                                std::int64_t vertices);

// Of a graph that isn't there: an assumption, which fits papers100M, a graph of citations.
// - How often a vertex is a source: when the share h of all vertices that are sources most often is
//   set aside, exp(-5.4 h^0.72) of the edges come from the others.
// - Those that ask have in-degrees as an exponential distribution of twice the graph's mean has
//   them: batches of 25,10, of 15,10,5 and of 10,10,10 have the vertices that follow to a tenth, of
//   10,15,20 a fifth fewer.
// - Seeds of the training, `train` of them, are as other vertices; there are no others.
std::vector<DegreeClass> assumed_degrees(std::int64_t vertices, std::int64_t edges,
                                         std::int64_t train);

}  // namespace ooc
