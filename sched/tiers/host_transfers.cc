#include "sched/tiers/host_transfers.h"

#include <utility>

#include "storage/base/errors.h"

namespace ooc {

void HostTransfers::to_device(HostClient& client, const HostItem& item, const HostPlace& place,
                              std::byte* device, BlockCompletion done) {
  if (place.data == nullptr) {
    OOC_CHECK(io_aligned(item.bytes) <= static_cast<std::uint64_t>(staging_.slot_bytes()));
    staging_.acquire(
        client.device, [this, &client, item, device, done = std::move(done)](std::byte* slot) {
          const auto end = [this, &client, slot, done](std::exception_ptr failed) {
            staging_.release(client.device, slot);
            done(std::move(failed));
          };
          load(client, item, slot,
               [&client, slot, device, bytes = item.bytes, end](std::exception_ptr error) {
                 if (error) return end(std::move(error));
                 client.link.to_device(device, slot, bytes, end);
               });
        });
    return;
  }
  Presence found;
  {
    const std::lock_guard lock(mutex_);
    found = *place.state;
    if (found != Presence::kThere) {
      *place.state = Presence::kComing;
      waiting_[place.data].push_back({&client.link, device, item.bytes, std::move(done)});
    }
  }
  if (found == Presence::kThere) {
    client.link.to_device(device, place.data, item.bytes, std::move(done));
  } else if (found == Presence::kAbsent) {
    load(client, item, place.data,
         [this, place](std::exception_ptr error) { notify_waiters(place, std::move(error)); });
  }
}

void HostTransfers::from_device(HostClient& client, const HostItem& item, const HostPlace& place,
                                const std::byte* device, BlockCompletion done) {
  if (place.data == nullptr) {
    OOC_CHECK(item.to != nullptr &&
              io_aligned(item.bytes) <= static_cast<std::uint64_t>(staging_.slot_bytes()));
    staging_.acquire(client.device,
                     [this, &client, item, device, done = std::move(done)](std::byte* slot) {
                       const auto end = [this, &client, slot, done](std::exception_ptr error) {
                         staging_.release(client.device, slot);
                         done(std::move(error));
                       };
                       client.link.from_device(slot, device, item.bytes,
                                               [this, item, slot, end](std::exception_ptr error) {
                                                 if (error) return end(std::move(error));
                                                 store(item, slot, end);
                                               });
                     });
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    *place.state = Presence::kComing;
  }
  client.link.from_device(place.data, device, item.bytes,
                          [this, item, place, done = std::move(done)](std::exception_ptr error) {
                            notify_waiters(place, error);
                            if (error || item.to == nullptr) return done(std::move(error));
                            store(item, place.data, done);
                          });
}

void HostTransfers::load(HostClient& client, const HostItem& item, std::byte* data,
                         BlockCompletion then) {
  OOC_CHECK(item.from != nullptr);
  bytes_read_ += static_cast<std::int64_t>(item.bytes);
  if (!item.from->needs_decoding(item.chunk, item.slice)) {
    return item.from->read(item.chunk, item.slice, data, std::move(then));
  }
  const auto decode = [item, data, then] {
    std::exception_ptr wrong;
    try {
      item.from->verify_and_decode(item.chunk, item.slice, data);
    } catch (...) {
      wrong = std::current_exception();
    }
    then(std::move(wrong));
  };
  item.from->read(item.chunk, item.slice, data, [&client, decode, then](std::exception_ptr error) {
    if (error) return then(std::move(error));
    client.driver.run(decode, {}, Turn::kNext);
  });
}

void HostTransfers::store(const HostItem& item, std::byte* data, BlockCompletion then) {
  bytes_written_ += static_cast<std::int64_t>(item.bytes);
  item.to->write(item.chunk, item.slice, data, 0, std::move(then));
}

// What came to its place is handed on to those who wait for it.
void HostTransfers::notify_waiters(const HostPlace& place, std::exception_ptr error) {
  std::vector<Waiting> waiting;
  {
    const std::lock_guard lock(mutex_);
    *place.state = error ? Presence::kAbsent : Presence::kThere;
    if (auto found = waiting_.extract(place.data)) waiting = std::move(found.mapped());
  }
  for (Waiting& one : waiting) {
    if (error) {
      one.done(error);
    } else {
      one.link->to_device(one.device, place.data, one.bytes, std::move(one.done));
    }
  }
}

}  // namespace ooc
