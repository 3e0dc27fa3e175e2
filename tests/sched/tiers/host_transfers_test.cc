#include "sched/tiers/host_transfers.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "kernels/device/virtual_device.h"
#include "tests/support/aligned_buffer.h"

namespace ooc::test {
namespace {

using State = Presence;

constexpr std::size_t kBytes = 8000;

// Storage whose reads and writes end when the test says so.
class Storage final : public TensorStore {
 public:
  HostItem item() { return {kBytes, 0, 0, this, this}; }
  DType dtype() const override { return DType::kF32; }
  const TensorLayout& layout() const override { return layout_; }
  std::int64_t io_chunk_blocks() const override { return 1; }
  void read(std::int64_t, std::int64_t, std::byte* data, BlockCompletion done) const override {
    add(reads_, data, std::move(done));
  }
  void write(std::int64_t, std::int64_t, std::byte* data, std::int64_t,
             BlockCompletion done) override {
    add(writes_, data, std::move(done));
  }
  bool needs_decoding(std::int64_t, std::int64_t) const override { return refused_ != 0; }
  void verify_and_decode(std::int64_t, std::int64_t, std::byte* data) const override {
    if (*data == static_cast<std::byte>(refused_)) throw std::runtime_error("checksum");
  }
  // What is read is gone over from now on, and may not begin with this.
  void refuse(int value) { refused_ = value; }

  std::size_t reads() {
    const std::lock_guard lock(mutex_);
    return reads_.size();
  }
  // The oldest one, now or when it comes: every byte becomes `value`.
  void end_read(int value, std::exception_ptr error = nullptr) {
    const Request request = take(reads_);
    std::fill_n(request.data, kBytes, static_cast<std::byte>(value));
    request.done(std::move(error));
  }
  // Likewise; its first byte.
  int end_write(std::exception_ptr error = nullptr) {
    const Request request = take(writes_);
    const int value = static_cast<int>(*request.data);
    request.done(std::move(error));
    return value;
  }

 private:
  struct Request {
    std::byte* data;
    BlockCompletion done;
  };
  void add(std::deque<Request>& requests, std::byte* data, BlockCompletion done) const {
    const std::lock_guard lock(mutex_);
    requests.push_back({data, std::move(done)});
    changed_.notify_all();
  }
  Request take(std::deque<Request>& requests) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !requests.empty(); });
    Request request = std::move(requests.front());
    requests.pop_front();
    return request;
  }

  TensorLayout layout_;
  int refused_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::deque<Request> reads_, writes_;
};

struct Fixture {
  std::unique_ptr<Backend> backend = make_virtual_cpu_device("cpu:0", 0);
  std::unique_ptr<DeviceBuffer> device = backend->allocate(4 * 8192);
  AlignedBuffer host{3 * 8192};
  Driver driver{2};
  Link link{*backend};
  Staging staging{host.data() + 8192, 2, 8192};
  HostTransfers transfers{staging};
  HostClient client{driver, link};
  Storage storage;
  State state = State::kAbsent;
  HostPlace place{host.data(), &state};

  std::byte* at(int i) const { return device->data() + i * 8192; }
  // The first and the last byte of a device's item, where they are the same; else -1.
  int value(int i) {
    std::vector<std::byte> rows(kBytes);
    Queue& queue = backend->queue(QueueKind::kOut);
    queue.copy(rows.data(), at(i), kBytes);
    queue.wait(queue.record());
    return rows.front() == rows.back() ? static_cast<int>(rows.front()) : -1;
  }
};

std::exception_ptr an_error() { return std::make_exception_ptr(std::runtime_error("EIO")); }

}  // namespace

TEST_CASE("host_transfers: what is coming is read once and goes to all who asked for it") {
  Fixture f;
  BlockWait wait;
  for (int i = 0; i < 3; ++i) {
    f.transfers.to_device(f.client, f.storage.item(), f.place, f.at(i), wait.completion());
    CHECK(f.state == State::kComing);
  }
  REQUIRE(f.storage.reads() == 1);
  f.storage.end_read(7);
  wait.wait();
  CHECK(f.state == State::kThere);
  f.transfers.to_device(f.client, f.storage.item(), f.place, f.at(3), wait.completion());
  CHECK(f.storage.reads() == 0);
  wait.wait();
  for (int i = 0; i < 4; ++i) CHECK(f.value(i) == 7);
  CHECK(f.transfers.take_bytes_read() == kBytes);
  CHECK(f.transfers.take_bytes_read() == 0);
}

