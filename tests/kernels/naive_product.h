// Products as they are defined, for tests of faster ones.
#pragma once

#include "tests/kernels/sliced_matrix.h"

namespace ooc::testing {

inline Dense transposed(const Dense& a) {
  Dense result(a.cols, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) result(j, i) = a(i, j);
  }
  return result;
}

inline Dense product(const Dense& a, const Dense& b) {
  Dense result(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.cols; ++j) {
      for (std::int64_t k = 0; k < a.cols; ++k) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

}  // namespace ooc::testing
