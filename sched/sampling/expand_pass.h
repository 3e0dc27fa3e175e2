// Vertices of batches choose in-edges, in one sequential reading of the edges: of edges.out, whose
// spans are destinations, all in-edges of a span's vertices lie beside each other. One reading
// serves every batch of a superbatch.
//
// What is chosen depends on the batches' keys and on names alone: not on threads, on memory, on how
// many batches go together or on the order of vertices.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sched/sampling/edge_records.h"
#include "sched/sampling/key_fields.h"
#include "sched/sampling/key_ranges.h"
#include "sched/sampling/record_buffers.h"
#include "sched/stream/edge_loader.h"
#include "sched/workers/driver.h"
#include "storage/edges/sorted_runs.h"

namespace ooc {

// What passes read of a graph.
struct SampledGraph {
  EdgeStore& edges;                        // edges.out
  std::span<const std::uint32_t> degrees;  // in-edges by vertex, loops among them
  // Original ids, in whose order lists of in-edges are; empty: that is the order of vertices.
  std::span<const std::uint32_t> names = {};
};

// How a vertex chooses.
struct HopSampling {
  static constexpr std::int64_t kAll = -1;
  std::int64_t fanout = kAll;  // in-edges that it takes at most
  bool replace = false;        // each drawn from all; as many as that, if there are any
  // kLabor: askers of batches with equal keys prefer the same sources. kWeighted: an edge's chance
  // goes by its weight, and those without any have none. Neither is for `replace`, or for kAll.
  enum class Choice { kUniform, kLabor, kWeighted };
  Choice choice = Choice::kUniform;

  bool by_key() const { return choice != Choice::kUniform && fanout != kAll; }
};

// What is worked on at once.
struct ExpandLimits {
  std::int64_t range_bytes = 16 << 20;  // of who asks, with draws
  std::int64_t ranges_at_once = 4;
  std::size_t buffer_records = 1 << 18;  // of a worker
  // Memory for edge chunks: with names for one more than a span has at least; so many let ranges of
  // a span share one reading.
  std::span<std::byte> edge_slots;
  std::int64_t edge_slot_count = 0;
};

// Used once, by the driving thread.
class ExpandPass {
 public:
  struct Lists {
    KeyFields requests;      // vertex, batch, number
    const SortedRuns& asks;  // who chooses
    SortedRuns& chosen;      // neighbour, batch, number of who asked; with what the edge carries
  };

  // `asks_by_span`: how many of a span ask: edges of those without are not read. `batch_keys`:
  // random, by batch. All of it outlives the pass.
  ExpandPass(Driver& driver, const SampledGraph& graph, const HopSampling& sampling,
             const Lists& lists, const ExpandLimits& limits,
             const std::vector<std::int64_t>& asks_by_span,
             std::span<const std::uint64_t> batch_keys);
  ~ExpandPass();  // drains
  ExpandPass(const ExpandPass&) = delete;
  ExpandPass& operator=(const ExpandPass&) = delete;

  // `chosen` is finished by it. False: the driver was stopped. DataError and IoError pass through
  // from storage. `on_progress` is told the share that is handed out.
  bool run(const std::function<void(double share)>& on_progress = nullptr);
  std::int64_t bytes_read() const { return bytes_read_; }  // of edges that weren't in memory
  // Of edge chunks that a run comes by, as they lie in the file.
  std::int64_t bytes_passed() const { return bytes_passed_; }
  // Of a range: what one who asks takes.
  static std::int64_t ask_bytes(const HopSampling& sampling, const EdgeData& data);
  // What it takes whoever asks.
  static std::int64_t range_bytes(const EdgeLayout& layout) {
    return layout.span_rows *
           static_cast<std::int64_t>(sizeof(std::uint8_t) + sizeof(std::uint32_t));
  }
  // Of memory, a worker's lists of neighbours, unless one vertex has more edges.
  static std::int64_t worker_bytes(const EdgeData& data, bool whole_lists);

 private:
  struct Chunks;  // edge chunks of one span that are there
  struct Range;   // of one span
  struct Worker;

  const EdgeLayout& layout() const { return graph_.edges.file().layout(); }
  void cut(const std::vector<std::int64_t>& asks_by_span);
  void cut_span(std::int64_t span, std::int64_t first, std::int64_t end, std::uint64_t most);
  std::vector<EdgeItem> edge_items();
  bool wait(std::unique_lock<std::mutex>& lock, WaitCause cause,
            const std::function<bool()>& ready);
  void launch(std::size_t at);
  bool hand_out(std::unique_lock<std::mutex>& lock, std::size_t at);
  bool load_span(std::unique_lock<std::mutex>& lock, const Range& range);
  void run_next(const std::shared_ptr<Range>& range);

  void draw(Range& range) const;
  void choose(Range& range, std::span<const PanelTile> tiles);
  void choose_from(Range& range, std::span<const PanelTile> tiles);
  void offer(Range& range, std::size_t first, std::size_t end, Worker& worker,
             const EdgeRecords& records, std::int64_t local) const;
  void take_kept(Range& range);
  // Whether lists have to be whole, in the order of names.
  bool draws_by_name() const { return !graph_.names.empty() && !sampling_.by_key(); }
  std::uint32_t name(std::uint64_t vertex) const {
    return graph_.names.empty() ? static_cast<std::uint32_t>(vertex) : graph_.names[vertex];
  }

  Driver& driver_;
  SampledGraph graph_;
  HopSampling sampling_;
  Lists lists_;
  ExpandLimits limits_;
  std::span<const std::uint64_t> batch_keys_;
  std::vector<std::shared_ptr<Range>> ranges_;  // null: handed out
  std::int64_t under_way_ = 0;                  // under the driver's lock
  Hazards hazards_;
  EdgeLoader* loader_ = nullptr;
  std::unique_ptr<ItemStream> stream_;
  std::int64_t next_item_ = 0;
  bool holds_spans_;                // there are slots for all chunks of a span
  std::unique_ptr<Chunks> shared_;  // of the span at hand, for ranges to come
  std::vector<std::unique_ptr<Worker>> workers_;
  RecordBuffers chosen_;
  std::atomic<std::int64_t> bytes_read_{0};
  std::int64_t bytes_passed_ = 0;
};

}  // namespace ooc
