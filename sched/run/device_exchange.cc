#include "sched/run/device_exchange.h"

#include "storage/base/errors.h"

namespace ooc {
namespace {

std::int64_t bytes_of(const Value& value) {
  return value.rows * value.cols * static_cast<std::int64_t>(dtype_bytes(value.dtype));
}

void finish(Backend& backend, QueueKind kind) {
  Queue& queue = backend.queue(kind);
  queue.wait(queue.record());
}

}  // namespace

void DeviceExchange::bind_parameter(int section, ValueId value, std::byte* data) {
  const SectionState& first = devices_.front()->section(section);
  OOC_CHECK(first.value(value).kind == ValueKind::kParameter);
  std::vector<std::unique_ptr<DeviceBuffer>>& copies = parameters_[data];
  for (std::size_t i = copies.size() + 1; i < devices_.size(); ++i) {
    copies.push_back(
        devices_[i]->backend().allocate(static_cast<std::size_t>(bytes_of(first.value(value)))));
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    devices_[i]->section(section).parameters[static_cast<std::size_t>(value)] =
        i == 0 ? data : copies[i - 1]->data();
  }
}

void DeviceExchange::send_parameters(int section) {
  const std::vector<std::byte*>& parameters = devices_.front()->section(section).parameters;
  for (std::size_t id = 0; id < parameters.size() && devices_.size() > 1; ++id) {
    if (parameters[id] == nullptr) continue;
    const Value& value = devices_.front()->section(section).value(static_cast<ValueId>(id));
    finish(devices_.front()->backend(), QueueKind::kCompute);
    for (std::size_t i = 1; i < devices_.size(); ++i) {
      copy(*devices_.front(), parameters[id], *devices_[i],
           devices_[i]->section(section).parameters[id], bytes_of(value));
    }
  }
}

void DeviceExchange::copy(const DeviceRun& from, const std::byte* data, const DeviceRun& to,
                          std::byte* copied, std::int64_t bytes) {
  const auto count = static_cast<std::size_t>(bytes);
  bounce_.resize(std::max(bounce_.size(), count));
  from.backend().queue(QueueKind::kOut).copy(bounce_.data(), data, count);
  finish(from.backend(), QueueKind::kOut);
  to.backend().queue(QueueKind::kIn).copy(copied, bounce_.data(), count);
  finish(to.backend(), QueueKind::kIn);
}

void DeviceExchange::add_sums(int section, std::size_t pass) {
  if (devices_.size() == 1) return;
  const BoundPass& bound = devices_.front()->section(section).passes[pass];
  for (const ValueId id : bound.pass->reductions) add_sum(section, id);
  for (const ValueId id : bound.edges.reductions) add_sum(section, id);
}

void DeviceExchange::add_sum(int section, ValueId id) {
  const DeviceRun& first = *devices_.front();
  ReductionTree& sum = *first.section(section).reductions.at(id);
  for (std::size_t i = 1; i < devices_.size(); ++i) {
    const DeviceRun& device = *devices_[i];
    ReductionTree& own = *device.section(section).reductions.at(id);
    finish(device.backend(), QueueKind::kCompute);
    for (const ReductionTree::Root& root : own.take_roots()) {
      std::byte* const place = sum.take_place();
      copy(device, root.partial, first, place, sum.partial_bytes());
      own.give_back(root.partial);
      sum.add({root.node, place});
      finish(first.backend(), QueueKind::kCompute);  // what it gave back is taken again
    }
  }
  for (std::size_t i = 1; i < devices_.size(); ++i) {
    ReductionTree& own = *devices_[i]->section(section).reductions.at(id);
    std::byte* const place = own.take_place();
    copy(first, sum.result(), *devices_[i], place, sum.partial_bytes());
    own.set_result(place);
  }
}

}  // namespace ooc
