// Slots of the host's memory through which passes what has no place there, of several devices: each
// has a share of them. Beyond it a device takes what is free, but for half of the others' shares,
// so that none waits for the links of others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace ooc {

// Many threads; nobody waits. Its lock is taken under the driver's, and nothing is called under it.
class Staging {
 public:
  // `count` slots of `slot_bytes`, beside each other; the memory outlives it.
  Staging(std::byte* memory, std::int64_t count, std::int64_t slot_bytes, std::size_t devices = 1);

  // Calls `use` with a slot: now, or later from the thread that gives one back, in the order of a
  // device's requests; devices take turns. The slot is the device's until release(). `use` must
  // only hand on, and must not throw.
  void acquire(std::size_t device, std::function<void(std::byte* slot)> use);
  void release(std::size_t device, std::byte* slot);

  std::int64_t slot_bytes() const { return slot_bytes_; }
  bool idle() const;  // whether every slot is free

 private:
  std::int64_t slot_bytes_;
  std::size_t count_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;
  struct Device {
    std::size_t slots = 0;  // that it has
    std::deque<std::function<void(std::byte*)>> waiting;
  };
  bool may_take(std::size_t device) const;

  std::vector<Device> devices_;
  std::size_t share_;
  std::size_t turn_ = 0;
};

}  // namespace ooc
