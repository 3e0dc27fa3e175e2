#include "engine/batches/prepared_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "engine/machine/elapsed.h"
#include "storage/base/errors.h"
#include "storage/edges/edge_sorter.h"

namespace ooc {
namespace {

constexpr std::int64_t kWordBits = 64;

int bits(std::int64_t count) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1)));
}

}  // namespace

std::vector<std::int64_t> most_level_rows(const BatchLoaderOptions& options, std::int64_t vertices,
                                          std::int64_t edges) {
  std::vector<std::int64_t> rows{std::min(options.batch_size, vertices)};
  std::int64_t fresh = rows.front();
  for (const HopSampling& hop : options.hops) {
    // No level has more vertices than there are edges, nor a batch than the graph.
    const std::int64_t most = std::min(edges, vertices);
    const bool all = hop.fanout == HopSampling::kAll || fresh > most / std::max(hop.fanout, 1L);
    fresh = all ? most : fresh * hop.fanout;
    rows.push_back(std::min(rows.back() + fresh, vertices));
  }
  return rows;
}

std::int64_t largest_edge_chunk(const EdgeFile& edges) {
  std::uint64_t most = kIoAlignment;
  for (std::uint64_t chunk = 0; chunk < edges.file().shape().chunk_count; ++chunk) {
    most = std::max(most, io_aligned(edges.file().entry(chunk).bytes));
  }
  return static_cast<std::int64_t>(most);
}

// Two at least; those of a span, where its lists have to be whole.
std::int64_t edge_slot_count(const EdgeLayout& edges, std::int64_t largest_chunk,
                             std::int64_t bytes, bool whole_spans) {
  const std::int64_t least = whole_spans ? edges.panel_count() + 1 : 2;
  return std::max(least, bytes / largest_chunk);
}

PackedRowsOptions packing_options(const BatchMemory& memory) {
  PackedRowsOptions options;
  options.places_bytes = memory.lists;
  options.write_bytes = memory.writes;
  options.input_slots = memory.input_slots;
  options.run_places = memory.run_places;
  return options;
}

// Each has two buffers of the least size for its cold rows.
std::int64_t most_batches(const BatchMemory& memory) {
  return std::clamp<std::int64_t>(memory.writes / (2 * RowRegions::kLeastBuffer), 1,
                                  memory.batches);
}

std::int64_t batches_together(const BatchLoaderOptions& options, std::int64_t vertices,
                              std::int64_t edges, const std::string& where) {
  const std::int64_t rows = most_level_rows(options, vertices, edges).back() + 1;
  // A place takes one more than a row, or a vertex that is hot.
  const int left =
      static_cast<int>(kWordBits) - bits(rows) - std::max(bits(vertices), bits(rows)) - 1;
  if (left < 0) {
    throw UsageError(fmt::format("batches of up to {} vertices", rows - 1), where,
                     "give a smaller --batch-size or smaller --fanouts");
  }
  return std::min(std::int64_t{1} << std::min(left, 40), most_batches(options.memory));
}

// With what its edge carries, sorted.
std::int64_t resolved_bytes(const EdgeData& data) {
  constexpr std::int64_t kResolvedBytes = 48;
  return kResolvedBytes + static_cast<std::int64_t>(data.bytes()) + sort_memory(data.bytes());
}

std::int64_t list_buffer_bytes(const BatchMemory& memory) { return memory.lists / 4; }

SuperbatchOptions superbatch_limits(const BatchMemory& memory, const EdgeData& data,
                                    std::int64_t workers) {
  const std::size_t buffer_records =
      RecordBuffers::records_in(list_buffer_bytes(memory) / kListsAtOnce, data.bytes(), workers);
  const std::int64_t at_once = workers + 2;
  const std::int64_t range_bytes = std::max<std::int64_t>(memory.ranges / at_once, 1 << 16);
  SuperbatchOptions options;
  options.list_bytes = static_cast<std::size_t>(memory.lists - list_buffer_bytes(memory));
  options.resolve = {static_cast<std::uint64_t>(range_bytes / resolved_bytes(data)), at_once,
                     buffer_records};
  options.expand.range_bytes = range_bytes;
  options.expand.ranges_at_once = at_once;
  options.expand.buffer_records = buffer_records;
  return options;
}

