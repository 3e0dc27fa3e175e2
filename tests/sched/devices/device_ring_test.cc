// The ring of devices in thousands of orders: whatever is done first, every device gets every item,
// and nobody waits for ever.
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "sched/devices/ring_loader.h"
#include "sched/plan/io_chunks.h"
#include "tests/support/aligned_buffer.h"

namespace ooc::test {
namespace {

constexpr std::int64_t kItemBytes = 4096;

// What is under way anywhere: each is done in whatever order the test says.
using UnderWay = std::deque<std::function<void()>>;

// A tensor of one page an item, that says which it is.
class Numbers final : public TensorStore {
 public:
  Numbers(std::int64_t items, UnderWay& under_way)
      : layout_{items * 1024, 1, 1024}, under_way_(under_way) {}
  DType dtype() const override { return DType::kF32; }
  const TensorLayout& layout() const override { return layout_; }
  std::int64_t io_chunk_blocks() const override { return 1; }
  void read(std::int64_t io_chunk, std::int64_t, std::byte* data,
            BlockCompletion done) const override {
    ++reads;
    under_way_.push_back([io_chunk, data, done = std::move(done)] {
      *reinterpret_cast<std::int64_t*>(data) = io_chunk;
      done(nullptr);
    });
  }
  bool needs_decoding(std::int64_t, std::int64_t) const override { return false; }
  void verify_and_decode(std::int64_t, std::int64_t, std::byte*) const override {}
  void write(std::int64_t, std::int64_t, std::byte*, std::int64_t, BlockCompletion) override {}

  mutable std::int64_t reads = 0;

 private:
  TensorLayout layout_;
  UnderWay& under_way_;
};

class LaterLink final : public PeerLink {
 public:
  explicit LaterLink(UnderWay& under_way) : under_way_(under_way) {}
  void from_peer(std::byte* device, const std::byte* peer, std::size_t bytes,
                 BlockCompletion done) override {
    under_way_.push_back([device, peer, bytes, done = std::move(done)] {
      std::copy_n(peer, bytes, device);
      done(nullptr);
    });
  }
  void complete(BlockCompletion done) override {
    under_way_.push_back([done = std::move(done)] { done(nullptr); });
  }

 private:
  UnderWay& under_way_;
};

struct Schedule {
  RingShape ring;
  std::int64_t items = 0;   // of a sweep
  std::int64_t sweeps = 0;  // of the device that has most
  std::int64_t slots = 0, window = 0;
};

// One device: takes windows of items in order, and frees them when they are folded.
class RingDevice {
 public:
  RingDevice(const Schedule& schedule, std::int64_t index, std::int64_t own_sweeps, Numbers& store,
             DeviceRing& ring)
      : schedule_(schedule),
        memory_(static_cast<std::size_t>(schedule.slots * kItemBytes)),
        own_sweeps_(own_sweeps),
        order_(ring_spans(schedule.ring, index, schedule.items, 1)) {
    tensor_.layout = store.layout();
    TensorAccess access{&tensor_, 0, &store, nullptr, 0, &moved_, &leaving_, &hazards_};
    access.in_ranges = false;
    RowsItems items{1, order_};
    for (std::int64_t sweep = 0; sweep < schedule.sweeps; ++sweep) {
      items.add({0, schedule.items, 0, 1});
    }
    stream_ = std::make_unique<ItemStream>(
        driver_, std::make_unique<RingLoader>(access, items, ring, index, 0, 1),
        Slots({memory_.data(), static_cast<std::size_t>(schedule.slots * kItemBytes)},
              schedule.slots, hazards_));
  }

  bool advance() {
    const auto lock = driver_.lock();
    bool any = false;
    while (stream_->advance()) any = true;
    return any;
  }
  // The next window, if it is there. Windows end with a sweep.
  bool fold() {
    const auto lock = driver_.lock();
    if (next_ == schedule_.sweeps * schedule_.items) return false;
    const std::int64_t sweep = next_ / schedule_.items;
    const std::int64_t end = std::min(next_ + schedule_.window, (sweep + 1) * schedule_.items);
    if (sweep >= own_sweeps_) {  // passed on alone
      stream_->hold(next_++, 0);
      return true;
    }
    for (std::int64_t item = next_; item < end; ++item) {
      if (!stream_->ready(item)) return false;
    }
    for (; next_ < end; ++next_) {
      const auto number = *reinterpret_cast<std::int64_t*>(stream_->data(next_));
      CHECK(number == order_[static_cast<std::size_t>(next_ % schedule_.items)]);
      stream_->hold(next_, 1);
      stream_->release(next_);
    }
    return true;
  }
  bool is_done() const { return next_ == schedule_.sweeps * schedule_.items && stream_->is_done(); }

