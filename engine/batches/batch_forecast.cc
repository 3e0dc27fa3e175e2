#include "engine/batches/batch_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/batches/prepared_batches.h"
#include "engine/sampling/reached_batch.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr double kWordBytes = 8;
// Of the records that a range may have, those that it has: ranges are halved until they fit.
constexpr double kRangeFill = 0.7;

// How many of `batches` ask for a vertex is binomial. As choose_hot() does (row_counts.h).
HotChoice choose_hot(const ReachedBatch& batch, const std::vector<DegreeClass>& degrees,
                     double batches, double room) {
  constexpr double kMost = 1 - 1e-12;
  std::vector<double> logs, odds, with;  // by class: of those that k batches ask for, k going up
  HotChoice choice;
  double hot = 0, of_fewest = 0;
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    const double reached = std::clamp(batch.reached[i], 1e-300, kMost);
    logs.push_back(batches * std::log1p(-reached));
    odds.push_back(std::log(reached) - std::log1p(-reached));
    with.push_back(std::exp(logs[i]));
    hot += degrees[i].vertices * (1 - with[i]);
    of_fewest += degrees[i].vertices * with[i];
    choice.shares.push_back(1 - with[i]);
    choice.cold.push_back(0);
  }
  double askers = 0;  // of the most asked that are cold
  for (; hot > room && askers < batches; hot -= of_fewest) {
    of_fewest = 0;
    ++askers;
    for (std::size_t i = 0; i < degrees.size(); ++i) {
      logs[i] += odds[i] + std::log((batches - askers + 1) / askers);
      with[i] = std::exp(logs[i]);
      of_fewest += degrees[i].vertices * with[i];
      choice.shares[i] -= with[i];
      choice.cold[i] += askers * with[i];
    }
  }
  const double filled = of_fewest > 0 ? std::clamp((room - hot) / of_fewest, 0.0, 1.0) : 0;
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    choice.shares[i] = std::clamp(choice.shares[i] + filled * with[i], 0.0, 1.0);
    choice.cold[i] = std::max(choice.cold[i] - filled * askers * with[i], 0.0);
  }
  return choice;
}

// Records sorted in runs, as SortedRuns and RecordBuffers have them.
struct SortedList {
  double records = 0;
  double record_bytes = kWordBytes;
  double memory = 0;
  double run_records = 1;  // of a run, but for the last one
  double spare = 0;        // that memory of a run has beside
  // Of all of it, and the ranges that these are done in.
  double readings = 0, ranges = 0;

  double runs() const { return std::ceil(records / run_records); }
  double runs_in_file() const {
    if (records < run_records) return records * record_bytes <= memory ? 0 : 1;
    return std::max(0.0, runs() - std::floor(memory / ((run_records + spare) * record_bytes)));
  }
  double records_in_file() const { return std::min(records, runs_in_file() * run_records); }
  double bytes_written() const { return records_in_file() * record_bytes; }
  double bytes_read() const {
    if (records == 0) return 0;
    return readings * bytes_written() +
           ranges * runs_in_file() * static_cast<double>(SortedRuns::kStride) * kWordBytes;
  }
  void read_in(double of_ranges) {
    readings += 1;
    ranges += of_ranges;
  }
};

// So many of `places` have one of `found` or more, which lie anywhere.
double places_hit(double places, double found) { return places * -std::expm1(-found / places); }

class SuperbatchForecast {
 public:
  // `chooses`: who is hot, and their rows come with it.
  SuperbatchForecast(const SampledCounts& counts, const BatchLoaderOptions& options,
                     const ReachedBatch& batch, double batches, const HotChoice& hot, bool chooses)
      : counts_(counts),
        options_(options),
        batch_(batch),
        batches_(batches),
        chooses_(chooses),
        limits_(superbatch_limits(options.memory, counts.graph.edges.data, options.workers)),
        inputs_(stored_inputs(counts, options)),
        record_(static_cast<double>(row_sizes(inputs_).record)) {
    for (std::size_t i = 0; i < counts.degrees.size(); ++i) {
      const double vertices = counts.degrees[i].vertices, reached = std::min(batch.reached[i], 1.0);
      const double asked = vertices * -std::expm1(batches * std::log1p(-reached));
      vertices_ += asked;
      const double kept = vertices * hot.shares[i];  // whom the first one asks for come first
      hot_rows_ += chooses ? std::min(asked, kept) : asked * hot.shares[i];
      cold_rows_ += vertices * (chooses ? hot.cold[i] : (1 - hot.shares[i]) * batches * reached);
    }
  }

