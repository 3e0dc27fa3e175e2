#include "bin/inspect_machine.h"

#include <spdlog/spdlog.h>
#include <tbb/task_arena.h>

#include <nlohmann/json.hpp>

#include "engine/machine/devices.h"
#include "engine/machine/gpus.h"
#include "engine/machine/host_memory.h"
#include "engine/machine/machine_rates.h"
#include "kernels/dense/blas_core.h"
#include "storage/base/errors.h"
#include "storage/io/block_file.h"

namespace ooc {
namespace {

// By number, and how they are linked where there are several.
void add_gpus(cli::Facts& facts) {
  std::vector<int> gpus;
  for (const std::string& gpu : gpus_of_auto()) {
    gpus.push_back(gpus_of(gpu).front());
    facts["gpus"][gpu] = cuda_module().open(gpus.back()).name;
  }
  if (gpus.size() < 2) return;
  const std::string topology = topology_of_gpus(gpus);
  if (!topology.empty()) facts["topology"] = cli::Facts::parse(topology);
}

}  // namespace

cli::Facts machine_facts() {
  const BlasCore& core = blas_core();
  warn_of_kernels(core);
  cli::Facts facts;
  facts["processor"] = processor_name();
  facts["threads"] = tbb::this_task_arena::max_concurrency();
  facts["vectors"] = name_of(core.processor_has);
  facts["products"] = description_of(core);
  facts["blas_core"] = core.name;
  facts["blas_vectors"] = name_of(core.uses);
  if (!core.told.empty()) facts["openblas_coretype"] = core.told;
  if (!core.wrong.empty()) facts["multiply_wrong"] = core.wrong;
  facts["free_memory_bytes"] = host_memory_for_us();
  facts["io"] = make_block_io()->name();
  facts["devices"] = "cpu";
  try {
    add_gpus(facts);
  } catch (const DeviceError& error) {
    spdlog::warn("{}", error.what());
  }
  return facts;
}

}  // namespace ooc