TEST_CASE("host_transfers: an error reaches all who asked, and the next one asks again") {
  Fixture f;
  BlockWait first, second;
  f.transfers.to_device(f.client, f.storage.item(), f.place, f.at(0), first.completion());
  f.transfers.to_device(f.client, f.storage.item(), f.place, f.at(1), second.completion());
  f.storage.end_read(1, an_error());
  CHECK_THROWS_WITH(first.wait(), "EIO");
  CHECK_THROWS_WITH(second.wait(), "EIO");
  CHECK(f.state == State::kAbsent);

  f.storage.refuse(2);
  for (const bool placed : {true, false}) {
    const HostPlace place = placed ? f.place : HostPlace{};
    f.transfers.to_device(f.client, f.storage.item(), place, f.at(0), first.completion());
    f.storage.end_read(2);
    CHECK_THROWS_WITH(first.wait(), "checksum");
    CHECK(f.value(0) == 0);  // it never got there
    CHECK(f.state == State::kAbsent);
    CHECK(f.staging.idle());
  }
  f.transfers.to_device(f.client, f.storage.item(), f.place, f.at(0), first.completion());
  f.storage.end_read(3);
  first.wait();
  CHECK(f.value(0) == 3);
}

TEST_CASE("host_transfers: without a place or a free slot a request waits, and no slot is lost") {
  Fixture f;
  BlockWait all, failing;
  for (int i = 0; i < 4; ++i) {
    f.transfers.to_device(f.client, f.storage.item(), {}, f.at(i),
                          i == 1 ? failing.completion() : all.completion());
  }
  CHECK(f.storage.reads() == 2);  // two slots
  f.storage.end_read(10);
  f.storage.end_read(11, an_error());
  CHECK_THROWS_WITH(failing.wait(), "EIO");
  f.storage.end_read(12);
  CHECK(!f.staging.idle());
  f.storage.end_read(13);
  all.wait();
  CHECK(f.staging.idle());
  CHECK(f.value(0) == 10);
  CHECK(f.value(1) == 0);
  CHECK(f.value(2) + f.value(3) == 12 + 13);
}

TEST_CASE(
    "host_transfers: what leaves the device is in its place, and in storage, when it is done") {
  Fixture f;
  for (const bool placed : {true, false}) {
    f.state = State::kAbsent;
    const HostPlace place = placed ? f.place : HostPlace{};
    std::atomic<bool> done{false};
    BlockWait wait;
    f.transfers.from_device(f.client, f.storage.item(), place, f.at(0),
                            [&, end = wait.completion()](std::exception_ptr error) {
                              done = true;
                              end(std::move(error));
                            });
    CHECK(!done);
    CHECK(f.storage.end_write() == 0);
    wait.wait();
    CHECK(done);
    CHECK(f.transfers.take_bytes_written() == kBytes);
    CHECK(f.state == (placed ? State::kThere : State::kAbsent));
    CHECK(f.staging.idle());

    f.transfers.from_device(f.client, f.storage.item(), place, f.at(0), wait.completion());
    f.storage.end_write(an_error());
    CHECK_THROWS_WITH(wait.wait(), "EIO");
    CHECK(f.transfers.take_bytes_written() == kBytes);
    CHECK(f.staging.idle());
  }
  HostItem kept = f.storage.item();  // not in storage
  kept.to = nullptr;
  std::fill_n(f.host.data(), kBytes, std::byte{9});
  BlockWait wait;
  f.transfers.from_device(f.client, kept, f.place, f.at(0), wait.completion());
  wait.wait();
  CHECK(is_zero(f.host.first(kBytes)));
  CHECK(f.transfers.take_bytes_written() == 0);
}

}  // namespace ooc::test
