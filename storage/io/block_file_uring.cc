#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "storage/base/errors.h"
#include "storage/base/wakeup_latency.h"
#include "storage/io/block_io_kinds.h"
#include "storage/io/block_transfer.h"
#include "storage/io/bytes_at_once.h"
#include "storage/io/direct_file.h"

namespace ooc {
namespace {

class Ring {
 public:
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (made_) io_uring_queue_exit(&ring_);
  }

  // 0 or an errno. The ring stays shut until its one thread enables it.
  int make(unsigned entries) {
    // The thread that submits also reaps: no signals to it, no locks. Kernels before 6.1 know no
    // such ring.
    constexpr unsigned kOneThread = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    int error = io_uring_queue_init(entries, &ring_, IORING_SETUP_R_DISABLED | kOneThread);
    if (error == -EINVAL) error = io_uring_queue_init(entries, &ring_, IORING_SETUP_R_DISABLED);
    made_ = error == 0;
    return -error;
  }

  io_uring* get() { return &ring_; }

 private:
  io_uring ring_{};
  bool made_ = false;
};

// One thread submits to the ring and reaps it. Others leave requests in `incoming_` and wake it
// through an eventfd that the ring reads.
//
//   submit() -> incoming_ -> waiting (by kind) -> the ring (at most depth_ of a kind, and
//   so many bytes at once) -> complete()
//                               ^------ cut short -----'
class UringBlockIo final : public BlockIo {
 public:
  UringBlockIo(const BlockIoOptions& options, std::unique_ptr<Ring> ring, FileDescriptor wake)
      : files_(options.refuse_direct),
        depth_(options.depth),
        largest_call_(options.largest_call),
        lanes_{Lane(options.bytes_at_once), Lane(options.bytes_at_once)},
        ring_(std::move(ring)),
        wake_(std::move(wake)),
        thread_([this] { run(); }) {}

  ~UringBlockIo() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_up();
    thread_.join();
  }

  std::string_view name() const override { return "io_uring"; }
  std::unique_ptr<BlockFile> open(const std::string& path) override { return files_.open(path); }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override {
    return files_.create_temporary(directory, bytes);
  }

  void submit(BlockRequest request) override {
    bool was_empty = false;
    {
      const std::lock_guard lock(mutex_);
      was_empty = incoming_.empty();
      incoming_.push_back(std::move(request));
    }
    // Otherwise whoever put the first one there wakes it; its own thread needs no waking.
    if (was_empty && std::this_thread::get_id() != thread_.get_id()) wake_up();
  }

 private:
  using Transfer = std::unique_ptr<BlockTransfer>;
  struct Lane {
    explicit Lane(std::size_t least_at_once) : at_once(least_at_once) {}
    std::deque<Transfer> waiting;
    BytesAtOnce at_once;
    unsigned in_ring = 0;
    std::size_t bytes_in_ring = 0;

    bool has_any() const { return in_ring > 0 || !waiting.empty(); }
    bool keeps_busy() const { return !waiting.empty() || at_once.fills(bytes_in_ring); }
  };

  static std::size_t lane_of(const BlockTransfer& transfer) {
    return transfer.request().kind == BlockRequest::Kind::kRead ? 0 : 1;
  }

