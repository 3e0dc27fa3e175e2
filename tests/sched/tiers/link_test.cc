#include "sched/tiers/link.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "kernels/device/virtual_device.h"
#include "sched/tiers/staging.h"

namespace ooc {
namespace {

// Cannot copy.
class BrokenQueue final : public Queue {
 public:
  void copy(void*, const void*, std::size_t bytes) override {
    if (bytes == 1) throw std::runtime_error("cannot copy");
  }
  void zero(void*, std::size_t) override {}
  Ticket record() override { return {}; }
  void follow(Ticket) override {}
  void wait(Ticket) override { throw std::runtime_error("cannot wait"); }
};

class BrokenDevice final : public Backend {
 public:
  const std::string& name() const override { return base_->name(); }
  const ComputeShape& shape() const override { return base_->shape(); }
  bool host_accessible() const override { return false; }
  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return base_->allocate(bytes);
  }
  std::unique_ptr<PinnedBuffer> allocate_pinned(std::size_t bytes,
                                                std::string_view owner) override {
    return base_->allocate_pinned(bytes, owner);
  }
  std::int64_t memory_peak() const override { return base_->memory_peak(); }
  Queue& queue(QueueKind) override { return queue_; }
  void optimize(const OptimizerStep& step) override { base_->optimize(step); }
  void accumulate(DType dtype, std::int64_t count, void* to, const void* from) override {
    base_->accumulate(dtype, count, to, from);
  }

 private:
  std::unique_ptr<RowWork> make_row_work(const RowProgram& program) const override {
    return base_->row_work(program);
  }
  std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program) const override {
    return base_->edge_work(program);
  }

  std::unique_ptr<Backend> base_ = make_virtual_cpu_device("broken", 0);
  BrokenQueue queue_;
};

}  // namespace

TEST_CASE("link: completions come in order, when the bytes are there") {
  const auto device = make_virtual_cpu_device("cpu:0", 0);
  constexpr std::size_t kBytes = 256 << 10;
  std::vector<std::unique_ptr<DeviceBuffer>> there;
  std::vector<std::vector<std::byte>> host, back;
  for (int i = 0; i < 16; ++i) {
    there.push_back(device->allocate(kBytes));
    host.emplace_back(kBytes, static_cast<std::byte>(i + 1));
    back.emplace_back(kBytes);
  }
  std::vector<int> order, wrong;
  {
    BlockWait all;
    Link link(*device);
    for (int i = 0; i < 16; ++i) {
      const auto at = static_cast<std::size_t>(i);
      link.to_device(there[at]->data(), host[at].data(), kBytes,
                     [&, i, at, done = all.completion()](std::exception_ptr) {
                       order.push_back(i);
                       link.from_device(back[at].data(), there[at]->data(), kBytes,
                                        [&, i, at, done](std::exception_ptr error) {
                                          if (back[at] != host[at]) wrong.push_back(i);
                                          done(error);
                                        });
                     });
    }
    all.wait();
  }
  CHECK(wrong.empty());
  REQUIRE(order.size() == 16);
  for (int i = 0; i < 16; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("link: what is under way is completed before it goes") {
  const auto device = make_virtual_cpu_device("cpu:0", 0);
  const auto buffer = device->allocate(1 << 20);
  std::vector<std::byte> host(1 << 20);
  std::atomic<int> done{0};
  {
    Link link(*device);
    for (int i = 0; i < 8; ++i) {
      link.to_device(buffer->data(), host.data(), host.size(), [&](std::exception_ptr) { ++done; });
    }
  }
  CHECK(done == 8);
}

TEST_CASE("link: a copy that the device refuses, or fails, ends in its completion") {
  BrokenDevice device;
  std::byte data[2];
  Link link(device);
  for (const std::size_t bytes : {1, 2}) {
    BlockWait wait;
    link.to_device(data, data, bytes, wait.completion());
    CHECK_THROWS_WITH(wait.wait(), bytes == 1 ? "cannot copy" : "cannot wait");
  }
}

TEST_CASE("link: what needs no copy is completed, too") {
  const auto device = make_virtual_cpu_device("cpu:0", 0);
  Link link(*device, true);
  BlockWait wait;
  link.complete(wait.completion());
  CHECK_NOTHROW(wait.wait());
}

TEST_CASE("staging: slots are handed out in the order of requests, each to one at a time") {
  std::vector<std::byte> memory(3 * 4096);
  Staging staging(memory.data(), 2, 4096);
  std::vector<std::pair<int, std::byte*>> got;
  for (int i = 0; i < 5; ++i) {
    staging.acquire(0, [&got, i](std::byte* slot) { got.emplace_back(i, slot); });
  }
  REQUIRE(got.size() == 2);
  CHECK(got[0].second == memory.data());
  CHECK(got[1].second == memory.data() + 4096);
  CHECK(!staging.idle());
  staging.release(0, got[1].second);
  REQUIRE(got.size() == 3);
  CHECK(got[2] == std::pair<int, std::byte*>(2, got[1].second));
  staging.release(0, got[0].second);
  staging.release(0, got[2].second);
  REQUIRE(got.size() == 5);
  CHECK(got[3] == std::pair<int, std::byte*>(3, got[0].second));
  CHECK(got[4] == std::pair<int, std::byte*>(4, got[2].second));
  staging.release(0, got[3].second);
  CHECK(!staging.idle());
  staging.release(0, got[4].second);
  CHECK(staging.idle());
}

TEST_CASE("staging: a device has its share, and what is given back goes round") {
  std::vector<std::byte> memory(4 * 4096);
  Staging staging(memory.data(), 4, 4096, 2);
  std::vector<std::pair<std::size_t, std::byte*>> got;
  const auto acquire = [&](std::size_t device) {
    staging.acquire(device, [&got, device](std::byte* slot) { got.emplace_back(device, slot); });
  };
  for (int i = 0; i < 5; ++i) acquire(0);
  CHECK(got.size() == 3);  // half of the other's share is kept for it
  for (int i = 0; i < 3; ++i) acquire(1);
  REQUIRE(got.size() == 4);
  CHECK(got[3].first == 1);
  staging.release(got[0].first, got[0].second);
  REQUIRE(got.size() == 5);
  CHECK(got[4].first == 1);  // which lacks one, though the other asked before
  for (std::size_t i = 1; i < got.size(); ++i) staging.release(got[i].first, got[i].second);
  CHECK(got.size() == 8);
  CHECK(staging.idle());
}

}  // namespace ooc
