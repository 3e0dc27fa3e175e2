#include "sched/sampling/expand_pass.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/sampling/neighbour_draws.h"
#include "kernels/sampling/neighbour_lists.h"
#include "sched/sampling/keyed_choice.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// Edges whose lists a worker has at once, about, where vertices are in the order of their names;
// else of vertices whose lists are whole.
constexpr std::int64_t kListedEdges = 1 << 18, kWholeListEdges = 4 << 20;

}  // namespace

struct ExpandPass::Chunks {
  std::vector<std::int64_t> items;
  std::vector<PanelTile> tiles;
};

// Those of a span that ask, or some of them, on their way through the span's edges.
struct ExpandPass::Range {
  std::int64_t span = 0;
  std::int64_t after = 0;  // ranges of the span that come later
  KeyRange keys;
  Records asks;
  std::vector<std::uint8_t> is_asked;   // by vertex of the span
  std::vector<std::uint32_t> before;    // by vertex: edges that went by
  std::vector<std::size_t> begins;      // by who asks: of its ordinals
  std::vector<std::uint32_t> ordinals;  // none, where all are taken
  std::optional<KeyedChoice> kept;      // where keys choose
  // Under the driver's lock.
  std::deque<Chunks> chunks;  // that are there, to be worked on
  bool is_busy = true;
  bool has_all_chunks = false;  // none will be added
};

struct ExpandPass::Worker {
  NeighbourLists lists;
  OfferedEdges offered;
  std::vector<std::byte> record;  // of an edge
};

ExpandPass::ExpandPass(Driver& driver, const SampledGraph& graph, const HopSampling& sampling,
                       const Lists& lists, const ExpandLimits& limits,
                       const std::vector<std::int64_t>& asks_by_span,
                       std::span<const std::uint64_t> batch_keys)
    : driver_(driver),
      graph_(graph),
      sampling_(sampling),
      lists_(lists),
      limits_(limits),
      batch_keys_(batch_keys),
      holds_spans_(limits.edge_slot_count > layout().panel_count()),
      chosen_(lists.chosen, driver.workers(), limits.buffer_records) {
  OOC_CHECK(holds_spans_ || !draws_by_name());
  OOC_CHECK(!sampling.by_key() || !sampling.replace);
  cut(asks_by_span);
  for (std::int64_t i = 0; i < driver.workers(); ++i) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->record.resize(layout().data.bytes());
  }
  auto loader = std::make_unique<EdgeLoader>(graph.edges, edge_items(), bytes_read_, true);
  loader_ = loader.get();
  stream_ = std::make_unique<ItemStream>(
      driver, std::move(loader), Slots(limits.edge_slots, limits.edge_slot_count, hazards_));
}

ExpandPass::~ExpandPass() { driver_.drain(); }

std::int64_t ExpandPass::worker_bytes(const EdgeData& data, bool whole_lists) {
  constexpr std::int64_t kFoundBytes = 6, kListBytes = 4, kNumberBytes = 8;
  const std::int64_t edge_bytes = kFoundBytes + kListBytes + (data.bytes() > 0 ? kNumberBytes : 0);
  return (whole_lists ? kWholeListEdges : 2 * kListedEdges) * edge_bytes;
}

std::int64_t ExpandPass::ask_bytes(const HopSampling& sampling, const EdgeData& data) {
  const std::int64_t drawn = std::clamp<std::int64_t>(sampling.fanout, 1, 1 << 16);
  const auto draw_bytes = static_cast<std::int64_t>(sizeof(std::size_t)) +
                          static_cast<std::int64_t>(sizeof(std::uint32_t)) * drawn;
  return static_cast<std::int64_t>(sizeof(std::uint64_t)) +
         (sampling.by_key() ? KeyedChoice::bytes(drawn, data.bytes()) : draw_bytes);
}

void ExpandPass::cut(const std::vector<std::int64_t>& asks_by_span) {
  const auto most =
      static_cast<std::uint64_t>(limits_.range_bytes / ask_bytes(sampling_, layout().data));
  limits_.ranges_at_once = ranges_at_once(lists_.asks, limits_.ranges_at_once, most);
  for (std::int64_t span = 0; span < layout().span_count(); ++span) {
    if (asks_by_span[static_cast<std::size_t>(span)] == 0) continue;
    const std::int64_t first = span * layout().span_rows;
    cut_span(span, first, std::min(first + layout().span_rows, layout().vertices), most);
  }
}

