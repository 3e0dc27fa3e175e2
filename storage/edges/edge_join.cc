#include "storage/edges/edge_join.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/edges/edge_groups.h"

namespace ooc {
namespace {

constexpr std::int64_t kMaxUnitRecords = 4 << 20;
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGoodUnitRecords = 512 << 10;  // fewer units at once before smaller ones
constexpr std::int64_t kKeyBytes = 8;
constexpr std::int64_t kEncodedEdgeBytes = 6;          // of 2.2 to 3, and the growth of vectors
constexpr std::int64_t kPairBytes = 2 * sizeof(Edge);  // likewise

// The edges from a span into the blocks [begin, end) of one panel.
struct UnitRange {
  std::int64_t span;
  std::int64_t panel;
  std::int64_t begin;
  std::int64_t end;
};

class Join {
 public:
  Join(const EdgeSorter& edges, const JoinOptions& options)
      : edges_(edges),
        options_(options),
        layout_(options.layout),
        groups_([this] { return EdgeGroups(edges_.keys(), layout_.data, options_.transforms); }) {
    const auto data = static_cast<std::int64_t>(layout_.data.bytes());
    stored_bytes_ = options.encode ? kEncodedEdgeBytes + 2 * data : 0;
    // With reverse edges, each is encoded both ways.
    const std::int64_t made =
        stored_bytes_ * (options.transforms.undirected ? 2 : 1) + (options.pairs ? kPairBytes : 0);
    record_bytes_ = kKeyBytes + data + sort_memory(layout_.data.bytes()) + made;
    divide_memory();
  }

  void run(const std::function<void(JoinedUnit)>& take, const Control& control) {
    std::int64_t done = 0;
    const auto next = [&](tbb::flow_control& flow) -> UnitRange {
      if (const auto range = next_range()) return *range;
      flow.stop();
      return {};
    };
    const auto hand_on = [&](JoinedUnit unit) {
      done += unit.findings.edges;
      control.step(options_.encode ? "writing edges" : "counting edges", static_cast<double>(done),
                   static_cast<double>(edges_.in().size()));
      take(std::move(unit));
    };
    tbb::parallel_pipeline(
        tokens_,
        tbb::make_filter<void, UnitRange>(tbb::filter_mode::serial_in_order, next) &
            tbb::make_filter<UnitRange, JoinedUnit>(
                tbb::filter_mode::parallel, [&](const UnitRange& range) { return join(range); }) &
            tbb::make_filter<JoinedUnit, void>(tbb::filter_mode::serial_in_order, hand_on));
  }

 private:
  std::uint64_t first_key(const UnitRange& range) const {
    return edges_.keys().first_key(range.span, range.begin * layout_.block_rows);
  }
  std::uint64_t last_key(const UnitRange& range) const {
    return edges_.keys().last_key(range.span,
                                  std::min(range.end * layout_.block_rows, layout_.vertices) - 1);
  }
  std::int64_t records_of(const UnitRange& range) const {
    const std::uint64_t first = first_key(range), last = last_key(range);
    return static_cast<std::int64_t>(edges_.in().size_bound(first, last) +
                                     edges_.out().size_bound(first, last));
  }
  UnitRange chunk_range(std::int64_t chunk) const {
    const std::int64_t panel = chunk % layout_.panel_count();
    return {chunk / layout_.panel_count(), panel, panel * layout_.panel_blocks,
            std::min((panel + 1) * layout_.panel_blocks, layout_.block_count())};
  }

  // Half for the chunks that are put together, if they need it; the rest for the units.
  void divide_memory() {
    std::int64_t largest_chunk = 0;
    for (std::int64_t chunk = 0; chunk < layout_.chunk_count(); ++chunk) {
      largest_chunk = std::max(largest_chunk, records_of(chunk_range(chunk)));
    }
    chunk_bytes_ = largest_chunk * stored_bytes_;
    const std::int64_t unit_bytes = options_.memory_bytes - chunk_bytes_;
    if (unit_bytes < options_.memory_bytes / 2) {
      refuse_memory("the edges of one source span into one panel");
    }
    const std::int64_t tokens =
        std::clamp<std::int64_t>(unit_bytes / (kGoodUnitRecords * record_bytes_), 2, most_tokens());
    tokens_ = static_cast<std::size_t>(tokens);
    share_records_ = std::max<std::int64_t>(1, unit_bytes / tokens / record_bytes_);
    unit_records_ = std::min(share_records_, kMaxUnitRecords);
  }

  static std::int64_t most_tokens() { return tbb::this_task_arena::max_concurrency() + 1; }

  // What is named suffices for every chunk and every unit.
  [[noreturn]] void refuse_memory(std::string_view what) const {
    std::int64_t largest_unit = 0;  // that cannot be cut
    for (std::int64_t chunk = 0; chunk < layout_.chunk_count(); ++chunk) {
      const UnitRange whole = chunk_range(chunk);
      for (std::int64_t block = whole.begin; block < whole.end; ++block) {
        const UnitRange range{whole.span, whole.panel, block, block + 1};
        largest_unit = std::max(largest_unit, records_of(range));
      }
    }
    const std::int64_t unit_bytes = largest_unit * record_bytes_ * most_tokens();
    const std::int64_t needed = chunk_bytes_ + std::max(chunk_bytes_, unit_bytes);
    throw BudgetError(
        fmt::format("{} do not fit the memory", what),
        fmt::format("{} are there, {} needed", format_byte_size(options_.memory_bytes),
                    format_byte_size(needed)),
        fmt::format("give --memory {}MiB or more", ceil_div(needed + options_.other_bytes, kMiB)));
  }

