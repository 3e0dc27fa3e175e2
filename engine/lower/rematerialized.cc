#include "engine/lower/rematerialized.h"

#include <algorithm>
#include <set>

namespace ooc {
namespace {

// Of one stage.
class RepeatedOf {
 public:
  RepeatedOf(const Stage& stage, const std::map<ValueId, ComputedAgain>& again)
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

  void add_to(std::vector<Repeated>& repeated) const {
    for (const RowStep& step : stage_.steps) {
      const ValueId value = step.outputs[0];
      if (!read_.contains(value) || !dear_.contains(value)) continue;
      const ComputedAgain& again = again_.at(value);
      if (again.made >= 0 && !follows(step, again)) repeated.push_back({again.made, value});
    }
  }

 private:
  bool follows(const RowStep& step, const ComputedAgain& again) const {
    return again.cheap && std::none_of(step.inputs.begin(), step.inputs.end(), [&](ValueId input) {
             return again_.contains(input) && !read_.contains(input);
           });
  }

  const Stage& stage_;
  const std::map<ValueId, ComputedAgain>& again_;
  std::set<ValueId> read_;  // by steps that nobody did before
  std::set<ValueId> dear_;  // with a step that isn't cheap, this one or one before it
};

}  // namespace

std::vector<Repeated> find_repeated(const Program& program,
                                    const std::map<ValueId, ComputedAgain>& again) {
  std::vector<Repeated> repeated;
  for (const Stage& stage : program.stages) RepeatedOf(stage, again).add_to(repeated);
  return repeated;
}

}  // namespace ooc
