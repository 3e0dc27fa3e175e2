#include "engine/model/precompute.h"

#include <utility>

namespace ooc {

Precompute::Precompute(const std::vector<Precomputed>& wanted) {
  for (const Precomputed& precomputed : wanted) {
    Computed computed;
    std::vector<TensorId> roots;
    for (const Hoisted& hoisted : precomputed.tensors) {
      if (!names_.insert(hoisted.input).second) continue;
      computed.tensors.push_back(hoisted);
      roots.push_back(hoisted.tensor);
    }
    const bool counts = !zero_factors_ && precomputed.zero_factors >= 0;
    if (counts) roots.push_back(precomputed.zero_factors);
    if (roots.empty()) continue;
    computed.staged = make_stages(*precomputed.graph, "once", roots);
    if (counts) {
      zero_factors_ = {static_cast<int>(programs_.size()),
                       computed.staged.value(precomputed.zero_factors)};
    }
    programs_.push_back(std::move(computed));
  }
}

std::vector<const Program*> Precompute::programs() const {
  std::vector<const Program*> programs;
  for (const Computed& computed : programs_) programs.push_back(&computed.staged.program);
  return programs;
}

std::map<std::string, std::unique_ptr<TensorStore>> Precompute::release(Executor& executor) const {
  std::map<std::string, std::unique_ptr<TensorStore>> stores;
  for (std::size_t section = 0; section < programs_.size(); ++section) {
    const Computed& computed = programs_[section];
    for (const Hoisted& hoisted : computed.tensors) {
      stores[hoisted.input] =
          executor.release_output(static_cast<int>(section), computed.staged.value(hoisted.tensor));
    }
  }
  return stores;
}

}  // namespace ooc
