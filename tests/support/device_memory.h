// What a plan's first device gives to a pass, and to one of its uses.
#pragma once

#include <cstddef>

#include "sched/plan/plan.h"
#include "storage/base/errors.h"

namespace ooc::test {

inline const PassMemory& memory_of(const Plan& plan, const Pass& pass) {
  for (const Section& section : plan.sections) {
    for (std::size_t i = 0; i < section.passes.size(); ++i) {
      const auto index = static_cast<std::size_t>(section.first_pass) + i;
      if (&section.passes[i] == &pass) return plan.devices.at(0).passes.at(index);
    }
  }
  OOC_CHECK(!"a pass of the plan");
  return plan.devices.at(0).passes.front();
}

inline const UseMemory& memory_of(const Plan& plan, const Pass& pass, const TensorUse& use) {
  return memory_of(plan, pass).uses.at(static_cast<std::size_t>(&use - pass.uses.data()));
}

// Of one device: the block from which on a tensor's rows leave the arena.
inline std::int64_t leaves_from(const Plan& plan, int tensor) {
  return plan.devices.at(0).stored_from_block.at(static_cast<std::size_t>(tensor));
}
inline std::int64_t leaves_from(const Plan& plan, const PlannedTensor& tensor) {
  return leaves_from(plan, static_cast<int>(&tensor - plan.tensors.data()));
}

}  // namespace ooc::test
