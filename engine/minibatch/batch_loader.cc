#include "engine/minibatch/batch_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kWordBits = 64;

std::int64_t largest_chunk(const EdgeFile& file) {
  std::uint64_t most = kIoAlignment;
  for (std::uint64_t chunk = 0; chunk < file.file().shape().chunk_count; ++chunk) {
    most = std::max(most, io_aligned(file.file().entry(chunk).bytes));
  }
  return static_cast<std::int64_t>(most);
}

// Of edge chunks: two at least; those of a span, where its lists have to be whole.
std::int64_t slot_count(const EdgeFile& file, std::int64_t bytes, bool whole_spans) {
  const std::int64_t least = whole_spans ? file.layout().panel_count() + 1 : 2;
  return std::max(least, bytes / largest_chunk(file));
}

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

BatchLoader::BatchLoader(BlockIo& io, FileSystem& files, const Dataset& dataset,
                         const GraphInputs& inputs, BatchLoaderOptions options)
    : io_(io),
      files_(files),
      dataset_(dataset),
      options_(std::move(options)),
      names_(vertex_names(dataset)),
      degrees_(in_degrees(dataset)),
      edge_slots_(static_cast<std::size_t>(largest_chunk(dataset.edge_file(Direction::kOut)) *
                                           slot_count(dataset.edge_file(Direction::kOut),
                                                      options_.memory.edge_slots, !names_.empty())),
                  "edge chunks"),
      edges_(io, dataset.edge_file(Direction::kOut), Direction::kOut, nullptr, nullptr, {},
             nullptr),
      driver_(options_.workers),
      batch_(options_, inputs, dataset.manifest().edges.data) {}

BatchLoader::~BatchLoader() = default;

// As many batches together as the bits of a key allow.
SuperbatchShape BatchLoader::shape() const {
  const std::int64_t vertices = dataset_.vertices();
  const std::int64_t rows = most_level_rows(options_, vertices, dataset_.edges()).back() + 1;
  const int left = static_cast<int>(kWordBits) - bits(rows) - std::max(bits(vertices), bits(rows));
  if (left < 0) {
    throw UsageError(fmt::format("batches of up to {} vertices", rows - 1), dataset_.path(),
                     "give a smaller --batch-size or smaller --fanouts");
  }
  const std::int64_t most = std::int64_t{1} << std::min(left, 40);
  return {static_cast<std::uint64_t>(vertices),
          static_cast<std::uint64_t>(std::clamp<std::int64_t>(batches(), 1, most)),
          static_cast<std::uint64_t>(rows)};
}

void BatchLoader::begin(SeedBatches seeds) {
  seeds_ = std::move(seeds);
  next_ = first_ = end_ = 0;
}

bool BatchLoader::next(const std::atomic<bool>* stop,
                       const std::function<void(double share)>& on_sampling) {
  if (next_ == batches()) {
    release_rows();
    superbatch_.reset();
    return false;
  }
  if (next_ == end_ && !prepare(next_, stop, on_sampling)) return false;
  if (stop != nullptr && *stop) return false;
  const std::int64_t batch = next_++ - first_;
  if (next_ < end_) rows_->read(batch + 1, *coming_[(batch + 1) % 2]);
  batch_.assemble(*superbatch_, *rows_, *coming_[batch % 2], batch);
  return true;
}

bool BatchLoader::prepare(std::int64_t first, const std::atomic<bool>* stop,
                          const std::function<void(double share)>& on_sampling) {
  driver_.stop_on(stop);
  release_rows();
  const std::int64_t end = std::min(first + static_cast<std::int64_t>(shape().batches), batches());
  if (!sample(first, end, on_sampling) || !pack()) return false;
  first_ = first;
  end_ = end;
  for (std::optional<ComingRows>& coming : coming_) coming.emplace();
  rows_->read(0, *coming_[0]);
  return true;
}

