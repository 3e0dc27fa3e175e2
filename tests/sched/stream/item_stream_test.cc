#include "sched/stream/item_stream.h"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ooc {
namespace {

void idle() {}

// Items of two reads, whose completions the test calls; `settled` of both by workers.
class TwoReads final : public ItemLoader {
 public:
  explicit TwoReads(Driver& driver) : driver_(driver) {}

  std::int64_t count() const override { return 2; }
  std::byte* place(std::int64_t) const override { return nullptr; }
  bool must_wait(std::int64_t) const override { return false; }
  void load(std::int64_t item, std::byte*, ComingItem& coming) override {
    for (int read = 0; read < 2; ++read) {
      reads[{item, read}] = coming.read([this, item, read] {
        const auto lock = driver_.lock();
        verified.push_back({item, read});
      });
    }
  }
  void arrived(std::int64_t item) override { arrivals.push_back(item); }
  bool complete(std::int64_t) const override { return true; }
  void released(std::int64_t) override {}

  using Read = std::pair<std::int64_t, int>;
  std::map<Read, BlockCompletion> reads;
  std::vector<Read> verified;
  std::vector<std::int64_t> arrivals;

 private:
  Driver& driver_;
};

}  // namespace

TEST_CASE("item stream: what has come is settled while the rest of its item is on its way") {
  Driver driver(1);
  Hazards hazards;
  std::vector<std::byte> memory(2);
  auto owned = std::make_unique<TwoReads>(driver);
  TwoReads& loader = *owned;
  ItemStream stream(driver, std::move(owned), Slots(memory, 2, hazards));
  const auto wait = [&](const std::function<bool()>& ready) {
    auto lock = driver.lock();
    return driver.wait(lock, WaitCause::kReads, idle, ready);
  };
  {
    const auto lock = driver.lock();
    CHECK(stream.advance());
    CHECK(stream.advance());
    CHECK(!stream.advance());
  }
  const std::vector<TwoReads::Read> order = {{1, 1}, {0, 0}, {1, 0}, {0, 1}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    loader.reads.at(order[i])(nullptr);
    CHECK(wait([&] { return driver.tasks() == 0; }));
    REQUIRE(loader.verified.size() == i + 1);
    CHECK(loader.verified.back() == order[i]);
    const auto lock = driver.lock();
    CHECK(stream.ready(1) == (i >= 2));
    CHECK(stream.ready(0) == (i >= 3));
  }
  CHECK(loader.arrivals == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("item stream: an item whose rows can't be settled ends the wait") {
  Driver driver(1);
  Hazards hazards;
  std::vector<std::byte> memory(2);

  class Damaged final : public ItemLoader {
   public:
    std::int64_t count() const override { return 1; }
    std::byte* place(std::int64_t) const override { return nullptr; }
    bool must_wait(std::int64_t) const override { return false; }
    void load(std::int64_t, std::byte*, ComingItem& coming) override {
      coming.verify_and_decode([] { throw std::runtime_error("damaged"); });
    }
    void arrived(std::int64_t) override { there = true; }
    bool complete(std::int64_t) const override { return true; }
    void released(std::int64_t) override {}
    bool there = false;
  };
  auto owned = std::make_unique<Damaged>();
  const Damaged& loader = *owned;
  ItemStream stream(driver, std::move(owned), Slots(memory, 2, hazards));
  auto lock = driver.lock();
  CHECK(stream.advance());
  CHECK_THROWS_WITH(driver.wait(lock, WaitCause::kReads, idle, [&] { return stream.ready(0); }),
                    "damaged");
  CHECK(!loader.there);
}

}  // namespace ooc