  // Adds what so many of these move.
  void add_to(BatchForecast& all, std::int64_t superbatches) const {
    const auto times = static_cast<double>(superbatches);
    double files = 0;
    for (const SortedList& list : lists()) {
      all.list_bytes_read += times * list.bytes_read();
      all.list_bytes_written += times * list.bytes_written();
      files += list.bytes_written();
    }
    for (std::size_t hop = 0; hop < options_.hops.size(); ++hop) {
      all.edge_bytes += times * edge_bytes(hop);
    }
    const double read = chooses_ ? vertices_ : vertices_ - hot_rows_;
    for (const InputRows& input : inputs_) {
      const auto chunks = static_cast<double>(input.chunks());
      all.input_bytes +=
          times * static_cast<double>(input.bytes()) * places_hit(chunks, read) / chunks;
    }
    all.cold_bytes += times * cold_bytes();
    all.scratch = std::max(all.scratch, files + cold_bytes());
    if (all.superbatches == 0) {
      all.hot_rows = hot_rows_;
      all.hot_share = 1 - cold_rows_ / (batches_ * batch_.level_rows.back());
    }
    all.superbatches += superbatches;
    all.edge_readings += superbatches * std::ssize(options_.hops);
  }

 private:
  double spans() const { return static_cast<double>(counts_.graph.edges.span_count()); }
  double asked_spans(std::size_t hop) const {
    return places_hit(spans(), batches_ * batch_.asks[hop]);
  }
  double expand_ranges(std::size_t hop) const {
    const std::int64_t ask_bytes =
        ExpandPass::ask_bytes(options_.hops[hop], counts_.graph.edges.data);
    const double wanted = std::floor(static_cast<double>(limits_.expand.range_bytes / ask_bytes));
    const SortedList asks = list(batch_.asks[hop], 0, 0);
    const double most = std::max(wanted, static_cast<double>(kLeastOfRun) * asks.runs());
    return std::max(asked_spans(hop), asks.records / (kRangeFill * std::max(most, 1.0)));
  }

  // Spans in which nobody asks aren't read. Ranges of a span share a reading if all of its chunks
  // have room.
  double edge_bytes(std::size_t hop) const {
    const EdgeLayout& layout = counts_.graph.edges;
    const std::int64_t slots = edge_slot_count(layout, counts_.largest_chunk,
                                               options_.memory.edge_slots, counts_.is_named);
    const EdgeBytes& file = counts_.graph.symmetric ? counts_.graph.in : counts_.graph.out;
    const double read = slots > layout.panel_count() ? asked_spans(hop) : expand_ranges(hop);
    return static_cast<double>(file.bytes) * read / spans();
  }

  double cold_bytes() const { return cold_rows_ * record_; }

  SortedList list(double records, std::size_t data_bytes, double memory_share) const {
    SortedList list;
    list.records = batches_ * records;
    list.record_bytes = kWordBytes + static_cast<double>(data_bytes);
    list.memory = static_cast<double>(limits_.list_bytes) * memory_share;
    list.run_records = static_cast<double>(limits_.resolve.buffer_records);
    list.spare = static_cast<double>(RecordBuffers::spare_records(options_.workers));
    return list;
  }

  // Of those who resolve what was asked for.
  double resolve_ranges(const SortedList& asked) const {
    const double most = std::max(static_cast<double>(limits_.resolve.range_records),
                                 static_cast<double>(kLeastOfRun) * asked.runs());
    return std::max(1.0, asked.records / (kRangeFill * most));
  }

  std::vector<SortedList> lists() const {
    const std::size_t hops = options_.hops.size(), data = counts_.graph.edges.data.bytes();
    const double of_hop = 1 / static_cast<double>(hops);
    std::vector<SortedList> fresh, all;
    for (std::size_t hop = 0; hop < hops; ++hop) {
      fresh.push_back(list(batch_.asks[hop], 0, Superbatch::kFresh * of_hop));
      fresh.back().read_in(expand_ranges(hop));
      SortedList chosen = list(batch_.edges[hop], data, Superbatch::kChosen);
      const double ranges = resolve_ranges(chosen);
      chosen.read_in(ranges);
      for (SortedList& known : fresh) known.read_in(ranges);
      SortedList edges = list(batch_.edges[hop], data, Superbatch::kEdges * of_hop);
      edges.read_in(batches_);
      all.insert(all.end(), {chosen, edges});
    }
    all.insert(all.end(), fresh.begin(), fresh.end());
    all.push_back(vertices());
    all.push_back(places());
    return all;
  }

  // Read to choose who is hot, to count cold rows, and to pack.
  SortedList vertices() const {
    SortedList vertices = list(batch_.level_rows.back(), 0, Superbatch::kVertices);
    const auto blocks = static_cast<double>(counts_.graph.edges.block_count());
    const std::int64_t words =
        PackedRows::words_at_once(packing_options(options_.memory), std::llround(record_));
    const auto at_once = static_cast<double>(stretch_words(words, std::llround(vertices.runs())));
    const double stretches =
        std::max(places_hit(blocks, vertices_), vertices.records / (kRangeFill * at_once));
    for (int i = 0; i < (chooses_ ? 5 : 2); ++i) vertices.read_in(stretches);
    return vertices;
  }

