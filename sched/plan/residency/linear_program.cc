#include "sched/plan/residency/linear_program.h"

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <limits>

namespace ooc {

constexpr double kOpen = std::numeric_limits<double>::max();  // Clp's infinity

LinearProgram::LinearProgram() = default;
LinearProgram::~LinearProgram() = default;

int LinearProgram::add_variable(double cost, bool open) {
  costs_.push_back(cost);
  lowest_.push_back(0);
  highest_.push_back(open ? kOpen : 1);
  return static_cast<int>(costs_.size()) - 1;
}

void LinearProgram::add_row(const std::vector<Term>& terms, double lower, double upper) {
  for (const auto& [variable, factor] : terms) {
    rows_.push_back(static_cast<int>(lower_.size()));
    columns_.push_back(variable);
    elements_.push_back(factor);
  }
  lower_.push_back(lower);
  upper_.push_back(upper);
}

void LinearProgram::at_most(const std::vector<Term>& terms, double bound) {
  add_row(terms, -kOpen, bound);
}

void LinearProgram::at_least(const std::vector<Term>& terms, double bound) {
  add_row(terms, bound, kOpen);
}

std::vector<double> LinearProgram::solve(const std::vector<Bounds>& bounds) {
  const auto columns = static_cast<int>(costs_.size());
  if (!solver_) {
    CoinPackedMatrix matrix(true, rows_.data(), columns_.data(), elements_.data(),
                            static_cast<CoinBigIndex>(elements_.size()));
    matrix.setDimensions(static_cast<int>(lower_.size()), columns);
    solver_ = std::make_unique<ClpSimplex>();
    solver_->setLogLevel(0);
    solver_->loadProblem(matrix, lowest_.data(), highest_.data(), costs_.data(), lower_.data(),
                         upper_.data());
  }
  for (int i = 0; i < columns; ++i) {
    const auto at = static_cast<std::size_t>(i);
    solver_->setColumnBounds(i, lowest_[at], highest_[at]);
  }
  for (const Bounds& at : bounds) solver_->setColumnBounds(at.variable, at.lowest, at.highest);
  solver_->dual();
  if (!solver_->isProvenOptimal()) return {};
  return {solver_->primalColumnSolution(), solver_->primalColumnSolution() + columns};
}

double LinearProgram::cost(const std::vector<double>& values) const {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * costs_[i];
  return sum;
}

}  // namespace ooc
