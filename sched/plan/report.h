// What the plan's two reports share: JSON (plan_json.cc) and tables (plan_text.cc).
#pragma once

#include "sched/plan/plan.h"

namespace ooc {

const char* strategy_name(Strategy strategy);
const char* direction_name(Direction direction);
const std::string& value_name(const Program& program, ValueId id);

std::int64_t tensor_bytes(const PlannedTensor& tensor);
// What of the arena a pass uses, counted over all sections; and of the host's, below a device.
std::int64_t memory_of(const Plan& plan, int index, const Pass& pass);
std::int64_t host_memory_of(const Plan& plan, int index);

}  // namespace ooc
