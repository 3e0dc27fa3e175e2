// A linear program, minimised by Clp.
#pragma once

#include <utility>
#include <vector>

namespace ooc {

class LinearProgram {
 public:
  using Term = std::pair<int, double>;  // variable, factor

  // A variable in [0, 1] or, where it is open, from 0 on; returns its number.
  int add_variable(double cost, bool open = false);
  void set_cost(int variable, double cost) { costs_[static_cast<std::size_t>(variable)] = cost; }
  void add_cost(int variable, double cost) { costs_[static_cast<std::size_t>(variable)] += cost; }
  // The variable is 1.
  void fix(int variable) { lowest_[static_cast<std::size_t>(variable)] = 1; }
  void at_most(const std::vector<Term>& terms, double bound);
  void at_least(const std::vector<Term>& terms, double bound);

  // The values of an optimum; empty where there is none. The same program has the same answer.
  std::vector<double> solve() const;
  // Of such values.
  double cost(const std::vector<double>& values) const;

 private:
  void add_row(const std::vector<Term>& terms, double lower, double upper);

  std::vector<double> costs_, lowest_, highest_;  // by variable
  std::vector<double> lower_, upper_;             // by row
  std::vector<int> rows_, columns_;               // of the elements
  std::vector<double> elements_;
};

}  // namespace ooc
