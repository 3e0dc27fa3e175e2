#include "bin/inspect_machine.h"

#include <tbb/task_arena.h>

#include <nlohmann/json.hpp>

#include "engine/machine/devices.h"
#include "engine/machine/host_memory.h"
#include "engine/machine/machine_rates.h"
#include "kernels/dense/blas_core.h"
#include "storage/io/block_file.h"

namespace ooc {

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
  return facts;
}

}  // namespace ooc
