#include "engine/sampling/reached_batch.h"

#include <algorithm>
#include <cmath>

namespace ooc {
namespace {

double edges_taken(const HopSampling& hop, double in) {
  if (hop.fanout == HopSampling::kAll) return in;
  const auto fanout = static_cast<double>(hop.fanout);
  return hop.replace && in > 0 ? fanout : std::min(fanout, in);
}

// Different ones among these.
double sources_taken(const HopSampling& hop, double in) {
  if (!hop.replace || hop.fanout == HopSampling::kAll || in <= 1) {
    return std::min(in, edges_taken(hop, in));
  }
  return in * -std::expm1(static_cast<double>(hop.fanout) * std::log1p(-1 / in));
}

}  // namespace

ReachedBatch reach_batch(const std::vector<HopSampling>& hops, double count,
                         const std::vector<DegreeClass>& degrees, double DegreeClass::*seeds) {
  double all_seeds = 0, all_out = 0;
  for (const DegreeClass& of : degrees) {
    all_seeds += of.*seeds;
    all_out += of.vertices * of.out;
  }
  ReachedBatch batch;
  batch.level_rows.push_back(count);
  std::vector<double> fresh;  // by class: vertices that ask in the hop at hand
  for (const DegreeClass& of : degrees) {
    fresh.push_back(all_seeds > 0 ? count * (of.*seeds) / all_seeds : 0);
    batch.reached.push_back(std::min(fresh.back() / of.vertices, 1.0));
  }
  for (const HopSampling& hop : hops) {
    double asks = 0, edges = 0, sources = 0;
    for (std::size_t i = 0; i < degrees.size(); ++i) {
      asks += fresh[i];
      edges += fresh[i] * edges_taken(hop, degrees[i].in);
      sources += fresh[i] * sources_taken(hop, degrees[i].in);
    }
    batch.asks.push_back(asks);
    batch.edges.push_back(edges);
    for (std::size_t i = 0; i < degrees.size(); ++i) {
      const double hit = all_out > 0 ? -std::expm1(-sources * degrees[i].out / all_out) : 0;
      const double found = (1 - batch.reached[i]) * hit;
      fresh[i] = degrees[i].vertices * found;
      batch.reached[i] += found;
    }
    batch.level_rows.push_back(0);
    for (std::size_t i = 0; i < degrees.size(); ++i) {
      batch.level_rows.back() += degrees[i].vertices * batch.reached[i];
    }
  }
  return batch;
}

}  // namespace ooc
