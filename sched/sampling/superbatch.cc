#include "sched/sampling/superbatch.h"

#include <fmt/format.h>

#include <utility>

#include "storage/base/errors.h"

namespace ooc {

Superbatch::Superbatch(Driver& driver, FileSystem& files, const SampledGraph& graph,
                       SuperbatchOptions options)
    : driver_(driver),
      files_(files),
      graph_(graph),
      options_(std::move(options)),
      requests_(options_.shape.vertices, options_.shape.batches, options_.shape.batch_rows),
      numbered_(options_.shape.batches, options_.shape.batch_rows, options_.shape.batch_rows) {}

Superbatch::~Superbatch() = default;

std::unique_ptr<SortedRuns> Superbatch::open_list(const char* name, std::size_t data_bytes,
                                                  double memory_share) {
  const auto memory = static_cast<double>(options_.list_bytes) * memory_share;
  return std::make_unique<SortedRuns>(files_,
                                      fmt::format("{}.{}{}", options_.scratch, name, opened_++),
                                      data_bytes, static_cast<std::size_t>(memory));
}

bool Superbatch::sample(const SortedRuns& seeds, std::span<const std::uint64_t> batch_keys,
                        const std::function<void(double share)>& on_progress) {
  OOC_CHECK(batch_keys.size() <= options_.shape.batches);
  batches_ = std::ssize(batch_keys);
  rows_.assign(1, std::vector<std::uint32_t>(batch_keys.size()));
  fresh_.clear();
  edges_.clear();
  asked_.reset();
  vertices_ = open_list("vertices", 0, kVertices);
  RecordBuffers vertices(*vertices_, driver_.workers(), options_.resolve.buffer_records);
  const std::size_t hops = options_.hops.size();
  for (std::size_t hop = 0; hop <= hops; ++hop) {
    const auto share = [&](double done) {
      if (on_progress) {
        on_progress((static_cast<double>(hop) + done) / static_cast<double>(hops + 1));
      }
    };
    if (!run_hop(hop, hop == 0 ? seeds : *asked_, vertices, batch_keys, share)) return false;
  }
  drop_asked();
  vertices.finish();
  return true;
}

// Resolves what was asked for; what that found asks for more, but in the last hop.
bool Superbatch::run_hop(std::size_t hop, const SortedRuns& asked, RecordBuffers& vertices,
                         std::span<const std::uint64_t> batch_keys,
                         const std::function<void(double share)>& on_progress) {
  const bool expands = hop < options_.hops.size();
  const EdgeLayout& layout = graph_.edges.file().layout();
  if (hop > 0) {
    edges_.push_back(
        open_list("edges", asked.data_bytes(), kEdges / static_cast<double>(options_.hops.size())));
    rows_.push_back(rows_.back());
  }
  ResolveLists lists{requests_, numbered_, asked, {}};
  for (const auto& level : fresh_) lists.known.push_back(level.get());
  if (hop > 0) lists.edges = edges_.back().get();
  std::unique_ptr<SortedRuns> fresh;
  if (expands) {
    fresh = open_list("fresh", 0, kFresh / static_cast<double>(options_.hops.size()));
    lists.fresh = fresh.get();
  }
  ResolvePass resolve(driver_, lists, options_.resolve, rows_.back(), layout.span_rows, &vertices);
  if (!resolve.run()) return false;
  if (!expands) return true;
  fresh_.push_back(std::move(fresh));
  auto chosen = open_list("chosen", layout.data.bytes(), kChosen);
  ExpandPass expand(driver_, graph_, options_.hops[hop], {requests_, *fresh_.back(), *chosen},
                    options_.expand, resolve.fresh_by_span(layout.span_count()), batch_keys);
  if (!expand.run(on_progress)) return false;
  bytes_read_ += expand.bytes_read();
  bytes_passed_ += expand.bytes_passed();
  drop_asked();
  asked_ = std::move(chosen);
  return true;
}

std::vector<std::int64_t> Superbatch::level_rows(std::int64_t batch) const {
  std::vector<std::int64_t> rows;
  for (const auto& level : rows_) rows.push_back(level[static_cast<std::size_t>(batch)]);
  return rows;
}

// Those of a hop go into vertices of one level, so hop after hop they are in order.
void Superbatch::read_edges(std::int64_t batch, std::vector<BatchEdge>& edges,
                            AlignedVector<std::byte>& records) const {
  edges.clear();
  records.clear();
  Records read;
  const auto index = static_cast<std::uint64_t>(batch);
  for (const auto& hop : edges_) {
    hop->read(numbered_.begin(index), numbered_.last(index), read);
    for (const std::uint64_t key : read.keys) {
      edges.push_back({static_cast<std::uint32_t>(numbered_.second(key)),
                       static_cast<std::uint32_t>(numbered_.third(key))});
    }
    records.insert(records.end(), read.data.begin(), read.data.end());
  }
}

void Superbatch::drop_asked() {
  if (!asked_) return;
  chosen_written_ += asked_->file_bytes();
  chosen_read_ += asked_->read_bytes();
  asked_.reset();
}

namespace {

template <class Of>
std::uint64_t sum_of(const std::vector<std::unique_ptr<SortedRuns>>& lists, Of&& of) {
  std::uint64_t sum = 0;
  for (const auto& list : lists) sum += of(*list);
  return sum;
}

}  // namespace

std::uint64_t Superbatch::edges() const {
  return sum_of(edges_, [](const SortedRuns& list) { return list.size(); });
}

std::uint64_t Superbatch::edges_read_bound() const {
  return sum_of(edges_, [this](const SortedRuns& list) {
    std::uint64_t bytes = 0;
    for (std::int64_t batch = 0; batch < batches_; ++batch) {
      const auto index = static_cast<std::uint64_t>(batch);
      bytes += list.read_bound(numbered_.begin(index), numbered_.last(index));
    }
    return bytes;
  });
}

std::uint64_t Superbatch::list_bytes_written() const {
  const auto of = [](const SortedRuns& list) { return list.file_bytes(); };
  return chosen_written_ + sum_of(fresh_, of) + sum_of(edges_, of) +
         (vertices_ ? of(*vertices_) : 0);
}

std::uint64_t Superbatch::list_bytes_read() const {
  const auto of = [](const SortedRuns& list) { return list.read_bytes(); };
  return chosen_read_ + sum_of(fresh_, of) + sum_of(edges_, of) + (vertices_ ? of(*vertices_) : 0);
}

}  // namespace ooc