SuperbatchFigures PreparedBatches::figures() const {
  SuperbatchFigures figures;
  figures.batches = count();
  for (const std::int64_t batch : batch_rows) figures.vertices += batch;
  figures.edges = static_cast<std::int64_t>(sampled->edges());
  figures.hot_rows = rows->counts().hot_rows;
  for (const std::int64_t cold : rows->counts().cold_rows) figures.cold_rows += cold;
  figures.edge_bytes = sampled->bytes_passed();
  const std::uint64_t read =
      sampled->list_bytes_read() + sampled->edges_read_bound() + rows->places_read_bound();
  figures.list_bytes_read = static_cast<std::int64_t>(read);
  figures.list_bytes_written =
      static_cast<std::int64_t>(sampled->list_bytes_written() + rows->places_file_bytes());
  const PackedBytes packed = rows->planned_bytes();
  figures.input_bytes = packed.inputs_read;
  figures.cold_bytes = packed.cold_written;
  return figures;
}

LoadedBytes PreparedBatches::bytes() const {
  LoadedBytes bytes;
  if (sampled) {
    bytes.read += sampled->bytes_read() + static_cast<std::int64_t>(sampled->list_bytes_read());
    bytes.written += static_cast<std::int64_t>(sampled->list_bytes_written());
  }
  if (rows) {
    const PackedBytes moved = rows->moved_bytes();
    bytes.read +=
        moved.inputs_read + moved.cold_read + static_cast<std::int64_t>(rows->places_read_bytes());
    bytes.written += moved.cold_written + static_cast<std::int64_t>(rows->places_file_bytes());
  }
  return bytes;
}

SuperbatchMaker::SuperbatchMaker(BlockIo& io, FileSystem& files, const Dataset& dataset,
                                 const BatchLoaderOptions& options,
                                 const std::vector<RowInput>& packed)
    : io_(io),
      files_(files),
      dataset_(dataset),
      options_(options),
      packed_(packed),
      vertices_(options.vertices ? options.vertices
                                 : std::make_shared<const SampledVertices>(dataset)),
      hot_(options.hot
               ? options.hot
               : std::make_shared<HotRows>(dataset.vertices(), RowRecord(packed).bytes(),
                                           options.are_alike ? options.memory.hot_rows : 0)),
      edges_(io, dataset.edge_file(Direction::kOut), Direction::kOut, nullptr, nullptr, {},
             nullptr),
      slot_count_(edge_slot_count(edges_.file().layout(), largest_edge_chunk(edges_.file()),
                                  options_.memory.edge_slots, !vertices_->names.empty())),
      edge_slots_(static_cast<std::size_t>(slot_count_ * largest_edge_chunk(edges_.file())),
                  "edge chunks"),
      driver_(options_.workers, 1, machine_clock(), Precedence::kFirst) {}

std::string SuperbatchMaker::scratch_path(const char* name) const {
  return join_path(options_.scratch, fmt::format("{}.{}.{}", options_.name, made_, name));
}

std::unique_ptr<PreparedBatches> SuperbatchMaker::make(const SeedBatches& seeds, std::int64_t first,
                                                       const std::atomic<bool>& stop) {
  driver_.stop_on(&stop);
  ++made_;
  share_done_ = 0;
  auto batches = std::make_unique<PreparedBatches>();
  batches->first = first;
  const auto begin = std::chrono::steady_clock::now();
  if (!sample(seeds, *batches)) return nullptr;
  batches->sampling_seconds = seconds_since(begin);
  if (!pack(seeds, *batches)) return nullptr;
  batches->packing_seconds = seconds_since(begin) - batches->sampling_seconds;
  return batches;
}

SuperbatchShape SuperbatchMaker::shape(std::int64_t batches) const {
  const std::int64_t vertices = dataset_.vertices(), edges = dataset_.edges();
  const std::int64_t most = batches_together(options_, vertices, edges, dataset_.path());
  return {static_cast<std::uint64_t>(vertices),
          static_cast<std::uint64_t>(std::clamp<std::int64_t>(batches, 1, most)),
          static_cast<std::uint64_t>(most_level_rows(options_, vertices, edges).back() + 1)};
}