// Where lists have to be whole, as few vertices as have few edges.
void ExpandPass::cut_span(std::int64_t span, std::int64_t first, std::int64_t end,
                          std::uint64_t most) {
  if (draws_by_name() && end - first > 1) {
    const auto begin = graph_.degrees.begin();
    const std::int64_t edges = std::accumulate(begin + first, begin + end, std::int64_t{0});
    if (edges > kWholeListEdges) {
      const std::int64_t middle = first + (end - first) / 2;
      cut_span(span, first, middle, most);
      return cut_span(span, middle, end, most);
    }
  }
  const KeyFields& fields = lists_.requests;
  const KeyRange all{fields.begin(static_cast<std::uint64_t>(first)),
                     fields.last(static_cast<std::uint64_t>(end - 1))};
  for (const KeyRange& keys : cut_ranges(lists_.asks, fields, all, most)) {
    ranges_.push_back(std::make_shared<Range>());
    ranges_.back()->span = span;
    ranges_.back()->keys = keys;
  }
}

// Ranges of a span share its chunks where all of these are held together.
std::vector<EdgeItem> ExpandPass::edge_items() {
  std::vector<EdgeItem> items;
  for (std::size_t i = ranges_.size(); i-- > 1;) {
    if (ranges_[i]->span == ranges_[i - 1]->span) ranges_[i - 1]->after = ranges_[i]->after + 1;
  }
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const std::shared_ptr<Range>& range = ranges_[i];
    if (holds_spans_ && i > 0 && ranges_[i - 1]->span == range->span) continue;
    for (std::int64_t panel = 0; panel < layout().panel_count(); ++panel) {
      const auto bytes =
          static_cast<std::int64_t>(graph_.edges.file().chunk_bytes(range->span, panel));
      if (bytes == 0) continue;
      items.push_back({range->span, panel});
      bytes_passed_ += bytes;
    }
  }
  return items;
}

bool ExpandPass::wait(std::unique_lock<std::mutex>& lock, WaitCause cause,
                      const std::function<bool()>& ready) {
  const auto advance = [this] {
    while (stream_->advance()) {
    }
  };
  return driver_.wait(lock, cause, advance, ready);
}

bool ExpandPass::run(const std::function<void(double share)>& on_progress) {
  std::size_t launched = 0;
  auto lock = driver_.lock();
  for (std::size_t at = 0; at < ranges_.size(); ++at) {
    while (launched < ranges_.size() && under_way_ < limits_.ranges_at_once) launch(launched++);
    if (launched == at) {
      const auto room = [&] { return under_way_ < limits_.ranges_at_once; };
      if (!wait(lock, WaitCause::kWorkers, room)) return false;
      launch(launched++);
    }
    if (!hand_out(lock, at)) return false;
    if (on_progress) {
      on_progress(static_cast<double>(at + 1) / static_cast<double>(ranges_.size()));
    }
  }
  if (!wait(lock, WaitCause::kWorkers, [&] { return under_way_ == 0; })) return false;
  lock.unlock();
  chosen_.finish();
  return true;
}

void ExpandPass::launch(std::size_t at) {
  const std::shared_ptr<Range> range = ranges_[at];
  ++under_way_;
  driver_.run([this, range] { draw(*range); },
              [this, range] {
                range->is_busy = false;
                run_next(range);
              });
}

// The span's edge chunks as they come, one after the other; where ranges share them or lists have
// to be whole, together.
bool ExpandPass::hand_out(std::unique_lock<std::mutex>& lock, std::size_t at) {
  const std::shared_ptr<Range> range = std::move(ranges_[at]);
  const bool together = holds_spans_ && (range->after > 0 || shared_ || draws_by_name());
  if (together) {
    if (!shared_ && !load_span(lock, *range)) return false;
    range->chunks.push_back(*shared_);
    if (range->after == 0) shared_.reset();
  }
  for (std::int64_t panel = 0; !together && panel < layout().panel_count(); ++panel) {
    if (graph_.edges.file().chunk_bytes(range->span, panel) == 0) continue;
    const std::int64_t item = next_item_++;
    if (!wait(lock, WaitCause::kReads, [&] { return stream_->ready(item); })) return false;
    stream_->hold(item, 1);
    const auto tiles = loader_->span(item, stream_->data(item)).tiles;
    range->chunks.push_back({{item}, {tiles.begin(), tiles.end()}});
    run_next(range);
  }
  range->has_all_chunks = true;
  run_next(range);
  return true;
}

