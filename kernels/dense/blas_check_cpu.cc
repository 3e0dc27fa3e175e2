#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/dense/blas.h"
#include "kernels/dense/blas_core.h"

namespace ooc {
namespace {

struct Shape {
  std::int64_t m, n, k;
  Transpose transpose_a, transpose_b;
};

// Integers from -4 to 4: sums of their products are exact in any order.
class Integers {
 public:
  int next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<int>((state_ >> 16) % 9) - 4;
  }

 private:
  std::uint32_t state_ = 1;
};

// Row-major, with columns beyond its own in each row.
template <class T>
struct Padded {
  Padded(std::int64_t rows, std::int64_t cols, Integers& integers)
      : stride(cols + 5), values(static_cast<std::size_t>(rows * stride)) {
    for (T& value : values) value = static_cast<T>(integers.next());
  }
  T at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * stride + column)];
  }
  std::int64_t stride;
  std::vector<T> values;
};

template <class T>
Padded<T> operand(std::int64_t rows, std::int64_t cols, Transpose transpose, Integers& integers) {
  return transpose == Transpose::kYes ? Padded<T>(cols, rows, integers)
                                      : Padded<T>(rows, cols, integers);
}

template <class T>
T element(const Padded<T>& x, Transpose transpose, std::int64_t row, std::int64_t column) {
  return transpose == Transpose::kYes ? x.at(column, row) : x.at(row, column);
}

// C = A B over NaN, then C += A B.
template <class T>
bool multiplies(const Shape& shape) {
  Integers integers;
  const Padded<T> a = operand<T>(shape.m, shape.k, shape.transpose_a, integers);
  const Padded<T> b = operand<T>(shape.k, shape.n, shape.transpose_b, integers);
  Padded<T> c(shape.m, shape.n, integers);
  std::vector<T> expected(static_cast<std::size_t>(shape.m * shape.n));
  for (std::int64_t i = 0; i < shape.m; ++i) {
    T* const row = expected.data() + i * shape.n;
    for (std::int64_t p = 0; p < shape.k; ++p) {
      const T factor = element(a, shape.transpose_a, i, p);
      for (std::int64_t j = 0; j < shape.n; ++j) {
        row[j] += factor * element(b, shape.transpose_b, p, j);
      }
    }
  }
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      c.values[static_cast<std::size_t>(i * c.stride + j)] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  Padded<T> left_alone = c;
  for (const bool accumulate : {false, true}) {
    gemm(Gemm<T>{.transpose_a = shape.transpose_a,
                 .transpose_b = shape.transpose_b,
                 .m = shape.m,
                 .n = shape.n,
                 .k = shape.k,
                 .a = a.values.data(),
                 .lda = a.stride,
                 .b = b.values.data(),
                 .ldb = b.stride,
                 .c = c.values.data(),
                 .ldc = c.stride,
                 .accumulate = accumulate});
    const T times = accumulate ? 2 : 1;
    for (std::int64_t i = 0; i < shape.m; ++i) {
      for (std::int64_t j = 0; j < c.stride; ++j) {
        const bool own = j < shape.n;
        const T right =
            own ? times * expected[static_cast<std::size_t>(i * shape.n + j)] : left_alone.at(i, j);
        if (!(c.at(i, j) == right)) return false;
      }
    }
  }
  return true;
}

}  // namespace

bool blas_multiplies_right() {
  for (const Transpose a : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose b : {Transpose::kNo, Transpose::kYes}) {
      if (a == Transpose::kYes && b == Transpose::kYes) continue;  // nobody asks for it
      // Below and above 10^6 multiply-adds, from where on all cores pack; sizes that no vector or
      // block divides.
      for (const Shape& shape : {Shape{61, 33, 150, a, b}, Shape{205, 77, 131, a, b}}) {
        if (!multiplies<float>(shape) || !multiplies<double>(shape)) return false;
      }
    }
  }
  return true;
}

}  // namespace ooc
