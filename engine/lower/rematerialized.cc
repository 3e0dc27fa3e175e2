#include "engine/lower/rematerialized.h"

#include <algorithm>
#include <set>

namespace ooc {
namespace {

// Of one stage.
class RematerializedIn {
 public:
  RematerializedIn(const Stage& stage, const std::map<ValueId, Recomputed>& again)
      : stage_(stage), again_(again) {
    for (const RowStep& step : stage.steps) {
      const auto found = again.find(step.outputs[0]);
      for (const ValueId input : step.inputs) {
        if (found == again.end() && again.contains(input)) read_.insert(input);
        if (found != again.end() && dear_.contains(input)) dear_.insert(step.outputs[0]);
      }
      if (found != again.end() && !found->second.cheap) dear_.insert(step.outputs[0]);
    }
  }

  void add_to(std::vector<Rematerialized>& rematerialized) const {
    for (const RowStep& step : stage_.steps) {
      const ValueId value = step.outputs[0];
      if (!read_.contains(value) || !dear_.contains(value)) continue;
      const Recomputed& again = again_.at(value);
      if (again.made >= 0 && !follows(step, again)) rematerialized.push_back({again.made, value});
    }
  }

 private:
  bool follows(const RowStep& step, const Recomputed& again) const {
    return again.cheap && std::none_of(step.inputs.begin(), step.inputs.end(), [&](ValueId input) {
             return again_.contains(input) && !read_.contains(input);
           });
  }

  const Stage& stage_;
  const std::map<ValueId, Recomputed>& again_;
  std::set<ValueId> read_;  // by steps that nobody did before
  std::set<ValueId> dear_;  // with a step that isn't cheap, this one or one before it
};

}  // namespace

std::vector<Rematerialized> find_rematerialized(const Program& program,
                                                const std::map<ValueId, Recomputed>& again) {
  std::vector<Rematerialized> rematerialized;
  for (const Stage& stage : program.stages) RematerializedIn(stage, again).add_to(rematerialized);
  return rematerialized;
}

}  // namespace ooc
