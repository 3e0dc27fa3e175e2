#include "sched/sampling/row_packer.h"

#include <algorithm>
#include <utility>

namespace ooc {
namespace {

constexpr std::byte kNoData{};             // of a word
constexpr std::size_t kLine = 64;          // of a cache
constexpr std::ptrdiff_t kWordsAhead = 4;  // of a row that is copied

// visit(chunk, stretches in it), of every I/O chunk of a store that is needed.
template <class Visit>
void for_each_chunk(const TensorStore& store, const RowCounts& counts, Visit&& visit) {
  const std::int64_t rows = RowChunkLoader::chunk_rows(store);
  std::int64_t chunk = -1, uses = 0;
  for (const RowStretch& stretch : counts.stretches) {
    if (!stretch.is_read) continue;
    if (uses > 0 && stretch.first / rows != chunk) visit(chunk, std::exchange(uses, 0));
    chunk = stretch.first / rows;
    ++uses;
  }
  if (uses > 0) visit(chunk, uses);
}

}  // namespace

RowPacker::RowPacker(Driver& driver, const RowRequests& requests, const RowRecord& record,
                     const RowCounts& counts, const RowTargets& targets, std::int64_t slots,
                     std::atomic<std::int64_t>& bytes_read)
    : driver_(driver),
      requests_(requests),
      record_(record),
      counts_(counts),
      targets_(targets),
      stretches_(static_cast<std::size_t>(stretches_at_once(driver.workers()))) {
  for (const RowInput& input : record.inputs()) open(input, slots, bytes_read);
}

void RowPacker::open(const RowInput& of, std::int64_t slots,
                     std::atomic<std::int64_t>& bytes_read) {
  std::vector<std::int64_t> chunks, uses;
  for_each_chunk(*of.store, counts_, [&](std::int64_t chunk, std::int64_t stretches) {
    chunks.push_back(chunk);
    uses.push_back(stretches);
  });
  const auto count = std::min(slots, static_cast<std::int64_t>(chunks.size()));
  HostBuffer memory(static_cast<std::size_t>(count) * RowChunkLoader::slot_bytes(*of.store),
                    "inputs of mini-batches");
  auto loader = std::make_unique<RowChunkLoader>(*of.store, std::move(chunks), bytes_read);
  RowChunkLoader* const of_stream = loader.get();
  auto stream = std::make_unique<ItemStream>(
      driver_, std::move(loader), Slots({memory.data(), memory.bytes()}, count, hazards_));
  inputs_.push_back({std::move(uses), -1, -1, RowChunkLoader::chunk_rows(*of.store),
                     std::move(memory), of_stream, std::move(stream)});
}

std::int64_t RowPacker::input_bytes(const RowRecord& record, const RowCounts& counts) {
  std::int64_t bytes = 0;
  for (const RowInput& input : record.inputs()) {
    for_each_chunk(*input.store, counts, [&](std::int64_t chunk, std::int64_t) {
      bytes += RowChunkLoader::payload_bytes(*input.store, chunk);
    });
  }
  return bytes;
}

bool RowPacker::run(const std::function<void(double share)>& on_progress) {
  try {
    if (pack(on_progress)) return true;
  } catch (...) {
    driver_.drain();
    throw;
  }
  driver_.drain();
  return false;
}

bool RowPacker::pack(const std::function<void(double share)>& on_progress) {
  auto lock = driver_.lock();
  const auto begin_and_read = [this] { advance(); };
  const auto may_begin_one = [this] { return may_begin(); };
  while (committed_ < counts_.stretches.size()) {
    hold_items(counts_.stretches[committed_]);
    const bool goes_on = driver_.wait(
        lock, WaitCause::kReads, begin_and_read, [this] { return may_commit(); }, may_begin_one);
    if (!goes_on) return false;
    commit();
    if (on_progress) {
      on_progress(static_cast<double>(committed_) / static_cast<double>(counts_.stretches.size()));
    }
  }
  return driver_.wait(lock, WaitCause::kWorkers, begin_and_read,
                      [this] { return driver_.tasks() == 0 && driver_.transfers() == 0; });
}

// A chunk an input at a time: what is needed together comes together.
void RowPacker::advance() {
  for (bool more = true; more;) {
    more = false;
    for (const Input& input : inputs_) more |= input.stream->advance();
  }
  while (may_begin()) begin();
}

bool RowPacker::may_begin() const {
  return begun_ < counts_.stretches.size() &&
         stretches_[begun_ % stretches_.size()].range == nullptr;
}

void RowPacker::begin() {
  Stretch& stretch = stretches_[begun_ % stretches_.size()];
  stretch.range = &counts_.stretches[begun_++];
  driver_.run([this, &stretch] { count(stretch); }, [&stretch] { stretch.counted = true; });
}

void RowPacker::hold_items(const RowStretch& range) {
  if (!range.is_read) return;
  for (Input& input : inputs_) {
    const std::int64_t chunk = range.first / input.chunk_rows;
    if (chunk == input.chunk) continue;
    input.chunk = chunk;
    ++input.item;
    input.stream->hold(input.item, input.uses[static_cast<std::size_t>(input.item)]);
  }
}

bool RowPacker::may_commit() const {
  if (committed_ == begun_) return false;
  const Stretch& stretch = stretches_[committed_ % stretches_.size()];
  if (!stretch.counted) return false;
  const bool there = !stretch.range->is_read ||
                     std::all_of(inputs_.begin(), inputs_.end(), [](const Input& input) {
                       return input.stream->ready(input.item);
                     });
  return there && targets_.regions.has_room(stretch.rows);
}

void RowPacker::commit() {
  Stretch& stretch = stretches_[committed_++ % stretches_.size()];
  for (std::size_t batch = 0; batch < stretch.rows.size(); ++batch) {
    if (stretch.rows[batch] == 0) continue;
    stretch.first[batch] =
        targets_.regions.reserve(static_cast<std::int64_t>(batch), stretch.rows[batch]);
  }
  stretch.next = stretch.first;
  stretch.items.clear();
  stretch.sources.clear();
  if (stretch.range->is_read) point_to_rows(stretch);
  driver_.run([this, &stretch] { copy(stretch); }, [this, &stretch] { done(stretch); });
}

void RowPacker::point_to_rows(Stretch& stretch) {
  for (const Input& input : inputs_) stretch.items.push_back(input.item);
  for (const RowStrip& strip : record_.strips()) {
    const Input& input = inputs_[strip.input];
    const std::byte* const chunk =
        input.loader->rows(input.item, strip.slice, input.stream->data(input.item));
    const auto row = static_cast<std::size_t>(stretch.range->first % input.chunk_rows);
    stretch.sources.push_back(
        {chunk + row * strip.stride, strip.stride, strip.bytes, strip.offset, strip.padding});
  }
}

void RowPacker::count(Stretch& stretch) const {
  requests_.read(stretch.range->first, stretch.range->end, stretch.words);
  stretch.rows.assign(requests_.batch_rows.size(), 0);
  stretch.first.assign(requests_.batch_rows.size(), 0);
  requests_.for_each_vertex(stretch.words.keys, [&](std::int64_t vertex, auto words) {
    if (targets_.hot.is_hot(vertex)) return;
    for (const std::uint64_t word : words) ++stretch.rows[requests_.fields.second(word)];
  });
}

void RowPacker::copy(Stretch& stretch) const {
  const std::size_t worker = driver_.worker();
  stretch.record.resize(record_.bytes());
  const std::int64_t first = stretch.range->first;
  if (stretch.range->is_read) {
    targets_.hot.bring(first, stretch.range->end, [&](std::int64_t vertex, std::byte* to) {
      gather(stretch, vertex - first, to);
    });
  }
  requests_.for_each_vertex(stretch.words.keys, [&](std::int64_t vertex, auto words) {
    prefetch_row(stretch, words.data());
    copy_vertex(stretch, worker, vertex, words);
  });
  for (std::size_t batch = 0; batch < stretch.first.size(); ++batch) {
    const std::uint32_t rows = stretch.next[batch] - stretch.first[batch];
    if (rows == 0) continue;
    targets_.regions.written(driver_, static_cast<std::int64_t>(batch), stretch.first[batch], rows);
  }
}

// Where a row of the stretch goes that is copied soon, unless it is hot.
void RowPacker::prefetch_row(const Stretch& stretch, const std::uint64_t* copied) const {
  const std::uint64_t* const end = stretch.words.keys.data() + stretch.words.size();
  if (end - copied <= kWordsAhead) return;
  const std::uint64_t batch = requests_.fields.second(copied[kWordsAhead]);
  if (stretch.rows[batch] == 0) return;
  const std::byte* const row =
      targets_.regions.row(static_cast<std::int64_t>(batch), stretch.next[batch]);
  if (row == nullptr) return;
  for (std::size_t line = 0; line < record_.bytes(); line += kLine) {
    __builtin_prefetch(row + line, 1);
  }
}

void RowPacker::copy_vertex(Stretch& stretch, std::size_t worker, std::int64_t vertex,
                            std::span<const std::uint64_t> words) const {
  const std::int64_t row = vertex - stretch.range->first;
  const KeyFields& from = requests_.fields;
  const auto add = [&](std::uint64_t word, std::uint64_t place) {
    targets_.places.add(
        worker, targets_.place_fields.key(from.second(word), from.third(word), place), &kNoData);
  };
  if (targets_.hot.is_hot(vertex)) {
    const std::int64_t index = targets_.hot.index(vertex);
    for (const std::uint64_t word : words) add(word, 2 * static_cast<std::uint64_t>(index) + 1);
    return;
  }
  RowRegions& regions = targets_.regions;
  const auto batch_of = [&](std::uint64_t word) {
    return static_cast<std::int64_t>(from.second(word));
  };
  const auto index_of = [&](std::uint64_t word) {
    --stretch.rows[from.second(word)];
    return stretch.next[from.second(word)]++;
  };
  const std::uint32_t only = words.size() == 1 ? index_of(words[0]) : 0;
  std::byte* const place = words.size() == 1 ? regions.row(batch_of(words[0]), only) : nullptr;
  if (place != nullptr) {
    gather(stretch, row, place);
    return add(words[0], 2 * std::uint64_t{only});
  }
  gather(stretch, row, stretch.record.data());
  for (const std::uint64_t word : words) {
    const std::uint32_t index = words.size() == 1 ? only : index_of(word);
    regions.write(batch_of(word), index, stretch.record.data());
    add(word, 2 * std::uint64_t{index});
  }
}

void RowPacker::gather(const Stretch& stretch, std::int64_t row, std::byte* to) const {
  for (const Source& source : stretch.sources) {
    copy_row_bytes(to + source.offset, source.row + static_cast<std::size_t>(row) * source.stride,
                   source.bytes);
    std::memset(to + source.offset + source.bytes, 0, source.padding);
  }
}

void RowPacker::done(Stretch& stretch) {
  for (std::size_t i = 0; i < stretch.items.size(); ++i) {
    inputs_[i].stream->release(stretch.items[i]);
  }
  stretch.counted = false;
  stretch.range = nullptr;
}

}  // namespace ooc