// All of a span's chunks, for this range and those after it.
bool ExpandPass::load_span(std::unique_lock<std::mutex>& lock, const Range& range) {
  shared_ = std::make_unique<Chunks>();
  for (std::int64_t panel = 0; panel < layout().panel_count(); ++panel) {
    if (graph_.edges.file().chunk_bytes(range.span, panel) == 0) continue;
    const std::int64_t item = next_item_++;
    if (!wait(lock, WaitCause::kReads, [&] { return stream_->ready(item); })) return false;
    stream_->hold(item, range.after + 1);
    const auto tiles = loader_->span(item, stream_->data(item)).tiles;
    shared_->items.push_back(item);
    shared_->tiles.insert(shared_->tiles.end(), tiles.begin(), tiles.end());
  }
  return true;
}

// Under the driver's lock. One task of a range at a time: edges go by in order.
void ExpandPass::run_next(const std::shared_ptr<Range>& range) {
  if (range->is_busy) return;
  if (range->chunks.empty()) {
    if (range->has_all_chunks && range->kept) {
      range->is_busy = true;
      driver_.run([this, range] { take_kept(*range); },
                  [this, range] {
                    range->kept.reset();
                    range->is_busy = false;
                    run_next(range);
                  });
    } else if (range->has_all_chunks) {
      range->is_busy = true;  // done
      --under_way_;
      driver_.wake();
    }
    return;
  }
  range->is_busy = true;
  const auto chunks = std::make_shared<Chunks>(std::move(range->chunks.front()));
  range->chunks.pop_front();
  driver_.run([this, range, chunks] { choose(*range, chunks->tiles); },
              [this, range, chunks] {
                for (const std::int64_t item : chunks->items) stream_->release(item);
                range->is_busy = false;
                run_next(range);
              });
}

void ExpandPass::draw(Range& range) const {
  const KeyFields& fields = lists_.requests;
  lists_.asks.read(range.keys.first, range.keys.last, range.asks);
  const auto first = static_cast<std::uint64_t>(range.span * layout().span_rows);
  range.is_asked.assign(static_cast<std::size_t>(layout().span_rows), 0);
  range.before.assign(static_cast<std::size_t>(layout().span_rows), 0);
  const auto& keys = range.asks.keys;
  for (const std::uint64_t key : keys) range.is_asked[fields.first(key) - first] = 1;
  if (sampling_.fanout == HopSampling::kAll) return;
  const auto fanout = static_cast<std::uint32_t>(sampling_.fanout);
  range.begins.reserve(keys.size() + 1);
  range.begins.push_back(0);
  if (sampling_.by_key()) {
    for (const std::uint64_t key : keys) {
      range.begins.push_back(range.begins.back() +
                             std::min(graph_.degrees[fields.first(key)], fanout));
    }
    range.kept.emplace(std::move(range.begins), lists_.chosen.data_bytes());
    return;
  }
  for (const std::uint64_t key : keys) {
    const std::uint64_t vertex = fields.first(key);
    const std::uint32_t degree = graph_.degrees[vertex];
    const std::uint32_t takes =
        sampling_.replace ? (degree > 0 ? fanout : 0) : std::min(degree, fanout);
    const std::size_t begin = range.ordinals.size();
    range.ordinals.resize(begin + takes);
    range.begins.push_back(begin + takes);
    if (takes == 0) continue;
    const std::uint64_t asker = asker_key(batch_keys_[fields.second(key)], name(vertex));
    const std::span ordinals = std::span(range.ordinals).subspan(begin);
    sampling_.replace ? draw_repeated(asker, degree, ordinals)
                      : draw_distinct(asker, degree, ordinals);
  }
}

void ExpandPass::choose(Range& range, std::span<const PanelTile> tiles) {
  if (draws_by_name()) return choose_from(range, tiles);
  for (std::size_t begin = 0, end = 0; begin < tiles.size(); begin = end) {
    std::int64_t edges = 0;
    while (end < tiles.size() && (end == begin || edges < kListedEdges)) {
      edges += tiles[end++].tile.edge_count;
    }
    choose_from(range, tiles.subspan(begin, end - begin));
  }
}