  SortedList places() const {
    SortedList places = list(batch_.level_rows.back(), 0, 0);
    places.memory = static_cast<double>(options_.memory.lists);
    places.run_records =
        std::min(static_cast<double>(options_.memory.run_places), std::max(1.0, places.records));
    places.read_in(batches_);
    return places;
  }

  const SampledCounts& counts_;
  const BatchLoaderOptions& options_;
  const ReachedBatch& batch_;
  double batches_;
  bool chooses_;
  SuperbatchOptions limits_;
  std::vector<InputRows> inputs_;
  double record_;
  double vertices_ = 0;                  // that any batch asks for
  double hot_rows_ = 0, cold_rows_ = 0;  // of these, and of all batches
};

std::int64_t seeds_of(const SampledCounts& counts, double DegreeClass::*seeds) {
  if (seeds == &DegreeClass::train) return counts.train;
  if (seeds == &DegreeClass::judged) return counts.judged;
  double all = 0;
  for (const DegreeClass& of : counts.degrees) all += of.*seeds;
  return std::llround(all);
}

std::int64_t batches_of(const SampledCounts& counts, const BatchLoaderOptions& options,
                        double DegreeClass::*seeds) {
  return ceil_div(seeds_of(counts, seeds), options.batch_size);
}

ReachedBatch reach(const SampledCounts& counts, const BatchLoaderOptions& options,
                   double DegreeClass::*seeds) {
  const std::int64_t batch = std::min(options.batch_size, seeds_of(counts, seeds));
  return reach_batch(options.hops, static_cast<double>(batch), counts.degrees,
                     seen_seeds(counts.degrees, seeds, counts.vertices()));
}

}  // namespace

HotChoice forecast_hot(const SampledCounts& counts, const BatchLoaderOptions& options,
                       double DegreeClass::*seeds) {
  const double record = static_cast<double>(row_sizes(stored_inputs(counts, options)).record);
  const std::int64_t batches =
      std::min(batches_of(counts, options, seeds),
               batches_together(options, counts.vertices(), counts.edges(), counts.name));
  const std::int64_t bytes = options.memory.hot_rows / (options.are_alike ? 1 : 2);
  return choose_hot(reach(counts, options, seeds), counts.degrees, static_cast<double>(batches),
                    std::floor(static_cast<double>(bytes) / record));
}

BatchForecast forecast_batches(const SampledCounts& counts, const BatchLoaderOptions& options,
                               double DegreeClass::*seeds, const HotChoice& hot, bool chooses) {
  BatchForecast forecast;
  forecast.batches = batches_of(counts, options, seeds);
  if (forecast.batches == 0) return forecast;
  const ReachedBatch batch = reach(counts, options, seeds);
  forecast.batch_vertices = batch.level_rows.back();
  for (const double edges : batch.edges) forecast.batch_edges += edges;
  const std::int64_t together =
      batches_together(options, counts.vertices(), counts.edges(), counts.name);
  const std::int64_t full = forecast.batches / together, rest = forecast.batches % together;
  const bool all_choose = chooses && !options.are_alike;
  const auto add = [&](std::int64_t superbatches, std::int64_t batches, bool choose) {
    if (superbatches == 0) return;
    SuperbatchForecast(counts, options, batch, static_cast<double>(batches), hot, choose)
        .add_to(forecast, superbatches);
  };
  if (full > 0) {
    add(1, together, chooses);
    add(full - 1, together, all_choose);
  }
  if (rest > 0) add(1, rest, full > 0 ? all_choose : chooses);
  return forecast;
}

void fit_scratch(std::int64_t free_bytes, const std::string& directory,
                 const std::function<ScratchNeed(const BatchMemory&)>& needed,
                 BatchMemory& memory) {
  constexpr double kCounted = 0.95;  // forecasts are a few percent too small at worst
  ScratchNeed need = needed(memory);
  const std::int64_t first = need.bytes;
  const auto counted = static_cast<std::int64_t>(kCounted * static_cast<double>(free_bytes));
  while (need.bytes > counted) {
    if (memory.batches == 1) {
      const auto size = [](std::int64_t bytes) {
        return format_byte_size(static_cast<std::int64_t>(static_cast<double>(bytes) / kCounted));
      };
      throw IoError(fmt::format("too little space for temporary files: {} are free, {} are needed, "
                                "and {} with one batch prepared at a time",
                                format_byte_size(free_bytes), size(first), size(need.bytes)),
                    directory,
                    "free some, name another directory (--scratch), or give more memory");
    }
    memory.batches = ceil_div(std::max<std::int64_t>(need.together, 1), 2);
    need = needed(memory);
  }
}

}  // namespace ooc
