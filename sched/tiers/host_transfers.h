// Items on their way between a device and storage, through the host's memory: I/O chunks of tensors
// and edge chunks alike. An item has a place of its own there, where it stays, or takes a slot.
//
//   to the device: storage -> host memory -> verified and decoded, by a worker -> device
//   from it:       device -> host memory -> storage, where the plan stores it
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sched/tiers/link.h"
#include "sched/tiers/residency.h"
#include "sched/tiers/staging.h"
#include "sched/workers/driver.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

struct HostItem {
  std::size_t bytes = 0;  // unpadded
  std::int64_t chunk = 0, slice = 0;
  // Storage, where it is read from and where it is written; null: it isn't there.
  const ChunkStore* from = nullptr;
  TensorStore* to = nullptr;
};

// Where an item stays in the host's memory, and whether it is there; without data: nowhere.
struct HostPlace {
  std::byte* data = nullptr;
  Presence* state = nullptr;
};

// A device that asks, and the workers that verify and decode what it asked for.
struct HostClient {
  Driver& driver;
  Link& link;
  std::size_t device = 0;
};

// Many threads; with or without a driver's lock. Its own lock is taken under the drivers', and
// nothing is called under it. When the completions of all transfers have been called, every slot is
// free again, and no place is kComing.
class HostTransfers {
 public:
  explicit HostTransfers(Staging& staging) : staging_(staging) {}

  // From its place, once it is there: whoever asks first brings it from storage. The client
  // outlives the transfer.
  void to_device(HostClient& client, const HostItem& item, const HostPlace& place,
                 std::byte* device, BlockCompletion done);
  // `done` comes when it is in its place, and in storage too if it can be written there. Nobody
  // asks for it meanwhile.
  void from_device(HostClient& client, const HostItem& item, const HostPlace& place,
                   const std::byte* device, BlockCompletion done);

  // Between host memory and storage, since the last call.
  std::int64_t take_bytes_read() { return bytes_read_.exchange(0); }
  std::int64_t take_bytes_written() { return bytes_written_.exchange(0); }

 private:
  struct Waiting {
    Link* link = nullptr;
    std::byte* device = nullptr;
    std::size_t bytes = 0;
    BlockCompletion done;
  };
  void load(HostClient& client, const HostItem& item, std::byte* data, BlockCompletion then);
  void store(const HostItem& item, std::byte* data, BlockCompletion then);
  void notify_waiters(const HostPlace& place, std::exception_ptr error);

  Staging& staging_;
  std::mutex mutex_;  // of the places' states, and of:
  std::unordered_map<const std::byte*, std::vector<Waiting>> waiting_;  // by place
  std::atomic<std::int64_t> bytes_read_{0}, bytes_written_{0};
};

}  // namespace ooc
