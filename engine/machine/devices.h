// What a run computes on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/machine/run_budget.h"
#include "kernels/dense/blas_core.h"
#include "kernels/device/backend.h"
#include "storage/io/block_file.h"

namespace ooc {

// What --devices says. cpu: the CPU, whose memory is the host's. cpu:N: the CPU's kernels on N
// devices with memory of their own, of which each has as much as --device-memory says. cuda: all
// GPUs; cuda:0,2 those of these numbers, one of which may be named twice. auto: the CPU, unless
// whoever begins has made it a GPU (engine/machine/gpus.h).
bool is_device(const std::string& devices);
// What a run takes of the machine, in the words of its options: sizes (storage/base/byte_size.h) or
// auto. All memory is the host's where cpu:N has it: then auto is a quarter of what is free for the
// devices, and the rest for the host. Of a GPU auto is what is free there.
struct MachineShare {
  std::string devices = "auto";
  std::string host_memory = "auto";
  std::string device_memory = "auto";  // of each device
  std::string link_rate = "auto";      // of cpu:N, a second and each way
  DevicePartition partition = DevicePartition::kEqualEdges;
  std::string ring = "on";    // or off: whether several devices pass on what all of them read
  std::string topology = {};  // the file that describes their links (engine/machine/topology.h)
  // Of --plan-device: a GPU that isn't there (gpu_models()), to plan for; empty: `devices` counts.
  std::string plan_device = {};

  bool operator==(const MachineShare&) const = default;
};
// Of a GPU: makes its context, and DeviceError where it can't be used.
RunBudget budget_of(const MachineShare& share);
// The same for as many workers as the thread arena that calls has, with what the machine does in a
// second (engine/machine/machine_rates.h) where `scratch` lies, or will: a directory; or what
// `rates_file` says, where there is one.
RunBudget measured_budget(BlockIo& io, const MachineShare& share, const std::string& scratch,
                          const std::string& rates_file = "");
// Warns in the log where the kernels of products are below what the processor can do, or others
// than the user asked for.
void warn_of_kernels(const BlasCore& core);
// Says in the log which kernels compute products.
void log_kernels(const BlasCore& core);
// Of the threads of the arena that calls, those of each of so many devices; one at least.
std::int64_t workers_of(std::int64_t devices);

// The devices of a run, in the order in which vertices are cut for them.
class Devices {
 public:
  Devices(const std::string& devices, const RunBudget& budget);

  Backend& first() const { return *backends_.front(); }
  std::vector<Backend*> others() const;

 private:
  std::vector<std::unique_ptr<Backend>> backends_;
};

}  // namespace ooc
