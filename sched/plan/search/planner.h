// Makes plans: sched/README.md says in which steps.
#pragma once

#include <optional>
#include <vector>

#include "sched/plan/plan.h"

namespace ooc {

// One section a program, in order. BudgetError where the least working set doesn't fit, naming the
// least budget that does, and the least whose epoch is predicted within twice the unlimited one's.
Plan make_plan(const std::vector<const Program*>& programs, const GraphCounts& graph,
               const PlanOptions& options = {});
// Nothing where it doesn't fit, which takes no search for what would. Bounds take as long as the
// rest, or longer: what is only compared does without.
enum class Bounds { kFound, kLeftOut };
std::optional<Plan> try_plan(const std::vector<const Program*>& programs, const GraphCounts& graph,
                             const PlanOptions& options = {}, Bounds bounds = Bounds::kFound);

}  // namespace ooc
