#include "engine/machine/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "engine/machine/gpus.h"
#include "engine/machine/host_memory.h"
#include "engine/machine/machine_rates.h"
#include "kernels/device/cpu_backend.h"
#include "kernels/device/virtual_device.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc {
namespace {

// The nearest directory above a path, or it itself, that is there.
std::string existing(FileSystem& files, std::string path) {
  while (!files.is_directory(path)) path = parent_path(path);
  return path;
}

// Where links are held to rates, plans go by them.
void hold_links(RunBudget& budget) {
  MachineRates& rates = budget.plan.rates;
  const auto hold = [&](double to_device, double from_device) {
    rates.to_device = std::min(rates.to_device, to_device);
    rates.from_device = std::min(rates.from_device, from_device);
  };
  if (budget.topology) {
    const std::int64_t loaders = budget.plan.ring_loaders;
    hold(budget.topology->to_device(loaders > 0 ? loaders : budget.plan.devices),
         budget.topology->from_device());
  } else if (budget.link_rate != 0) {
    hold(static_cast<double>(budget.link_rate), static_cast<double>(budget.link_rate));
  }
}

const GpuModel* planned_gpu(const MachineShare& share) {
  for (const GpuModel& gpu : gpu_models()) {
    if (gpu.word == share.plan_device) return &gpu;
  }
  return nullptr;
}

// How the devices are linked, and which of them read what they pass on.
void add_links(const MachineShare& share, RunBudget& budget) {
  if (!share.topology.empty()) {
    if (share.link_rate != "auto") {
      throw UsageError("--link-rate beside --topology", "command line",
                       "the file has the rates of links: leave one of them out");
    }
    if (!budget.plan.device) {
      throw UsageError("--topology without devices of their own memory", "command line",
                       "give --devices cpu:N or cuda");
    }
    budget.topology = std::make_shared<const Topology>(
        Topology::read(posix_file_system(), share.topology, budget.plan.devices));
  }
  const bool several_gpus = is_gpu(share.devices) && budget.plan.devices > 1;
  if (!budget.topology && several_gpus && planned_gpu(share) == nullptr) {
    const std::string found = topology_of_gpus(gpus_of(share.devices));
    if (!found.empty()) {
      budget.topology = std::make_shared<const Topology>(
          Topology::parse(found, "this machine", budget.plan.devices));
    }
  }
  budget.plan.ring_loaders = 0;
  if (share.ring == "off" || budget.plan.devices == 1) return;
  budget.plan.ring_loaders = budget.topology ? budget.topology->loaders() : 1;
}

}  // namespace

namespace {

// Of cpu:N; 0: it isn't that.
std::int64_t virtual_devices(std::string_view devices) {
  constexpr std::string_view kPrefix = "cpu:";
  constexpr std::int64_t kMost = 64;
  if (!devices.starts_with(kPrefix)) return 0;
  devices.remove_prefix(kPrefix.size());
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(devices.data(), devices.data() + devices.size(), count);
  const bool whole = error == std::errc() && end == devices.data() + devices.size();
  return whole && count >= 1 && count <= kMost ? count : 0;
}

}  // namespace

bool is_device(const std::string& devices) {
  return devices == "auto" || devices == "cpu" || virtual_devices(devices) > 0 || is_gpu(devices);
}

namespace {

// The device's part of a budget. Its context takes memory of the host's, too.
bool add_gpu(const MachineShare& share, RunBudget& budget) {
  const std::int64_t given =
      share.device_memory == "auto" ? 0 : parse_byte_size(share.device_memory).value();
  if (const GpuModel* gpu = planned_gpu(share)) {
    set_gpu_budget(*gpu, given, budget);
    const bool listed = share.devices != "cuda" && is_gpu(share.devices);
    if (listed) budget.plan.devices = std::ssize(gpus_of(share.devices));
    return true;
  }
  if (!is_gpu(share.devices)) return false;
  const std::vector<int> gpus = gpus_of(share.devices);
  set_gpu_budget(gpus, given, budget);
  return true;
}

// The rates of a device's own.
void add_gpu_rates(const MachineShare& share, MachineRates& rates) {
  if (const GpuModel* gpu = planned_gpu(share)) return set_gpu_rates(*gpu, rates);
  if (is_gpu(share.devices)) {
    set_gpu_rates(cuda_module().open(gpus_of(share.devices).front()), rates);
  }
  // Each has its part of the CPU's threads.
  const auto devices =
      static_cast<double>(std::max<std::int64_t>(1, virtual_devices(share.devices)));
  for (double* rate : {&rates.gather, &rates.elementwise, &rates.dropout, &rates.packing,
                       &rates.multiply_adds, &rates.row_sums}) {
    *rate /= devices;
  }
}

}  // namespace

