#include "engine/train/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/spec/random.h"
#include "storage/base/checksum.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr double kMomentum = 0.1;

void store(std::vector<std::byte>& bytes, DType real, std::size_t index, double value) {
  if (real == DType::kF32) {
    reinterpret_cast<float*>(bytes.data())[index] = static_cast<float>(value);
  } else {
    reinterpret_cast<double*>(bytes.data())[index] = value;
  }
}

double load(const std::vector<std::byte>& bytes, DType real, std::size_t index) {
  return real == DType::kF32 ? reinterpret_cast<const float*>(bytes.data())[index]
                             : reinterpret_cast<const double*>(bytes.data())[index];
}

}  // namespace

ParameterStore::ParameterStore(Backend& backend, DType real,
                               const std::vector<ModelParameter>& parameters, Mode mode)
    : backend_(backend), real_(real) {
  for (const ModelParameter& parameter : parameters) {
    Entry entry;
    entry.parameter = parameter;
    entry.value = backend.allocate(entry_bytes(entry));
    if (parameter.trainable && mode == Mode::kTrain) {
      entry.m = backend.allocate(entry_bytes(entry));
      entry.v = backend.allocate(entry_bytes(entry));
    }
    entries_.push_back(std::move(entry));
  }
}

std::size_t ParameterStore::entry_bytes(const Entry& entry) const {
  return static_cast<std::size_t>(entry.parameter.rows * entry.parameter.cols) * dtype_bytes(real_);
}

ParameterStore::Entry& ParameterStore::entry(const std::string& name) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.parameter.name == name; });
  OOC_CHECK(found != entries_.end());
  return *found;
}

void ParameterStore::set(const std::string& name, std::span<const double> values) {
  Entry& target = entry(name);
  std::vector<std::byte> bytes(entry_bytes(target));
  OOC_CHECK(bytes.size() == values.size() * dtype_bytes(real_));
  for (std::size_t i = 0; i < values.size(); ++i) store(bytes, real_, i, values[i]);
  to_device(bytes, *target.value);
}

void* ParameterStore::data(const std::string& name) { return entry(name).value->data(); }

void ParameterStore::initialise(std::uint64_t seed) {
  for (Entry& entry : entries_) {
    const ModelParameter& p = entry.parameter;
    const auto count = static_cast<std::size_t>(p.rows * p.cols);
    // Glorot and Bengio 2010, eq. 16.
    const double limit = std::sqrt(6.0 / static_cast<double>(p.rows + p.cols));
    const std::uint64_t key = mix64(mix64(seed) ^ checksum64(std::as_bytes(std::span(p.name))));
    std::vector<std::byte> values(entry_bytes(entry));
    for (std::size_t i = 0; i < count; ++i) {
      double value = p.initial.constant;
      if (p.initial.glorot) value = limit * (2 * uniform_double(key, i) - 1);
      store(values, real_, i, value);
    }
    to_device(values, *entry.value);
    if (!entry.m) continue;
    backend_.queue(QueueKind::kCompute).zero(entry.m->data(), entry.m->bytes());
    backend_.queue(QueueKind::kCompute).zero(entry.v->data(), entry.v->bytes());
  }
}

void ParameterStore::to_device(const std::vector<std::byte>& values, DeviceBuffer& buffer) {
  OOC_CHECK(values.size() == buffer.bytes());
  Queue& queue = backend_.queue(QueueKind::kCompute);
  queue.copy(buffer.data(), values.data(), values.size());
  queue.wait(queue.record());
}

std::vector<std::byte> ParameterStore::to_host(const Entry& entry,
                                               const DeviceBuffer& buffer) const {
  std::vector<std::byte> bytes(entry_bytes(entry));
  Queue& queue = backend_.queue(QueueKind::kCompute);
  queue.copy(bytes.data(), buffer.data(), bytes.size());
  queue.wait(queue.record());
  return bytes;
}

std::vector<ParameterValues> ParameterStore::capture() const {
  std::vector<ParameterValues> all;
  for (const Entry& entry : entries_) {
    ParameterValues values{entry.parameter.name,
                           entry.parameter.rows,
                           entry.parameter.cols,
                           to_host(entry, *entry.value),
                           {},
                           {}};
    if (entry.m) {
      values.m = to_host(entry, *entry.m);
      values.v = to_host(entry, *entry.v);
    }
    all.push_back(std::move(values));
  }
  return all;
}

void ParameterStore::restore(const std::vector<ParameterValues>& values, const std::string& where) {
  for (Entry& entry : entries_) {
    const ModelParameter& p = entry.parameter;
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const ParameterValues& v) { return v.name == p.name; });
    if (found == values.end()) {
      throw DataError(fmt::format("parameter {} is missing", p.name), where,
                      "use a checkpoint of the same model");
    }
    if (found->rows != p.rows || found->cols != p.cols) {
      throw DataError(fmt::format("parameter {} is {} x {}, the model's is {} x {}", p.name,
                                  found->rows, found->cols, p.rows, p.cols),
                      where, "use a checkpoint of the same model and a dataset of the same shape");
    }
    to_device(found->value, *entry.value);
    if (entry.m && !found->m.empty()) {
      to_device(found->m, *entry.m);
      to_device(found->v, *entry.v);
    }
  }
}

void ParameterStore::optimize(const std::string& name, const void* gradient, std::int64_t step,
                              const OptimizerOptions& options) {
  Entry& target = entry(name);
  OptimizerStep call;
  call.kind = options.kind;
  call.dtype = real_;
  call.count = target.parameter.rows * target.parameter.cols;
  call.parameter = target.value->data();
  call.gradient = gradient;
  call.m = target.m->data();
  call.v = target.v->data();
  call.step = step;
  call.lr = options.lr;
  call.weight_decay = options.weight_decay;
  call.momentum = options.momentum;
  backend_.optimize(call);
}

void ParameterStore::blend(const std::string& name, std::span<const double> batch) {
  Entry& target = entry(name);
  std::vector<std::byte> running = to_host(target, *target.value);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    store(running, real_, i, (1 - kMomentum) * load(running, real_, i) + kMomentum * batch[i]);
  }
  to_device(running, *target.value);
}

void ParameterStore::update_statistics(const BatchStatistics& statistics, const double* sums,
                                       std::int64_t vertices) {
  const auto cols = static_cast<std::size_t>(entry(statistics.mean).parameter.cols);
  const auto n = static_cast<double>(vertices);
  std::vector<double> mean(cols), variance(cols);
  for (std::size_t c = 0; c < cols; ++c) {
    mean[c] = sums[c] / n;
    variance[c] = std::max(0.0, sums[cols + c] / n - mean[c] * mean[c]) * n / std::max(1.0, n - 1);
  }
  blend(statistics.mean, mean);
  blend(statistics.variance, variance);
}

}  // namespace ooc
