#include "sched/devices/device_ring.h"

#include <utility>

#include "storage/base/errors.h"

namespace ooc {

void DeviceRing::offer(std::int64_t device, const RingItem& item, const std::byte* data,
                       BlockCompletion passed_on) {
  const std::lock_guard lock(mutex_);
  if (given_up_) return links_[at(device)]->complete(std::move(passed_on));
  auto wanted = wanted_[at(device)].extract(item);
  Offered offered{data, std::move(passed_on)};
  if (wanted) return copy((device + 1) % shape_.devices, offered, wanted.mapped());
  OOC_CHECK(offered_[at(device)].emplace(item, std::move(offered)).second);
}

void DeviceRing::take(std::int64_t device, const RingItem& item, std::byte* to, std::size_t bytes,
                      BlockCompletion done) {
  const std::int64_t from = shape_.before(device);
  const std::lock_guard lock(mutex_);
  if (given_up_) return links_[at(device)]->complete(std::move(done));
  auto offered = offered_[at(from)].extract(item);
  Wanted wanted{to, bytes, std::move(done)};
  if (offered) return copy(device, offered.mapped(), wanted);
  OOC_CHECK(wanted_[at(from)].emplace(item, std::move(wanted)).second);
}

void DeviceRing::copy(std::int64_t to, const Offered& offered, const Wanted& wanted) {
  links_[at(to)]->from_peer(
      wanted.to, offered.data, wanted.bytes,
      [passed_on = offered.passed_on, done = wanted.done](const std::exception_ptr& error) {
        passed_on(nullptr);
        done(error);
      });
}

void DeviceRing::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  for (std::int64_t device = 0; device < shape_.devices; ++device) {
    for (auto& [item, offered] : offered_[at(device)]) {
      links_[at(device)]->complete(std::move(offered.passed_on));
    }
    for (auto& [item, wanted] : wanted_[at(device)]) {
      links_[at((device + 1) % shape_.devices)]->complete(std::move(wanted.done));
    }
    offered_[at(device)].clear();
    wanted_[at(device)].clear();
  }
}

void DeviceRing::begin_pass() {
  const std::lock_guard lock(mutex_);
  given_up_ = false;
  for (const auto& offered : offered_) OOC_CHECK(offered.empty());
  for (const auto& wanted : wanted_) OOC_CHECK(wanted.empty());
}

}  // namespace ooc
