// What is the CPU's alone of products: OpenBLAS, threads, and rows of edges in one wide slice.
#include "kernels/dense/blas.h"

#include <thread>

#include "tests/kernels/naive_product.h"
#include "tests/kernels/run_kernel.h"

namespace ooc::testing {
// As edges' rows lie.
TEST_CASE("dense: products of rows in one wide slice") {
  const Dense x = random_dense(530, 300, 13);
  for (const std::int64_t m : {40, 300}) {
    const Dense w = random_dense(300, m, 14);
    const Dense g = random_dense(530, m, 15);
    const Dense w_transposed = transposed(w);
    const auto x_matrix = SlicedMatrix<float>::parameter(x);
    const auto g_matrix = SlicedMatrix<float>::parameter(g);
    const auto run = [&](const char* op, const MatrixView& a, const MatrixView& b,
                         SlicedMatrix<float> output, bool transpose) {
      const MatrixView inputs[] = {a, b};
      const Attributes attributes{.transpose = transpose};
      const StepSeed state;
      cpu_row_kernel(op, DType::kF32)({inputs, {&output.view(), 1}, attributes, state});
      CHECK(output.guards_hold());
      return output.dense();
    };
    for (const bool transpose : {false, true}) {
      const auto w_matrix = SlicedMatrix<float>::parameter(transpose ? w_transposed : w);
      for (const bool slices : {false, true}) {
        const Dense zeros(530, m);
        SlicedMatrix<float> output = slices ? SlicedMatrix<float>::vertex(zeros, kRowOffset)
                                            : SlicedMatrix<float>::parameter(zeros);
        CHECK_CLOSE(run("matmul", x_matrix.view(), w_matrix.view(), std::move(output), transpose),
                    product(x, w), tolerance<float>(300));
      }
    }
    CHECK_CLOSE(run("matmul_reduce", x_matrix.view(), g_matrix.view(),
                    SlicedMatrix<float>::parameter(Dense(300, m)), false),
                product(transposed(x), g), tolerance<float>(530));
  }
}

TEST_CASE("dense: many threads at once get the bits of one") {
  const Dense x = random_dense(2048, 70, 10);
  const Dense w = random_dense(70, 40, 11);
  const Dense g = random_dense(2048, 40, 12);
  const auto both = [&] {
    const auto x_matrix = SlicedMatrix<float>::vertex(x);
    const auto w_matrix = SlicedMatrix<float>::parameter(w);
    const auto g_matrix = SlicedMatrix<float>::vertex(g);
    const auto y_matrix = SlicedMatrix<float>::vertex(Dense(2048, 40));
    const auto r_matrix = SlicedMatrix<float>::parameter(Dense(70, 40));
    const MatrixView forward[] = {x_matrix.view(), w_matrix.view()};
    const MatrixView backward[] = {x_matrix.view(), g_matrix.view()};
    const Attributes attributes;
    const StepSeed run;
    for (int round = 0; round < 20; ++round) {
      cpu_row_kernel("matmul", DType::kF32)({forward, {&y_matrix.view(), 1}, attributes, run});
      cpu_row_kernel("matmul_reduce",
                     DType::kF32)({backward, {&r_matrix.view(), 1}, attributes, run});
    }
    std::vector<double> result = y_matrix.dense().values;
    for (const double value : r_matrix.dense().values) result.push_back(value);
    return result;
  };
  const std::vector<double> expected = both();
  constexpr std::size_t kThreads = 64;
  std::vector<std::vector<double>> results(kThreads);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = both(); });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) CHECK(result == expected);
}

TEST_CASE("dense: OpenBLAS is serial") { CHECK_NOTHROW(check_blas_is_serial()); }

}  // namespace ooc::testing