 private:
  const Schedule& schedule_;
  Driver driver_{1};
  AlignedBuffer memory_;
  std::int64_t own_sweeps_, next_ = 0;
  std::vector<std::int64_t> order_;
  PlannedTensor tensor_;
  MovedBytes moved_;
  PendingWrites leaving_;
  Hazards hazards_;
  std::unique_ptr<ItemStream> stream_;
};

// In an order that the seed says. False: nothing is under way, and something is left to do.
bool runs_to_its_end(const Schedule& schedule, std::uint64_t seed) {
  std::minstd_rand random(static_cast<unsigned>(seed + 1));
  UnderWay under_way;
  Numbers store(schedule.items, under_way);
  std::vector<LaterLink> links(static_cast<std::size_t>(schedule.ring.devices),
                               LaterLink(under_way));
  std::vector<PeerLink*> pointers;
  for (LaterLink& link : links) pointers.push_back(&link);
  DeviceRing ring(schedule.ring, pointers);
  std::vector<std::unique_ptr<RingDevice>> devices;
  for (std::int64_t i = 0; i < schedule.ring.devices; ++i) {
    const std::int64_t own =
        i == 0 ? schedule.sweeps : 1 + static_cast<std::int64_t>(random() % schedule.sweeps);
    devices.push_back(std::make_unique<RingDevice>(schedule, i, own, store, ring));
  }
  const auto all_done = [&] {
    return std::all_of(devices.begin(), devices.end(),
                       [](const auto& device) { return device->is_done(); });
  };
  const auto step = [&](RingDevice& device, bool folds) {
    return folds ? device.fold() : device.advance();
  };
  while (!all_done()) {
    bool any = false;
    if (!under_way.empty() && random() % 2 == 0) {
      const auto at = static_cast<std::ptrdiff_t>(random() % under_way.size());
      const std::function<void()> one = std::move(under_way[static_cast<std::size_t>(at)]);
      under_way.erase(under_way.begin() + at);
      one();
      continue;
    }
    const std::size_t first = random() % devices.size();
    const bool folds = random() % 2 == 0;
    for (std::size_t i = 0; i < 2 * devices.size() && !any; ++i) {
      any = step(*devices[(first + i) % devices.size()], folds != (i >= devices.size()));
    }
    if (!any && under_way.empty()) {
      ring.give_up();
      while (!under_way.empty()) {
        const std::function<void()> one = std::move(under_way.front());
        under_way.pop_front();
        one();
      }
      return false;
    }
  }
  CHECK(store.reads == schedule.sweeps * schedule.items);
  return true;
}

constexpr RingShape kShapes[] = {{2, 1}, {2, 2}, {3, 1}, {4, 1}, {4, 2}, {4, 4},
                                 {5, 1}, {6, 2}, {6, 3}, {8, 1}, {8, 2}, {8, 4}};

}  // namespace

TEST_CASE("device ring: whatever is done first, with the fewest slots, it comes to its end") {
#if defined(OOC_SANITIZED) || defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kSchedules = 100;
#else
  constexpr std::uint64_t kSchedules = 10'000;
#endif
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    Schedule schedule{.ring = kShapes[seed % std::size(kShapes)]};
    schedule.items = 1 + static_cast<std::int64_t>(seed / 12 % 23);
    schedule.sweeps = 1 + static_cast<std::int64_t>(seed / 7 % 3);
    schedule.window = 1 + static_cast<std::int64_t>(seed / 5 % 4);
    schedule.slots = std::max<std::int64_t>(2, schedule.window);
    INFO(schedule.ring.devices << " devices, " << schedule.ring.loaders << " loaders, "
                               << schedule.items << " items, windows of " << schedule.window
                               << ", seed " << seed);
    REQUIRE(runs_to_its_end(schedule, seed));
  }
}

TEST_CASE("device ring: fewer slots than a window, or one among several loaders, stand still") {
  const Schedule narrow{.ring = {4, 1}, .items = 8, .sweeps = 1, .slots = 2, .window = 3};
  std::int64_t stood = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) stood += runs_to_its_end(narrow, seed) ? 0 : 1;
  CHECK(stood == 20);
  const Schedule single{.ring = {4, 2}, .items = 16, .sweeps = 1, .slots = 1, .window = 1};
  stood = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) stood += runs_to_its_end(single, seed) ? 0 : 1;
  CHECK(stood > 0);
}

}  // namespace ooc::test