SuperbatchOptions SuperbatchMaker::superbatch_options(const SuperbatchShape& shape) const {
  SuperbatchOptions options =
      superbatch_limits(options_.memory, edges_.file().layout().data, options_.workers);
  options.shape = shape;
  options.hops = options_.hops;
  options.scratch = scratch_path("sampled");
  options.expand.edge_slots = {edge_slots_.data(), edge_slots_.bytes()};
  options.expand.edge_slot_count = slot_count_;
  return options;
}

// `batch`: of the seeds'.
void SuperbatchMaker::check_limits(const std::vector<std::int64_t>& level_rows,
                                   std::int64_t batch) const {
  constexpr std::int64_t kMiB = 1 << 20;
  const BatchLimits& limits = options_.limits;
  for (std::size_t level = 0; level < limits.level_rows.size(); ++level) {
    if (level_rows[level] <= limits.level_rows[level]) continue;
    throw BudgetError(
        fmt::format("batch {} of {} reaches {} vertices in {} hops, far more than "
                    "their degrees let expect: there is memory for {}",
                    batch + 1, options_.name, level_rows[level], level, limits.level_rows[level]),
        "--host-memory",
        fmt::format("give {} MiB, in which any batch has room, or a smaller "
                    "--batch-size or smaller fan-outs",
                    ceil_div(limits.any_host_bytes, kMiB)));
  }
}

bool SuperbatchMaker::sample(const SeedBatches& seeds, PreparedBatches& batches) {
  const SuperbatchShape shape = this->shape(seeds.count());
  batches.end = std::min(batches.first + static_cast<std::int64_t>(shape.batches), seeds.count());
  Superbatch& sampled = batches.sampled.emplace(
      driver_, files_, SampledGraph{edges_, vertices_->degrees, vertices_->names},
      superbatch_options(shape));
  std::vector<std::uint64_t> keys;
  Records records;
  for (std::int64_t batch = batches.first; batch < batches.end; ++batch) {
    keys.push_back(seeds.key(batch / options_.batch_dependency));
    for (const std::uint32_t seed : seeds.of(batch)) {
      records.keys.push_back(
          sampled.fields().key(seed, static_cast<std::uint64_t>(batch - batches.first), 0));
    }
  }
  sort_records(records, 0);
  SortedRuns list(files_, scratch_path("seeds"), 0,
                  records.keys.capacity() * sizeof(std::uint64_t));
  list.write(0, std::move(records));
  list.finish();
  // Each of the two takes about as long.
  const auto on_progress = [&](double share) { share_done_ = share / 2; };
  if (!sampled.sample(list, keys, on_progress)) return false;
  for (std::int64_t batch = 0; batch < sampled.batches(); ++batch) {
    const std::vector<std::int64_t> rows = sampled.level_rows(batch);
    check_limits(rows, batches.first + batch);
    batches.batch_rows.push_back(rows.back());
  }
  return true;
}

// Few batches, as are left of an epoch that goes on, don't choose for those to come: they have
// none.
std::shared_ptr<HotRows> SuperbatchMaker::hot_for(const SeedBatches& seeds,
                                                  const PreparedBatches& batches) const {
  const auto own = [&](std::int64_t bytes) {
    return std::make_shared<HotRows>(dataset_.vertices(), hot_->record_bytes(), bytes);
  };
  if (!options_.are_alike) return own(options_.memory.hot_rows / 2);
  const bool are_all = batches.count() >= static_cast<std::int64_t>(shape(seeds.count()).batches);
  return hot_->is_chosen() || are_all ? hot_ : own(0);
}

bool SuperbatchMaker::pack(const SeedBatches& seeds, PreparedBatches& batches) {
  const Superbatch& sampled = *batches.sampled;
  PackedRowsOptions options = packing_options(options_.memory);
  options.scratch = options_.scratch;
  options.places_path = scratch_path("places");
  const auto lock = hot_->lock();
  batches.hot = hot_for(seeds, batches);
  PackedRows& rows = batches.rows.emplace(
      io_, files_, RowRequests{sampled.vertices(), sampled.fields(), batches.batch_rows}, packed_,
      *batches.hot, std::move(options));
  const auto on_progress = [&](double share) { share_done_ = 0.5 + share / 2; };
  return rows.count(driver_) && rows.pack(driver_, on_progress);
}

}  // namespace ooc