  bool adds_loops(const UnitRange& range) const {
    return options_.transforms.self_loops == SelfLoops::kAddRemaining &&
           loops_of(range).first < loops_of(range).second;
  }

  // The vertices whose self loops fall into the range.
  std::pair<VertexId, VertexId> loops_of(const UnitRange& range) const {
    const VertexId first =
        std::max(range.span * layout_.span_rows, range.begin * layout_.block_rows);
    const VertexId end = std::min(
        {(range.span + 1) * layout_.span_rows, range.end * layout_.block_rows, layout_.vertices});
    return {first, end};
  }

  // A chunk, or as many of its blocks as a unit may have edges.
  std::optional<UnitRange> next_range() {
    for (;;) {
      if (pending_.empty()) {
        if (next_chunk_ == layout_.chunk_count()) return std::nullopt;
        pending_.push_back(chunk_range(next_chunk_++));
      }
      UnitRange range = pending_.back();
      pending_.pop_back();
      const std::int64_t records = records_of(range);
      if (records == 0 && !adds_loops(range)) continue;
      if (records <= unit_records_) return range;
      if (range.end - range.begin == 1) {
        if (records > share_records_) {
          refuse_memory("the edges of one source span into one block");
        }
        return range;
      }
      const std::int64_t middle = (range.begin + range.end) / 2;
      pending_.push_back({range.span, range.panel, middle, range.end});
      pending_.push_back({range.span, range.panel, range.begin, middle});
    }
  }

  JoinedUnit join(const UnitRange& range) {
    EdgeGroups& groups = groups_.local();
    edges_.in().read(first_key(range), last_key(range), groups.in());
    edges_.out().read(first_key(range), last_key(range), groups.out());
    if (options_.transforms.self_loops == SelfLoops::kAddRemaining) {
      groups.add_loops(loops_of(range));
    }
    JoinedUnit unit;
    unit.span = range.span;
    unit.chunk = range.span * layout_.panel_count() + range.panel;
    const VertexId first = range.span * layout_.span_rows;
    const auto rows =
        static_cast<std::size_t>(std::min(layout_.span_rows, layout_.vertices - first));
    unit.degrees.resize(rows);
    unit.had_in_edge.resize(rows);
    // Once a unit was not symmetric, most others will not be: then both ways are encoded at once.
    const bool both = asymmetric_.load(std::memory_order_relaxed);
    TileEncoder in(layout_), out(layout_);
    groups.for_each([&](const EdgeGroup& group) {
      count(group, static_cast<std::size_t>(group.edge.source - first), unit);
      if (options_.encode) add(group.edge, group.stored_in, in);
      if (options_.encode && both) add(group.edge, group.stored_out, out);
      if (options_.pairs && group.edge.source != group.edge.destination) {
        unit.pairs.push_back(group.edge);
      }
    });
    unit.in = in.finish();
    if (unit.symmetric || !options_.encode) return unit;
    asymmetric_.store(true, std::memory_order_relaxed);
    if (!both) {
      groups.for_each([&](const EdgeGroup& group) { add(group.edge, group.stored_out, out); });
    }
    unit.out = out.finish();
    return unit;
  }

  void add(const Edge& edge, const EdgeCopies& copies, TileEncoder& encoder) const {
    const std::size_t bytes = layout_.data.bytes();
    for (std::size_t i = 0; i < copies.count; ++i) encoder.add(edge, copies.data + i * bytes);
  }

  void count(const EdgeGroup& group, std::size_t row, JoinedUnit& unit) const {
    const bool loop = group.edge.source == group.edge.destination;
    const auto in = static_cast<std::int64_t>(group.given_in);
    const bool both = group.given_in > 0 && group.given_out > 0;
    EdgeFindings& findings = unit.findings;
    findings.edges += in;
    findings.duplicates += std::max<std::int64_t>(in - 1, 0);
    if (loop) findings.self_loops += in;
    if (!loop && in > 0) ++findings.distinct;
    if (!loop && both) ++findings.reciprocal;
    if (group.given_out > 0) unit.had_in_edge[row] = true;
    const auto stored_in = static_cast<std::uint32_t>(group.stored_in.count);
    if (loop) {
      unit.loops.emplace_back(group.edge.source, stored_in);
    } else {
      UnitDegrees& degrees = unit.degrees[row];
      degrees.out += stored_in;
      degrees.in += static_cast<std::uint32_t>(group.stored_out.count);
    }
    if (!group.symmetric) unit.symmetric = false;
  }

  const EdgeSorter& edges_;
  const JoinOptions& options_;
  const EdgeLayout& layout_;
  std::size_t tokens_ = 0;          // units at work at once
  std::int64_t stored_bytes_ = 0;   // of an encoded edge
  std::int64_t chunk_bytes_ = 0;    // of the largest chunk
  std::int64_t record_bytes_ = 0;   // of an edge of one direction in a unit at work
  std::int64_t share_records_ = 0;  // that one unit has memory for
  std::int64_t unit_records_ = 0;   // of both directions
  std::int64_t next_chunk_ = 0;
  std::atomic<bool> asymmetric_{false};
  tbb::enumerable_thread_specific<EdgeGroups> groups_;  // their memory serves unit after unit
  std::vector<UnitRange> pending_;                      // parts of the chunk before, last first
};

}  // namespace

void join_edges(const EdgeSorter& edges, const JoinOptions& options,
                const std::function<void(JoinedUnit)>& take, const Control& control) {
  Join(edges, options).run(take, control);
}

}  // namespace ooc
