// What batches asked for, resolved: a vertex that its batch doesn't have yet gets the next number
// there, in order of vertices, and every sampled edge becomes one between
// numbers. Requests are sorted by vertex, so equal ones lie beside each other, and so do those that
// a batch has already: no table is kept.
//
// Numbers follow from the order of vertices alone: not from threads, from memory or from how many
// batches go together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sched/sampling/key_fields.h"
#include "sched/sampling/key_ranges.h"
#include "sched/sampling/record_buffers.h"
#include "sched/workers/driver.h"
#include "storage/edges/sorted_runs.h"

namespace ooc {

// Lists of records. Numbers in a batch are below what `requests` and `numbered` have bits for.
struct ResolveLists {
  KeyFields requests;  // vertex, batch, number
  KeyFields numbered;  // batch, number of who asked, number of the neighbour
  // Sampled edges: neighbour, batch, number of who asked; with what the edge carries. Or seeds:
  // vertex, batch, anything.
  const SortedRuns& asked;
  std::vector<const SortedRuns*> known;  // as `requests`: what batches have, of earlier passes
  SortedRuns* fresh = nullptr;           // as `requests`: what they get now; null: not wanted
  SortedRuns* vertices = nullptr;        // likewise, for a list of all passes
  SortedRuns* edges = nullptr;           // as `numbered`; null: `asked` are seeds
};

// What is worked on at once.
struct ResolveLimits {
  std::uint64_t range_records = 1 << 18;
  std::int64_t ranges_at_once = 4;
  std::size_t buffer_records = 1 << 18;  // of a worker and list
};

// Used once, by the driving thread.
class ResolvePass {
 public:
  // `rows`: how many vertices each batch has, which goes up. `span_rows`: of the spans that fresh
  // vertices are counted by. All of it outlives the pass; those of several passes that write
  // `vertices` share the buffers.
  ResolvePass(Driver& driver, const ResolveLists& lists, const ResolveLimits& limits,
              std::span<std::uint32_t> rows, std::int64_t span_rows,
              RecordBuffers* vertices = nullptr);
  ~ResolvePass();  // drains
  ResolvePass(const ResolvePass&) = delete;
  ResolvePass& operator=(const ResolvePass&) = delete;

  // `fresh` and `edges` are finished (SortedRuns::finish()) by it. False: the driver was stopped.
  // IoError passes through from storage.
  bool run();
  // By span: vertices that are fresh, once for each batch.
  std::vector<std::int64_t> fresh_by_span(std::int64_t spans) const;

 private:
  struct Range;

  bool wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready);
  void launch(std::size_t at);
  void commit(Range& range);
  void resolve(Range& range) const;
  void number(const Range& range);

  Driver& driver_;
  ResolveLists lists_;
  ResolveLimits limits_;
  std::span<std::uint32_t> rows_;
  std::int64_t span_rows_;
  RecordBuffers* vertices_;
  std::unique_ptr<RecordBuffers> fresh_, edges_;
  std::vector<std::vector<std::int64_t>> counts_;  // by worker and span
  std::vector<KeyRange> ranges_;
  std::vector<std::shared_ptr<Range>> begun_;  // by range; null: not begun, or done
  std::int64_t under_way_ = 0;                 // under the driver's lock
};

}  // namespace ooc
