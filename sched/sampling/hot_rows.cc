#include "sched/sampling/hot_rows.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc {

HotRows::HotRows(std::int64_t vertices, std::size_t record_bytes, std::int64_t bytes)
    : vertices_(vertices),
      record_bytes_(record_bytes),
      most_rows_(std::min(vertices, bytes / static_cast<std::int64_t>(record_bytes))),
      hot_(static_cast<std::size_t>(ceil_div(vertices, kWordBits))),
      here_(static_cast<std::size_t>(ceil_div(most_rows_, kWordBits))),
      rows_(static_cast<std::size_t>(most_rows_) * record_bytes, "hot rows") {}

std::int64_t HotRows::table_bytes(std::int64_t vertices) {
  const std::int64_t words = ceil_div(vertices, kWordBits);
  return 2 * words * static_cast<std::int64_t>(sizeof(std::uint64_t)) +
         ceil_div(words, kRankWords) * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

bool HotRows::is_set(const Bits& bits, std::int64_t at) {
  const std::atomic_ref word(
      const_cast<std::uint64_t&>(bits[static_cast<std::size_t>(at / kWordBits)]));
  return (word.load(std::memory_order_relaxed) >> (at % kWordBits) & 1) != 0;
}

void HotRows::set(Bits& bits, std::int64_t at) {
  const std::atomic_ref word(bits[static_cast<std::size_t>(at / kWordBits)]);
  word.fetch_or(std::uint64_t{1} << (at % kWordBits), std::memory_order_relaxed);
}

void HotRows::finish_choice(bool fills) {
  std::int64_t count = 0;
  for (const std::uint64_t word : hot_) count += std::popcount(word);
  for (std::int64_t vertex = 0; fills && vertex < vertices_ && count < most_rows_; ++vertex) {
    if (is_hot(vertex)) continue;
    choose(vertex);
    ++count;
  }
  OOC_CHECK(count <= most_rows_);
  std::vector<std::uint32_t> ranks;
  ranks.reserve((hot_.size() + kRankWords - 1) / kRankWords);
  count = 0;
  for (std::size_t i = 0; i < hot_.size(); ++i) {
    if (i % kRankWords == 0) ranks.push_back(static_cast<std::uint32_t>(count));
    count += std::popcount(hot_[i]);
  }
  ranks_ = std::move(ranks);
}

void HotRows::forget_choice() { std::fill(hot_.begin(), hot_.end(), 0); }

std::int64_t HotRows::index(std::int64_t vertex) const {
  const auto word = static_cast<std::size_t>(vertex / kWordBits);
  std::size_t i = word / kRankWords * kRankWords;
  std::int64_t rank = ranks_[word / kRankWords];
  for (; i < word; ++i) rank += std::popcount(hot_[i]);
  const std::uint64_t before = (std::uint64_t{1} << (vertex % kWordBits)) - 1;
  return rank + std::popcount(hot_[word] & before);
}

}  // namespace ooc
