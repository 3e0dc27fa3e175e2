// Brings both directions of a sorted graph together and makes what is stored of them. In the order
// of keys an edge u -> v and its reverse v -> u are neighbours, one from each direction's runs, so
// one pass over both applies the transforms, encodes the tiles of both files, counts degrees, and
// finds whether one file serves both directions.
//
// The work is cut into units: the edges from one source span into some blocks of one panel. Units
// run on all of TBB's threads, as many at once as memory allows, and are handed on in order.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "storage/base/control.h"
#include "storage/edges/edge_sorter.h"
#include "storage/edges/edge_transforms.h"
#include "storage/format/edge_file.h"

namespace ooc {

// The degrees file's row of a vertex.
struct Degrees {
  std::int32_t in = 0;  // parallel edges count each, self loops only in `loops`
  std::int32_t out = 0;
  std::int32_t loops = 0;
};

// Degrees within one unit, small so that those of a span stay in cache: parallel edges fit 32 bits.
struct UnitDegrees {
  std::uint32_t in = 0;
  std::uint32_t out = 0;
};

// What one unit gives to degrees and files.
struct JoinedUnit {
  std::int64_t span = 0;
  std::int64_t chunk = 0;
  EncodedTiles in;
  EncodedTiles out;       // empty where `symmetric`
  bool symmetric = true;  // `in` serves both directions
  // Of the span's vertices, as sources here; complete once all units of the span are added up.
  std::vector<UnitDegrees> degrees;
  std::vector<std::pair<VertexId, std::uint32_t>> loops;  // of the vertices that have some
  // Before the transforms; a self loop counts.
  std::vector<bool> had_in_edge;
  std::vector<Edge> pairs;  // where asked for
  EdgeFindings findings;
};

struct JoinOptions {
  EdgeLayout layout;  // `edges` need not be right
  EdgeTransforms transforms;
  bool encode = true;             // make tiles; else degrees and findings only
  bool pairs = false;             // list u -> v wherever u and v differ and an edge joins them
  std::int64_t memory_bytes = 0;  // for everything the join holds
  std::int64_t other_bytes = 0;   // of --memory, for what others hold: a message names the sum
};

// Calls take() with every unit that has edges, in ascending order of span and chunk, one at a time.
// Throws BudgetError where the largest tile needs more than options.memory_bytes.
void join_edges(const EdgeSorter& edges, const JoinOptions& options,
                const std::function<void(JoinedUnit)>& take, const Control& control);

}  // namespace ooc
