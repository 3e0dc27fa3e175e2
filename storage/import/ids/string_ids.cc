#include "storage/import/ids/string_ids.h"

#include <fmt/format.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "storage/base/checksum.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::size_t kFirstSlots = 1 << 12;
constexpr std::size_t kMostSampled = 1 << 16;
constexpr double kSampleMargin = 1.02;  // the estimate is off by 0.5 %, or so

std::uint64_t hash_of(std::string_view id) { return checksum64(std::as_bytes(std::span(id))); }

// Slots for so many ids: at most three of four are taken.
std::size_t slots_for(double ids) {
  return std::max(kFirstSlots, std::bit_ceil(static_cast<std::size_t>(ids * 4 / 3) + 1));
}

}  // namespace

// The ids whose hash ends in `level` zeros: every 2^level-th of the distinct ones.
struct StringIds::Sample {
  std::unordered_map<std::uint64_t, std::size_t> bytes;  // by hash
  int level = 0;

  // From the sample to all ids.
  double scale() const { return std::ldexp(kSampleMargin, level); }
  bool takes(std::uint64_t hash) const { return (hash & ((std::uint64_t{1} << level) - 1)) == 0; }
  void add(std::uint64_t hash, std::size_t id_bytes) {
    if (!takes(hash)) return;
    bytes.emplace(hash, id_bytes);
    while (bytes.size() > kMostSampled) {
      ++level;
      std::erase_if(bytes, [this](const auto& entry) { return !takes(entry.first); });
    }
  }
};

StringIds::StringIds(std::int64_t memory_bytes, std::string source)
    : memory_bytes_(memory_bytes), source_(std::move(source)) {}

// Slots, half as many more while they grow; place, order and rank of each id; blocks and the ends
// of them that are left free.
std::int64_t StringIds::memory_for(double ids, double text_bytes) {
  const double slots = static_cast<double>(slots_for(ids)) * sizeof(Slot) * 1.5;
  const double blocks = (text_bytes + 2 * ids) * 17 / 16 + 2 * kBlockBytes;
  return static_cast<std::int64_t>(slots + ids * 17 + blocks);
}

std::int64_t StringIds::memory_bytes() const {
  if (complete()) {
    return memory_for(static_cast<double>(size()), static_cast<double>(text_bytes_));
  }
  double text_bytes = 0;
  for (const auto& [hash, bytes] : sample_->bytes) text_bytes += static_cast<double>(bytes);
  return std::max(memory_bytes_ + 1,
                  memory_for(static_cast<double>(count()), text_bytes * sample_->scale()));
}

std::int64_t StringIds::count() const {
  if (complete()) return size();
  return static_cast<std::int64_t>(static_cast<double>(sample_->bytes.size()) * sample_->scale());
}

// By its number in the order of appearance.
std::string_view StringIds::text(std::uint32_t number) const {
  const std::uint64_t place = places_[number];
  const char* const at = blocks_[place / kBlockBytes].get() + place % kBlockBytes;
  std::uint16_t length = 0;
  std::memcpy(&length, at, sizeof(length));
  return {at + sizeof(length), length};
}

// By the number that slots hold.
std::string_view StringIds::numbered(std::uint32_t number) const {
  return text(finished_ ? order_[number] : number);
}

std::string_view StringIds::operator[](VertexId id) const {
  return text(order_[static_cast<std::size_t>(id)]);
}

// The slot of this id, or the empty one where it belongs.
std::size_t StringIds::slot_of(std::string_view id, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto fingerprint = static_cast<std::uint32_t>(hash >> 32);
  std::size_t at = hash & mask;
  while (slots_[at].number != kNone &&
         (slots_[at].fingerprint != fingerprint || numbered(slots_[at].number) != id)) {
    at = (at + 1) & mask;
  }
  return at;
}

void StringIds::add(std::string_view id) {
  OOC_CHECK(!id.empty() && id.size() <= std::size_t{kMaxIdBytes} && !finished_);
  const std::uint64_t hash = hash_of(id);
  if (sample_) return sample_->add(hash, id.size());
  if (slots_.empty()) slots_.assign(kFirstSlots, {0, kNone});
  std::size_t at = slot_of(id, hash);
  if (slots_[at].number == kNone) {
    if (memory_for(static_cast<double>(size() + 1),
                   static_cast<double>(text_bytes_) + static_cast<double>(id.size())) >
        memory_bytes_) {
      start_sample();
      return sample_->add(hash, id.size());
    }
    if (places_.size() == kNone) {
      throw DataError(fmt::format("more than {} ids", kNone), "the edges", "that is the most");
    }
    if (slots_for(static_cast<double>(size() + 1)) > slots_.size()) {
      grow();
      at = slot_of(id, hash);
    }
    slots_[at] = {static_cast<std::uint32_t>(hash >> 32),
                  static_cast<std::uint32_t>(places_.size())};
    append(id);
  }
  first_uses_ += slots_[at].number < 2;
  uses_of_first_ += slots_[at].number == 0;
}

void StringIds::append(std::string_view id) {
  const auto length = static_cast<std::uint16_t>(id.size());
  if (blocks_.empty() || kBlockBytes - block_end_ < sizeof(length) + id.size()) {
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlockBytes));
    block_end_ = 0;
  }
  char* const at = blocks_.back().get() + block_end_;
  std::memcpy(at, &length, sizeof(length));
  std::memcpy(at + sizeof(length), id.data(), id.size());
  places_.push_back((blocks_.size() - 1) * kBlockBytes + block_end_);
  block_end_ += sizeof(length) + id.size();
  text_bytes_ += length;
}

void StringIds::grow() {
  std::vector<Slot> before(2 * slots_.size(), {0, kNone});
  before.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.number == kNone) continue;
    std::size_t at = hash_of(text(slot.number)) & mask;
    while (slots_[at].number != kNone) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void StringIds::start_sample() {
  sample_ = std::make_shared<Sample>();
  for (std::uint32_t number = 0; number < places_.size(); ++number) {
    const std::string_view id = text(number);
    sample_->add(hash_of(id), id.size());
  }
  blocks_.clear();
  places_.clear();
  slots_ = {};
}

void StringIds::finish() {
  order_.resize(places_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  tbb::parallel_sort(order_.begin(), order_.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return text(a) < text(b); });
  std::vector<std::uint32_t> ranks(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) ranks[order_[i]] = static_cast<std::uint32_t>(i);
  for (Slot& slot : slots_) {
    if (slot.number != kNone) slot.number = ranks[slot.number];
  }
  finished_ = true;
}

std::optional<VertexId> StringIds::find(std::string_view id) const {
  OOC_CHECK(finished_);
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t number = slots_[slot_of(id, hash_of(id))].number;
  return number == kNone ? std::nullopt : std::optional<VertexId>(number);
}

}  // namespace ooc
