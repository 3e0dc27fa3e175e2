// A plan as JSON (plan.json; report_json.cc) and as tables for people (--plan; report_text.cc).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sched/plan/plan.h"

namespace ooc {

nlohmann::ordered_json plan_to_json(const std::vector<const Program*>& programs, const Plan& plan);
// Whether its sections run epoch after epoch, or once before them.
enum class PlanRuns { kEpochs, kPrecompute };
// A table for people.
std::string plan_to_text(const std::vector<const Program*>& programs, const Plan& plan,
                         PlanRuns runs = PlanRuns::kEpochs);

// What both share.
const char* strategy_name(Strategy strategy);
const char* direction_name(Direction direction);
const std::string& value_name(const Program& program, ValueId id);

std::int64_t tensor_bytes(const PlannedTensor& tensor);
// What of a device's arena a pass uses, counted over all sections; and of the host's, below it.
std::int64_t memory_of(const DevicePlan& device, int index);
std::int64_t host_memory_of(const Plan& plan, int index);

}  // namespace ooc
