// What the benches share: interleaved timing, matrices in slices.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "kernels/device/cpu_backend.h"
#include "kernels/spec/matrix_view.h"
#include "storage/format/tensor_layout.h"

namespace ooc::bench {

template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs `reference` and `subject` in turn while the state goes on and returns the best seconds of
// each: what else the machine does then hits both.
struct Pair {
  double reference = 1e30;
  double subject = 1e30;
};
template <class Reference, class Subject>
Pair time_in_turn(benchmark::State& state, Reference&& reference, Subject&& subject) {
  Pair best;
  for (auto _ : state) {
    best.reference = std::min(best.reference, seconds_of(reference));
    const double seconds = seconds_of(subject);
    best.subject = std::min(best.subject, seconds);
    state.SetIterationTime(seconds);
  }
  return best;
}

inline Backend& backend() {
  static const auto cpu = make_cpu_backend();
  return *cpu;
}

inline void fill_random(float* values, std::size_t count, unsigned seed) {
  std::minstd_rand engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::size_t i = 0; i < count; ++i) values[i] = uniform(engine);
}

// A random fp32 matrix in slices of `slice_width` columns, in memory of the backend.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t cols, std::int64_t slice_width = kSliceWidth) {
    view_ = {.rows = rows, .cols = cols, .slice_width = slice_width};
    const std::int64_t last = view_.slice_cols(view_.slice_count() - 1);
    view_.last_stride = cols < 8 || slice_width != kSliceWidth ? last : round_up(last, 8);
    const std::int64_t slices = view_.slice_count(), full = rows * slice_width;
    const auto count = static_cast<std::size_t>((slices - 1) * full + rows * view_.last_stride);
    buffer_ = backend().allocate(count * sizeof(float));
    fill_random(reinterpret_cast<float*>(buffer_->data()), count, 1);
    const std::int64_t stride = full * std::int64_t{sizeof(float)};
    view_.slices = {buffer_->data(), stride, buffer_->data() + (slices - 1) * stride};
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  const MatrixView& view() const { return view_; }
  float* data(std::int64_t slice = 0) const { return view_.data<float>(slice); }

 private:
  MatrixView view_;
  std::unique_ptr<DeviceBuffer> buffer_;
};

}  // namespace ooc::bench
