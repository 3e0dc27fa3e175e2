#include "engine/machine/gpus.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>

#include "engine/machine/machine_rates.h"
#include "engine/machine/machine_topology.h"
#include "kernels/device/cuda_backend.h"
#include "sched/plan/passes/edge_binding.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr const char* kOnTheCpu = "give --devices cpu";

std::string module_path() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : (program.parent_path() / "libooc_cuda.so").string();
}

CudaModule* open_module() {
  const std::string path = module_path();
  if (!std::filesystem::exists(path)) return nullptr;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw DeviceError(fmt::format("it can't be opened: {}", dlerror()), path,
                      fmt::format("install ooc again, or {}", kOnTheCpu));
  }
  const auto key = reinterpret_cast<CudaModuleKey>(dlsym(library, kCudaModuleKey));
  const auto entry = reinterpret_cast<CudaModuleEntry>(dlsym(library, kCudaModule));
  if (key == nullptr || entry == nullptr || std::string_view(key()) != OOC_MODULE_KEY) {
    throw DeviceError("it belongs to another version of ooc", path,
                      fmt::format("install ooc again, or {}", kOnTheCpu));
  }
  return entry();
}

// The module takes some MiB of memory: nobody without a driver gives them.
bool finds_driver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

// Of what its maker says, as far as kernels come to it.
constexpr double kOfBandwidth = 0.8, kOfLink = 0.8, kOfMultiplyAdds = 0.3;

void set_rates(double bandwidth, double multiply_adds, double link, MachineRates& rates) {
  rates.gather = rates.elementwise = kOfBandwidth * bandwidth;
  rates.dropout = kOfBandwidth * bandwidth / 8;  // an element is read and written
  rates.multiply_adds = rates.row_sums = kOfMultiplyAdds * multiply_adds;
  rates.to_device = rates.from_device = kOfLink * link;
}

}  // namespace

CudaModule* find_cuda_module() {
  static CudaModule* const module = open_module();
  return module;
}

CudaModule& cuda_module() {
  CudaModule* const module = find_cuda_module();
  if (module != nullptr) return *module;
  throw DeviceError("this ooc was built without CUDA: libooc_cuda.so is not beside the program",
                    "--devices",
                    fmt::format("build it where a CUDA toolkit 13 is, or {}", kOnTheCpu));
}

namespace {

constexpr std::string_view kGpus = "cuda";

// The numbers of cuda:0,2; none: it isn't such a list.
std::vector<int> numbers_of(std::string_view devices) {
  std::vector<int> numbers;
  if (!devices.starts_with(kGpus)) return {};
  devices.remove_prefix(kGpus.size());
  char before = ':';
  while (!devices.empty()) {
    if (devices.front() != before) return {};
    int index = -1;
    const char* const last = devices.data() + devices.size();
    const auto [end, error] = std::from_chars(devices.data() + 1, last, index);
    if (error != std::errc() || index < 0) return {};
    numbers.push_back(index);
    devices.remove_prefix(static_cast<std::size_t>(end - devices.data()));
    before = ',';
  }
  return numbers;
}

}  // namespace

bool is_gpu(std::string_view devices) { return devices == kGpus || !numbers_of(devices).empty(); }

std::vector<int> gpus_of(std::string_view devices) {
  std::vector<int> gpus = numbers_of(devices);
  if (devices != kGpus) return gpus;
  const int count = std::max(1, cuda_module().count());  // of none the first one's error
  for (int index = 0; index < count; ++index) gpus.push_back(index);
  return gpus;
}

std::vector<std::string> gpus_of_auto() {
  std::vector<std::string> gpus;
  try {
    if (!finds_driver()) return gpus;
    CudaModule* const module = find_cuda_module();
    if (module == nullptr || !module->has_driver()) return gpus;
    const int count = module->count();
    for (int index = 0; index < count; ++index) gpus.push_back(fmt::format("cuda:{}", index));
  } catch (const DeviceError& error) {
    spdlog::warn("computing on the CPU: {}", error.what());
  }
  return gpus;
}

std::string name_of_gpu(const std::string& devices) {
  std::string names;
  for (const int gpu : gpus_of(devices)) {
    names += (names.empty() ? "" : ", ") + cuda_module().open(gpu).name;
  }
  return names;
}

std::string missing_on_gpu(const std::vector<const Program*>& programs) {
  const CudaModule& module = cuda_module();
  for (const Program* program : programs) {
    for (const Stage& stage : program->stages) {
      for (const RowStep& step : stage.steps) {
        if (!module.has_kernel(step.op, program->real)) return step.op;
      }
      if (!stage.propagation) continue;
      const EdgeProgram edges = bind_edges(*program, *stage.propagation, 1, 0).program;
      if (!module.has_kernel(edges)) return stage.name;
    }
  }
  return {};
}