SuperbatchOptions BatchLoader::superbatch_options() const {
  const BatchMemory& memory = options_.memory;
  const EdgeFile& file = edges_.file();
  // A list is written by each worker in a buffer of its own.
  constexpr std::int64_t kLists = 4, kLeastRecords = 4096, kMostRecords = 1 << 20;
  const std::int64_t record_bytes = RecordBuffers::record_bytes(file.layout().data.bytes());
  const auto buffer_records = static_cast<std::size_t>(std::clamp(
      memory.lists / 8 / (kLists * options_.workers * record_bytes), kLeastRecords, kMostRecords));
  const std::int64_t at_once = options_.workers + 2;
  const std::int64_t range_bytes = std::max<std::int64_t>(memory.ranges / at_once, 1 << 16);
  constexpr std::int64_t kResolvedBytes = 48;  // of a request
  SuperbatchOptions options;
  options.shape = shape();
  options.hops = options_.hops;
  options.scratch = join_path(options_.scratch, "sampled");
  options.list_bytes = static_cast<std::size_t>(memory.lists);
  options.resolve = {static_cast<std::uint64_t>(range_bytes / kResolvedBytes), at_once,
                     buffer_records};
  options.expand = {range_bytes,
                    at_once,
                    buffer_records,
                    {edge_slots_.data(), edge_slots_.bytes()},
                    slot_count(file, memory.edge_slots, !names_.empty())};
  return options;
}

bool BatchLoader::sample(std::int64_t first, std::int64_t end,
                         const std::function<void(double share)>& on_sampling) {
  superbatch_.emplace(driver_, files_, SampledGraph{edges_, degrees_, names_},
                      superbatch_options());
  std::vector<std::uint64_t> keys;
  Records records;
  for (std::int64_t batch = first; batch < end; ++batch) {
    keys.push_back(seeds_.key(batch));
    for (const std::uint32_t seed : seeds_.of(batch)) {
      records.keys.push_back(
          superbatch_->fields().key(seed, static_cast<std::uint64_t>(batch - first), 0));
    }
  }
  sort_records(records, 0);
  SortedRuns seeds(files_, join_path(options_.scratch, "seeds"), 0,
                   records.keys.capacity() * sizeof(std::uint64_t));
  seeds.write(0, std::move(records));
  seeds.finish();
  if (!superbatch_->sample(seeds, keys, on_sampling)) return false;
  bytes_.read += superbatch_->bytes_read();
  bytes_.written += static_cast<std::int64_t>(superbatch_->list_bytes_written());
  batch_rows_.clear();
  for (std::int64_t batch = 0; batch < superbatch_->batches(); ++batch) {
    batch_rows_.push_back(superbatch_->level_rows(batch).back());
  }
  return true;
}

void BatchLoader::release_rows() {
  for (std::optional<ComingRows>& coming : coming_) coming.reset();
  if (rows_) {
    bytes_.read += rows_->moved_bytes().inputs_read + rows_->moved_bytes().cold_read;
    bytes_.written += rows_->moved_bytes().cold_written;
  }
  rows_.reset();
}

bool BatchLoader::pack() {
  const BatchMemory& memory = options_.memory;
  rows_.emplace(io_, files_,
                RowRequests{superbatch_->vertices(), superbatch_->fields(), batch_rows_},
                batch_.packed(),
                PackedRowsOptions{.scratch = options_.scratch,
                                  .places_path = join_path(options_.scratch, "places"),
                                  .hot_bytes = memory.hot_rows,
                                  .cold_bytes = memory.cold_rows,
                                  .places_bytes = memory.lists,
                                  .write_bytes = memory.writes});
  return rows_->count(driver_) && rows_->pack(driver_);
}

BatchLoader::Bytes BatchLoader::take_bytes() {
  Bytes all = bytes_;
  if (rows_) {
    const PackedBytes moved = rows_->moved_bytes();
    all.read += moved.inputs_read + moved.cold_read;
    all.written += moved.cold_written;
  }
  const Bytes since{all.read - taken_.read, all.written - taken_.written};
  taken_ = all;
  return since;
}

}  // namespace ooc
