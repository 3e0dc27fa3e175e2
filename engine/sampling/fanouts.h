// How a run samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ooc {

// In-edges that a vertex takes at most, hop by hop from the seeds on; -1: all of them.
struct Fanouts {
  std::vector<std::int64_t> hops;

  bool empty() const { return hops.empty(); }
  bool operator==(const Fanouts&) const = default;
};

// Those of evaluations. Empty and not exact: as in training, and the best model by the whole graph
// in the end.
struct EvalFanouts : Fanouts {
  bool exact = false;  // the whole graph, each time

  bool operator==(const EvalFanouts&) const = default;
};

// What a list of them is, for who types one.
inline constexpr const char* kFanoutsValues =
    "numbers above 0, or -1 for all in-edges, with commas between";
// "25,10". Nothing where it is none: numbers above 0, or -1.
std::optional<Fanouts> parse_fanouts(const std::string& text);
std::string to_text(const Fanouts& fanouts);
// The same, or "exact".
std::optional<EvalFanouts> parse_eval_fanouts(const std::string& text);
std::string to_text(const EvalFanouts& fanouts);

enum class Sampler {
  kNeighbor,  // every vertex by itself, uniformly
  kLabor,     // vertices of a batch prefer the same sources: fewer vertices
};

struct SamplingConfig {
  Fanouts fanouts;                 // empty: no sampling, an epoch is one step of the whole graph
  std::int64_t batch_size = 1024;  // seeds of a batch
  bool replace = false;            // an edge may be drawn several times
  EvalFanouts eval_fanouts;
  Sampler sampler = Sampler::kNeighbor;
  std::int64_t batch_dependency = 1;  // of labor: so many batches prefer the same sources
  bool weighted = false;              // an edge's chance goes by its weight

  bool operator==(const SamplingConfig&) const = default;
};

}  // namespace ooc