// PCIe 5 and 4 of 16 lanes.
const std::vector<GpuModel>& gpu_models() {
  static const std::vector<GpuModel> models{{"h100", 80 * kGiB, 3.35e12, 33.5e12, 63e9, 450e9},
                                            {"h200", 141 * kGiB, 4.8e12, 33.5e12, 63e9, 450e9},
                                            {"a100", 80 * kGiB, 2.04e12, 9.75e12, 31.5e9, 300e9},
                                            {"l4", 24 * kGiB, 0.3e12, 15.1e12, 31.5e9, 0}};
  return models;
}

void set_gpu_rates(const GpuModel& gpu, MachineRates& rates) {
  set_rates(gpu.bandwidth, gpu.multiply_adds, gpu.link, rates);
}

namespace {

// What it says of its memory; the rest by a word of its name, or by its memory.
GpuModel model_of(const GpuFacts& gpu) {
  constexpr double kMultiplyAddsOfByte = 10, kLink = 31.5e9, kPeers = 50e9;
  std::string words(gpu.name);
  for (char& letter : words) {
    const auto byte = static_cast<unsigned char>(letter);
    letter = std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : ' ';
  }
  GpuModel known{"",    gpu.total_bytes, gpu.bandwidth, kMultiplyAddsOfByte * gpu.bandwidth,
                 kLink, kPeers};
  for (const GpuModel& model : gpu_models()) {
    if ((' ' + words + ' ').find(fmt::format(" {} ", model.word)) != std::string::npos) {
      known = model;
    }
  }
  if (gpu.bandwidth > 0) known.bandwidth = gpu.bandwidth;
  return known;
}

}  // namespace

void set_gpu_rates(const GpuFacts& gpu, MachineRates& rates) {
  const GpuModel model = model_of(gpu);
  if (model.bandwidth > 0) set_gpu_rates(model, rates);
}

void measure_gpu_link(int index, const std::string& cache, MachineRates& rates) {
  CudaModule& module = cuda_module();
  const std::string link = fmt::format("{} {}", module.open(index).name, module.pci_address(index));
  measure_link(
      posix_file_system(), link, [&] { return module.make_backend(index, 0); }, cache, rates);
}

std::string topology_of_gpus(const std::vector<int>& gpus) {
  CudaModule& module = cuda_module();
  std::vector<GpuPlace> places;
  for (const int gpu : gpus) {
    GpuPlace place{module.pci_address(gpu), {}};
    const double rate = kOfLink * model_of(module.open(gpu)).peers;
    for (const int other : gpus) place.peers.push_back(module.has_link(gpu, other) ? rate : 0);
    places.push_back(std::move(place));
  }
  return machine_topology(places);
}

namespace {

// A little stays free: the driver takes memory in pages of its own.
void set_budget(const GpuFacts& gpu, std::int64_t given, RunBudget& budget) {
  const std::int64_t free = gpu.free_bytes - gpu.free_bytes / 32;
  budget.plan.device = true;
  budget.plan.compute = kCudaShape;
  budget.device_resident_bytes = kCudaRingBytes;
  budget.device_bytes = free;
  if (given == 0) return;
  budget.device_resident_bytes += gpu.context_bytes;
  budget.device_bytes = given;
  if (given <= free + gpu.context_bytes) return;
  throw BudgetError(fmt::format("{} has {} free of {}", gpu.name, format_byte_size(gpu.free_bytes),
                                format_byte_size(gpu.total_bytes)),
                    fmt::format("--device-memory {}", format_byte_size(given)),
                    "give less, or look with nvidia-smi who takes it");
}

}  // namespace

void set_gpu_budget(const std::vector<int>& gpus, std::int64_t given, RunBudget& budget) {
  std::optional<RunBudget> least;
  std::int64_t resident = 0;
  for (const int index : gpus) {
    GpuFacts gpu = cuda_module().open(index);
    gpu.free_bytes /= std::count(gpus.begin(), gpus.end(), index);
    RunBudget own = budget;
    set_budget(gpu, given, own);
    resident = std::max(resident, own.device_resident_bytes);
    if (!least || own.device_bytes < least->device_bytes) least = own;
  }
  budget = least.value();
  budget.device_resident_bytes = resident;
  budget.plan.devices = std::ssize(gpus);
}

void set_gpu_budget(const GpuModel& gpu, std::int64_t given, RunBudget& budget) {
  constexpr std::int64_t kContext = 512 << 20;
  set_budget(
      GpuFacts{gpu.word, gpu.memory_bytes, gpu.memory_bytes - kContext, kContext, gpu.bandwidth},
      given, budget);
}

}  // namespace ooc
