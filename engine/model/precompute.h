// What models want computed once a run, before its first epoch, as programs of their own.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/lower/stages.h"
#include "engine/model/rewrites.h"
#include "sched/run/executor.h"

namespace ooc {

class Precompute {
 public:
  // What several want by one name is computed for the first of them.
  explicit Precompute(const std::vector<Precomputed>& wanted);

  bool empty() const { return programs_.empty(); }
  // One for each model that wants something no other before it does.
  std::vector<const Program*> programs() const;
  // Of the inputs that the models read.
  const std::set<std::string>& names() const { return names_; }
  // The program, by its number, that computes Model::zero_factors, and which value of it that is.
  std::optional<std::pair<int, ValueId>> zero_factors() const { return zero_factors_; }
  // Takes the results out of an executor that has run the programs, by name. Their plan was made
  // with PlanOptions::store_outputs.
  std::map<std::string, std::unique_ptr<TensorStore>> release(Executor& executor) const;

 private:
  struct Computed {
    StagedGraph staged;
    std::vector<Hoisted> tensors;
  };
  std::vector<Computed> programs_;
  std::set<std::string> names_;
  std::optional<std::pair<int, ValueId>> zero_factors_;
};

}  // namespace ooc