namespace {

RunBudget memory_of(const MachineShare& share) {
  RunBudget budget;
  const bool gpu = add_gpu(share, budget);
  budget.host_bytes = host_memory_of(share.host_memory);
  budget.resident_bytes = held_host_bytes();
  budget.plan.partition = share.partition;
  if (gpu) return budget;
  const std::int64_t devices = virtual_devices(share.devices);
  budget.plan.device = devices > 0;
  if (!budget.plan.device) return budget;
  budget.plan.devices = devices;
  budget.device_bytes = share.device_memory == "auto"
                            ? host_memory_for_us() / 4 / devices
                            : parse_byte_size(share.device_memory).value();
  if (share.link_rate != "auto") budget.link_rate = parse_byte_size(share.link_rate).value();
  if (share.host_memory == "auto") {
    budget.host_bytes =
        std::max<std::int64_t>(budget.host_bytes - devices * budget.device_bytes, 1);
  }
  return budget;
}

}  // namespace

RunBudget budget_of(const MachineShare& share) {
  RunBudget budget = memory_of(share);
  add_links(share, budget);
  return budget;
}

RunBudget measured_budget(BlockIo& io, const MachineShare& share, const std::string& scratch,
                          const std::string& rates_file) {
  constexpr std::int64_t kMeasuring = 512 << 20;
  FileSystem& files = posix_file_system();
  RunBudget budget = budget_of(share);
  budget.plan.workers = workers_of(budget.plan.devices);
  if (!rates_file.empty()) {
    budget.plan.rates = read_rates(files, rates_file);
    add_gpu_rates(share, budget.plan.rates);
    if (!budget.plan.compute.runs_inline) read_device_rates(files, rates_file, budget.plan.rates);
    hold_links(budget);
    return budget;
  }
  const std::int64_t left = std::max<std::int64_t>(budget.host_bytes - budget.resident_bytes, 0);
  const RateOptions rates{existing(files, scratch), workers_of(1), std::min(kMeasuring, left / 2)};
  budget.plan.rates = machine_rates(files, io, rates, rates_cache());
  add_gpu_rates(share, budget.plan.rates);
  if (is_gpu(share.devices) && planned_gpu(share) == nullptr) {
    measure_gpu_link(gpus_of(share.devices).front(), rates_cache(), budget.plan.rates);
  }
  hold_links(budget);
  return budget;
}

void warn_of_kernels(const BlasCore& core) {
  const char* told = std::getenv("OPENBLAS_CORETYPE");
  if (told != nullptr && *told != 0 && core.told.empty()) {
    spdlog::warn("OpenBLAS has no kernels of this name, OPENBLAS_CORETYPE={}; unset it", told);
  }
  if (!core.is_below_processor()) return;
  std::string remedy = "unset OPENBLAS_CORETYPE";
  if (core.told.empty()) remedy = "build against a newer OpenBLAS";
  if (!core.wrong.empty()) {
    remedy = fmt::format("with its {} kernels OpenBLAS multiplies wrong; update it",
                         fmt::join(core.wrong, ", "));
  }
  spdlog::warn("products by {} are slower than need be, this processor has {}; {}",
               description_of(core), name_of(core.processor_has), remedy);
}

void log_kernels(const BlasCore& core) {
  warn_of_kernels(core);
  spdlog::info("products by {}{}", description_of(core),
               core.told.empty() ? "" : ", as OPENBLAS_CORETYPE says");
}

std::int64_t workers_of(std::int64_t devices) {
  return std::max<std::int64_t>(1, tbb::this_task_arena::max_concurrency() / devices);
}

Devices::Devices(const std::string& devices, const RunBudget& budget) {
  const std::int64_t count = budget.plan.devices;
  if (is_gpu(devices)) {
    const std::vector<int> gpus = gpus_of(devices);
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const auto at = budget.topology ? static_cast<std::size_t>(budget.topology->ring()[i]) : i;
      backends_.push_back(cuda_module().make_backend(gpus[at], budget.device_bytes));
    }
    return;
  }
  for (std::int64_t i = 0; i < count && virtual_devices(devices) > 0; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t number = budget.topology ? budget.topology->ring()[at] : i;
    backends_.push_back(make_virtual_cpu_device(
        count == 1 ? devices : fmt::format("device {} of {}", number, devices), budget.device_bytes,
        budget.topology ? budget.topology->links_of(at) : links_at(budget.link_rate)));
  }
  if (backends_.empty()) backends_.push_back(make_cpu_backend());
}

std::vector<Backend*> Devices::others() const {
  std::vector<Backend*> others;
  for (std::size_t i = 1; i < backends_.size(); ++i) others.push_back(backends_[i].get());
  return others;
}

}  // namespace ooc
