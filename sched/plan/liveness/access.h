// When passes touch which tensors, how much of each stays in memory from one access to the next,
// and what an epoch then moves: exactly what the executor will count.
#pragma once

#include <array>
#include <vector>

#include "sched/plan/passes/edge_table.h"
#include "sched/plan/passes/passes.h"

namespace ooc {

// One pass's access to one tensor.
struct Access {
  int pass = 0;
  bool writes = false;      // written here; read otherwise
  bool pins = false;        // all of it lies in memory meanwhile, whatever is kept
  std::int64_t sweeps = 0;  // times that every I/O chunk is needed
  // In sweeps by destination ranges, an I/O chunk across the border of two destination ranges is
  // needed for both.
  bool crosses_tiles = false;
  std::int64_t devices = 1;  // that share the sweeps by destination ranges
  // Of the sweeps: those as kResident, which are the first, and those as kStreamed after them; all
  // but these go by destination ranges.
  std::int64_t resident = 0, streamed = 0;

  bool operator==(const Access&) const = default;
};

// A tensor's accesses in the order of passes, of all its blocks or of some. Interval i goes from
// access i to the next one; a dataset tensor's last one goes over the end of the epoch to its first
// access; a program's output has one from its last access to the end of its section's last pass.
struct Timeline {
  int tensor = 0;
  bool cyclic = false;
  bool always_stored = false;
  bool leaves = false;  // all of it goes to the memory below, where other devices read it
  int tail_pass = -1;   // of an output: its section's last
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t quantum = 1;  // of its blocks: what levels are multiples of (or end_block)
  std::vector<Access> accesses;

  int interval_count() const {
    const int count = static_cast<int>(accesses.size());
    return cyclic || tail_pass >= 0 ? count : count - 1;
  }
  // The access at an interval's end; -1: none, the tail.
  int end_of(int interval) const {
    const int next = interval + 1;
    if (next < static_cast<int>(accesses.size())) return next;
    return cyclic ? 0 : -1;
  }
};
// Of a device's own blocks. Of several devices each one's accesses are those to its own rows:
// streamed_apart() are the others.
std::vector<Timeline> make_timelines(const PassBuilder& builder, const Draft& draft,
                                     const DeviceShare& share);
// By tensor: what one of several devices takes of all blocks, span by span, and never keeps.
std::vector<std::vector<Access>> streamed_apart(const Draft& draft, const DeviceShare& share);
// Of these, in one sweep: what it reads itself. In a ring others pass on the rest.
std::int64_t streamed_bytes(const PassBuilder& builder, const Draft& draft,
                            const DeviceShare& share, int pass, std::size_t tensor);
// The one that has the block.
const Timeline& timeline_of(const std::vector<Timeline>& timelines, int tensor, std::int64_t block);

// Passes that an interval spans, between its ends, in order.
std::vector<int> passes_between(const Timeline& timeline, int interval, int pass_count);

// Blocks of one timeline, from its first one up to these, that lie in memory: from access to
// access, and during each. during >= the intervals on both sides.
struct ResidentPrefix {
  std::vector<std::int64_t> keep;    // by interval
  std::vector<std::int64_t> during;  // by access
};
struct ResidentSet {
  std::vector<ResidentPrefix> tensors;           // by timeline
  std::array<std::int64_t, 2> edge_chunks = {};  // by direction: the first ones, for good
};
// What lies in memory anyway is held during its passes. `first_chunks`: where edge chunks begin.
ResidentSet make_empty_residency(const std::vector<Timeline>& timelines,
                                 const std::array<std::int64_t, 2>& first_chunks);
ResidentSet make_full_residency(const std::vector<Timeline>& timelines, const GraphCounts& graph);
// What a device's memory keeps.
struct KeptOnDevice {
  const DeviceShare& share;
  const std::vector<Timeline>& timelines;
  const ResidentSet& residency;
};
// The accesses that the devices' memories leave to the one below them: of each tensor a timeline
// for each run of blocks that they keep alike.
std::vector<Timeline> timelines_below(const Draft& draft, const std::vector<KeptOnDevice>& devices);
// By tensor: where it begins to be stored, if passes make it.
std::vector<std::int64_t> stored_from(const Draft& draft, const std::vector<Timeline>& timelines,
                                      const ResidentSet& residency);

// Of a pass, by what goes on meanwhile: rows that edges read as kResident come in before the first
// edge; then edges are folded; then come the row-wise steps, and what is made goes out.
struct Traffic {
  std::int64_t resident = 0, edges = 0, rows = 0;  // read
  std::int64_t written = 0;
  std::int64_t passed_on = 0;  // from another device

  std::int64_t read() const { return resident + edges + rows; }
};
// Whether zeros move as other elements do, which is the most that can be, or are left out as far as
// is expected. kOfPacked: with zeros, but only rows that they are left out of; no edges.
enum class Zeros { kMoved, kLeftOut, kOfPacked };
// Who reads edge chunks: a device, those from its `first_chunks` on.
struct EdgeReader {
  const EdgeTable* edges = nullptr;
  std::array<std::int64_t, 2> first_chunks = {};  // by direction
};
// By pass, of an epoch after the first.
std::vector<Traffic> traffic_of(const PassBuilder& builder, const std::vector<EdgeReader>& readers,
                                const Draft& draft, const DeviceShare& share,
                                const std::vector<Timeline>& timelines,
                                const ResidentSet& residency, Zeros zeros);

}  // namespace ooc