  void wake_up() {
    const std::uint64_t one = 1;
    while (::write(wake_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
  }

  void run() {
    reduce_wakeup_latency();
    // io_uring_enable_rings(), which liburing 2.3 declares but doesn't export.
    OOC_CHECK(io_uring_register(static_cast<unsigned>(ring_->get()->ring_fd),
                                IORING_REGISTER_ENABLE_RINGS, nullptr, 0) == 0);
    read_wake();
    while (take_incoming()) {
      for (Lane& lane : lanes_) fill(lane);
      const int submitted = io_uring_submit_and_wait(ring_->get(), 1);
      // Out of memory or room in the kernel for the moment: what is in the ring goes first.
      OOC_CHECK(submitted >= 0 || submitted == -EINTR || submitted == -EAGAIN ||
                submitted == -EBUSY);
      reap();
    }
  }

  // False when everything is done and nothing more can come.
  bool take_incoming() {
    std::vector<BlockRequest> requests;
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      requests.swap(incoming_);
      stopping = stopping_;
    }
    for (BlockRequest& request : requests) {
      auto transfer = std::make_unique<BlockTransfer>(std::move(request), largest_call_);
      lanes_[lane_of(*transfer)].waiting.push_back(std::move(transfer));
    }
    return !stopping || std::any_of(lanes_.begin(), lanes_.end(),
                                    [](const Lane& lane) { return lane.has_any(); });
  }

  void fill(Lane& lane) {
    while (!lane.waiting.empty() && lane.in_ring < depth_ &&
           lane.bytes_in_ring < lane.at_once.bytes()) {
      io_uring_sqe* const entry = io_uring_get_sqe(ring_->get());
      if (entry == nullptr) return;
      BlockTransfer* const transfer = lane.waiting.front().release();
      lane.waiting.pop_front();
      ++lane.in_ring;
      lane.bytes_in_ring += transfer->bytes();
      prepare(entry, *transfer);
      io_uring_sqe_set_data(entry, transfer);
    }
  }

  void prepare(io_uring_sqe* entry, const BlockTransfer& transfer) {
    const int fd = static_cast<const DirectFile*>(transfer.request().file)->fd();
    const auto bytes = static_cast<unsigned>(transfer.bytes());
    if (transfer.request().kind == BlockRequest::Kind::kRead) {
      io_uring_prep_read(entry, fd, transfer.data(), bytes, transfer.offset());
    } else {
      io_uring_prep_write(entry, fd, transfer.data(), bytes, transfer.offset());
    }
  }

  void read_wake() {
    io_uring_sqe* const entry = io_uring_get_sqe(ring_->get());
    OOC_CHECK(entry != nullptr);  // its place is never given to a transfer
    io_uring_prep_read(entry, wake_.get(), &wake_count_, sizeof(wake_count_), 0);
    io_uring_sqe_set_data(entry, nullptr);
  }

  void reap() {
    bool woken = false;
    std::array<std::size_t, 2> moved{};
    std::array<bool, 2> busy{};
    for (std::size_t i = 0; i < lanes_.size(); ++i) busy[i] = lanes_[i].keeps_busy();
    io_uring_cqe* entry = nullptr;
    while (io_uring_peek_cqe(ring_->get(), &entry) == 0) {
      Transfer transfer(static_cast<BlockTransfer*>(io_uring_cqe_get_data(entry)));
      const int result = entry->res;
      io_uring_cqe_seen(ring_->get(), entry);
      if (transfer == nullptr) {
        woken = true;
      } else {
        moved[lane_of(*transfer)] += static_cast<std::size_t>(std::max(result, 0));
        finish_call(std::move(transfer), result);
      }
    }
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      Lane& lane = lanes_[i];
      if (moved[i] > 0) lane.at_once.moved(moved[i], busy[i] && lane.has_any(), now.count());
    }
    if (woken) read_wake();
  }

  void finish_call(Transfer transfer, int result) {
    Lane& lane = lanes_[lane_of(*transfer)];
    --lane.in_ring;
    lane.bytes_in_ring -= transfer->bytes();
    if (!transfer->advance(result)) {
      lane.waiting.push_front(std::move(transfer));
    } else {
      transfer->complete();
    }
  }

  DirectFiles files_;
  const unsigned depth_;
  const std::size_t largest_call_;
  std::array<Lane, 2> lanes_;  // the thread's own
  std::unique_ptr<Ring> ring_;
  FileDescriptor wake_;

  std::mutex mutex_;
  std::vector<BlockRequest> incoming_;
  bool stopping_ = false;

  std::uint64_t wake_count_ = 0;  // the thread's own

  std::thread thread_;
};

}  // namespace

std::unique_ptr<BlockIo> make_uring_block_io(const BlockIoOptions& options, int& error) {
  auto ring = std::make_unique<Ring>();
  error = options.refuse_uring != 0 ? options.refuse_uring : ring->make(2 * options.depth + 1);
  if (error != 0) return nullptr;
  FileDescriptor wake(::eventfd(0, EFD_CLOEXEC));
  if (wake.get() < 0) {
    error = errno;
    return nullptr;
  }
  return std::make_unique<UringBlockIo>(options, std::move(ring), std::move(wake));
}

}  // namespace ooc
