#include "engine/batches/computed_inputs.h"

#include "engine/machine/devices.h"
#include "engine/train/program_run.h"
#include "engine/train/training_plan.h"

namespace ooc {

bool compute_inputs(const Precompute& precompute, const ComputeOnce& with, GraphInputs& inputs,
                    const std::atomic<bool>* stop) {
  if (precompute.empty()) return true;
  RunBudget budget = with.budget;
  budget.plan.store_outputs = true;
  budget.plan.workers = workers_of(1);
  Reserved reserved;
  reserved.host_bytes = budget.resident_bytes;
  const Plan plan =
      plan_in_budget(precompute.programs(), counts_of(with.dataset), budget, reserved);
  Executor executor({with.backend, with.io, with.dataset, with.scratch, budget.plan.workers},
                    precompute.programs(), plan, inputs.stores());
  for (int section = 0; section < static_cast<int>(precompute.programs().size()); ++section) {
    if (!executor.run(section, {}, stop)) return false;
  }
  if (const auto zeros = precompute.zero_factors()) {
    warn_of_zero_factors(read_reduction(with.backend, executor, zeros->first, zeros->second, 1)[0]);
  }
  for (auto& [name, store] : precompute.release(executor)) inputs.add(name, std::move(store));
  return true;
}

}  // namespace ooc