void ExpandPass::choose_from(Range& range, std::span<const PanelTile> tiles) {
  const KeyFields& fields = lists_.requests;
  const std::size_t index = driver_.worker();
  Worker& worker = *workers_[index];
  worker.lists.build(layout(), tiles, range.is_asked,
                     draws_by_name() ? graph_.names : std::span<const std::uint32_t>{});
  const EdgeData& data = layout().data;
  const bool carries = lists_.chosen.data_bytes() > 0;
  const EdgeRecords records(data, data.bytes() > 0 ? tiles : std::span<const PanelTile>{});
  const bool takes_all = sampling_.fanout == HopSampling::kAll;
  const auto first = static_cast<std::uint64_t>(range.span * layout().span_rows);
  const auto& keys = range.asks.keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto local = static_cast<std::int64_t>(fields.first(keys[i]) - first);
    const auto neighbours = worker.lists.neighbours(local);
    if (neighbours.empty()) continue;
    const auto take = [&](std::size_t place) {
      if (carries) records.copy(worker.lists.edges(local)[place], worker.record.data());
      chosen_.add(index,
                  fields.key(neighbours[place], fields.second(keys[i]), fields.third(keys[i])),
                  worker.record.data());
    };
    if (sampling_.by_key()) {
      const std::size_t begin = i;
      while (i + 1 < keys.size() && fields.first(keys[i + 1]) == fields.first(keys[i])) ++i;
      offer(range, begin, i + 1, worker, records, local);
      continue;
    }
    std::uint32_t& before = range.before[static_cast<std::size_t>(local)];
    if (takes_all) {
      for (std::size_t place = 0; place < neighbours.size(); ++place) take(place);
    } else {
      const auto end = range.ordinals.begin() + static_cast<std::ptrdiff_t>(range.begins[i + 1]);
      auto at = std::lower_bound(
          range.ordinals.begin() + static_cast<std::ptrdiff_t>(range.begins[i]), end, before);
      for (; at != end && *at - before < neighbours.size(); ++at) take(*at - before);
    }
    const bool is_last = i + 1 == keys.size() || fields.first(keys[i + 1]) != fields.first(keys[i]);
    if (is_last) before += static_cast<std::uint32_t>(neighbours.size());
  }
}

// One list of a vertex, to all who ask for it: parallel edges lie beside each other.
void ExpandPass::offer(Range& range, std::size_t first, std::size_t end, Worker& worker,
                       const EdgeRecords& records, std::int64_t local) const {
  const KeyFields& fields = lists_.requests;
  const bool by_weight = sampling_.choice == HopSampling::Choice::kWeighted;
  const auto neighbours = worker.lists.neighbours(local);
  const auto edges = worker.lists.edges(local);
  OfferedEdges& offered = worker.offered;
  std::uint32_t parallel = 0;
  for (std::size_t begin = 0; begin < neighbours.size(); begin += OfferedEdges::kMost) {
    const std::size_t count = std::min(OfferedEdges::kMost, neighbours.size() - begin);
    offered.neighbours = neighbours.subspan(begin, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = begin + i;
      parallel = at > 0 && neighbours[at] == neighbours[at - 1] ? parallel + 1 : 0;
      offered.names[i] = edge_name(name(neighbours[at]), parallel);
      if (by_weight) offered.weights[i] = records.weight(edges[at]);
    }
    const auto put = [&](std::size_t i, std::byte* record) {
      if (lists_.chosen.data_bytes() > 0) records.copy(edges[begin + i], record);
    };
    for (std::size_t ask = first; ask < end; ++ask) {
      const std::uint64_t key = range.asks.keys[ask];
      std::uint64_t stream = batch_keys_[fields.second(key)];
      if (by_weight) stream = asker_key(stream, name(fields.first(key)));
      range.kept->offer(ask, stream, offered, by_weight, put);
    }
  }
}

void ExpandPass::take_kept(Range& range) {
  const KeyFields& fields = lists_.requests;
  const std::size_t worker = driver_.worker();
  for (std::size_t i = 0; i < range.asks.size(); ++i) {
    const std::uint64_t key = range.asks.keys[i];
    range.kept->for_each(i, [&](std::uint32_t neighbour, const std::byte* record) {
      chosen_.add(worker, fields.key(neighbour, fields.second(key), fields.third(key)), record);
    });
  }
}

}  // namespace ooc
