// The GPUs of this machine, and what is known of others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/machine/run_budget.h"
#include "kernels/device/cuda_module.h"

namespace ooc {

// Opened when it is first wanted, from the directory of the program; never closed. Null: it isn't
// there. DeviceError where it can't be opened, or is of another ooc.
CudaModule* find_cuda_module();
// The same; DeviceError where it isn't there.
CudaModule& cuda_module();

// Whether --devices names GPUs: cuda, cuda:0 or cuda:0,2.
bool is_gpu(std::string_view devices);
// Their numbers; of cuda those of all that there are. DeviceError where they can't be counted.
std::vector<int> gpus_of(std::string_view devices);
// What --devices auto may mean for what begins, in order: cuda:0 and so on; none where there is no
// module or no driver. Warns in the log where the driver can't be used.
std::vector<std::string> gpus_of_auto();
std::string name_of_gpu(const std::string& devices);  // of one that has been opened

// What the operator or propagation is that a program has and no GPU a kernel for; empty: none.
std::string missing_on_gpu(const std::vector<const Program*>& programs);

// A GPU as its maker describes it, to plan for.
struct GpuModel {
  const char* word;
  std::int64_t memory_bytes;
  double bandwidth;      // of its memory, bytes a second
  double multiply_adds;  // fp32, a second
  double link;           // bytes a second, each way
  double peers;          // likewise, of NVLink between two of them; 0: it has none
};
const std::vector<GpuModel>& gpu_models();
// What plans for it go by, from its maker's figures. Storage and packing stay as they are.
void set_gpu_rates(const GpuModel& gpu, MachineRates& rates);
// Of a GPU that is there.
void set_gpu_rates(const GpuFacts& gpu, MachineRates& rates);

// The link to one, as measure_link() does.
void measure_gpu_link(int index, const std::string& cache, MachineRates& rates);

// How these GPUs of this machine are linked (machine_topology.h); empty: it can't be found out.
std::string topology_of_gpus(const std::vector<int>& gpus);

// A budget on each of these GPUs of this machine: `given`, or what is free on the fullest one (0).
// Of one that is named several times each has its part. BudgetError where less is free.
void set_gpu_budget(const std::vector<int>& gpus, std::int64_t given, RunBudget& budget);
// On one that isn't there.
void set_gpu_budget(const GpuModel& gpu, std::int64_t given, RunBudget& budget);

}  // namespace ooc
