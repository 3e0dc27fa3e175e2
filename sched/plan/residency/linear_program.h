// A linear program, minimised by Clp.
#pragma once

#include <memory>
#include <utility>
#include <vector>

class ClpSimplex;

namespace ooc {

class LinearProgram {
 public:
  using Term = std::pair<int, double>;  // variable, factor
  // Narrower bounds of a variable, for one solution.
  struct Bounds {
    int variable = 0;
    double lowest = 0, highest = 1;
  };

  LinearProgram();
  ~LinearProgram();

  // A variable in [0, 1] or, where it is open, from 0 on; returns its number.
  int add_variable(double cost, bool open = false);
  void add_cost(int variable, double cost) { costs_[static_cast<std::size_t>(variable)] += cost; }
  // The variable is 1.
  void fix(int variable) { lowest_[static_cast<std::size_t>(variable)] = 1; }
  void at_most(const std::vector<Term>& terms, double bound);
  void at_least(const std::vector<Term>& terms, double bound);

  // The values of an optimum; empty where there is none. Nothing is added after the first call;
  // later ones begin where the one before ended. The same calls have the same answers.
  std::vector<double> solve(const std::vector<Bounds>& bounds = {});
  // Of such values.
  double cost(const std::vector<double>& values) const;

 private:
  void add_row(const std::vector<Term>& terms, double lower, double upper);

  std::vector<double> costs_, lowest_, highest_;  // by variable
  std::vector<double> lower_, upper_;             // by row
  std::vector<int> rows_, columns_;               // of the elements
  std::vector<double> elements_;
  std::unique_ptr<ClpSimplex> solver_;
};

}  // namespace ooc
