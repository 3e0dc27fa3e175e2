#include <cmath>

#include "tests/kernels/finite_difference.h"

namespace ooc::testing {
namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

struct Cell {
  Dense gx, gh, h;
};

Cell random_cell(std::int64_t rows, std::int64_t d) {
  Cell cell = {random_dense(rows, 3 * d, 1), random_dense(rows, 3 * d, 2),
               random_dense(rows, d, 3)};
  for (double& value : cell.gx.values) value *= 3;
  return cell;
}

// torch.nn.GRUCell from its documentation.
Dense naive_gru(const Cell& cell) {
  const std::int64_t d = cell.h.cols;
  Dense next(cell.h.rows, d);
  for (std::int64_t i = 0; i < next.rows; ++i) {
    for (std::int64_t c = 0; c < d; ++c) {
      const double r = sigmoid_of(cell.gx(i, c) + cell.gh(i, c));
      const double z = sigmoid_of(cell.gx(i, d + c) + cell.gh(i, d + c));
      const double n = std::tanh(cell.gx(i, 2 * d + c) + r * cell.gh(i, 2 * d + c));
      next(i, c) = (1 - z) * n + z * cell.h(i, c);
    }
  }
  return next;
}

}  // namespace

TEMPLATE_TEST_CASE("gru: a cell equals the formula", "", float, double) {
  for (const std::int64_t d : kWidths) {
    INFO(d << " columns");
    const Cell cell = random_cell(kRows, d);
    CHECK_CLOSE(run_kernel<TestType>("gru", {cell.gx, cell.gh, cell.h}, cell.h), naive_gru(cell),
                tolerance<TestType>());
  }
}

TEST_CASE("gru: its gradients equal central differences of the formula") {
  for (const std::int64_t d : {5, 33, 70}) {
    INFO(d << " columns");
    const Cell cell = random_cell(3, d);
    const Dense g = random_dense(3, d, 4);
    const auto check = [&](const char* op, Dense Cell::*operand, std::vector<Dense> inputs) {
      INFO(op);
      const Dense expected = numeric_gradient(cell.*operand, [&](const Dense& changed) {
        Cell moved = cell;
        moved.*operand = changed;
        return inner_product(g, naive_gru(moved));
      });
      CHECK_CLOSE(run_kernel<double>(op, inputs, cell.*operand), expected, kDifferenceTolerance);
    };
    check("gru_input_gradient", &Cell::gx, {g, cell.gx, cell.gh, cell.h});
    check("gru_hidden_gradient", &Cell::gh, {g, cell.gx, cell.gh, cell.h});
    check("gru_state_gradient", &Cell::h, {g, cell.gx, cell.gh});
  }
}

TEST_CASE("gru: a NaN reaches the next state") {
  Cell cell = random_cell(1, 33);
  cell.gx(0, 4) = cell.gh(0, 33 + 5) = cell.h(0, 32) = std::nan("");
  const Dense next = run_kernel<float>("gru", {cell.gx, cell.gh, cell.h}, cell.h);
  for (const std::int64_t c : {4, 5, 32}) CHECK(std::isnan(next(0, c)));
  CHECK(std::isfinite(next(0, 6)));
}

}  // namespace ooc::testing
