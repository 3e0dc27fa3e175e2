// Edge programs on hand-made graphs: a builder, operands between guards, and a run in any cut.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/edges/edge_work_cpu.h"
#include "kernels/spec/edge_coordinates.h"
#include "kernels/spec/edge_program.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"
#include "tests/kernels/edges/hand_tile.h"
#include "tests/kernels/run_kernel.h"

namespace ooc::testing {

// A graph and what its edges carry, by span and edge.
struct EdgeCase {
  Graph graph;
  std::int64_t feature_cols = 0;
  std::vector<std::vector<float>> weights = {}, features = {};
  std::vector<std::vector<std::uint16_t>> type_of = {};

  EdgeCase(Graph g, std::int64_t cols, unsigned seed = 1) : graph(std::move(g)) {
    feature_cols = cols;
    std::mt19937 engine(seed);
    for (const auto& span : graph.spans) {
      const auto count = static_cast<std::int64_t>(span.size());
      const Dense w = random_dense(count, 1, seed++), f = random_dense(count, cols, seed++);
      weights.emplace_back(w.values.begin(), w.values.end());
      features.emplace_back(f.values.begin(), f.values.end());
      type_of.emplace_back();
      for (std::size_t e = 0; e < span.size(); ++e) {
        type_of.back().push_back(static_cast<std::uint16_t>(engine() % 3));
      }
    }
  }
  std::int64_t sources() const {
    return graph.span_rows * static_cast<std::int64_t>(graph.spans.size());
  }
};

// An edge as a reference sees it. `source`: row of a streamed tensor.
struct EdgeSeen {
  std::int64_t row, source, index;
  double weight;
  std::int64_t type;
  const float* features;
};

inline void for_each_edge_of(const EdgeCase& on,
                             const std::function<void(const EdgeSeen&)>& visit) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> seen;
  for (std::size_t span = 0; span < on.graph.spans.size(); ++span) {
    for (std::size_t e = 0; e < on.graph.spans[span].size(); ++e) {
      const LocalEdge& edge = on.graph.spans[span][e];
      const std::int64_t source =
          static_cast<std::int64_t>(span) * on.graph.span_rows + edge.source;
      visit({edge.row, source, seen[{edge.row, source}]++, static_cast<double>(on.weights[span][e]),
             on.type_of[span][e],
             on.features[span].data() + e * static_cast<std::size_t>(on.feature_cols)});
    }
  }
}

// A vertex tensor or a matrix of any type; padding and the rows after are poisoned.
class Operand {
 public:
  Operand(const EdgeProgram::Shape& shape, const Dense& dense, std::int64_t slice_width)
      : shape_(shape), rows_(dense.rows), slice_width_(slice_width) {
    REQUIRE(dense.cols == shape.cols);
    const TensorLayout layout{rows_, shape.cols, rows_};
    for (std::int64_t first = 0; first < shape.cols; first += slice_width) {
      strides_.push_back(slice_width == kSliceWidth ? layout.slice_stride(first / slice_width)
                                                    : shape.cols);
    }
    const auto full = static_cast<std::size_t>(rows_ * strides_.front());
    const auto last = static_cast<std::size_t>(rows_ * strides_.back());
    data_.resize(((strides_.size() - 1) * full + last) * bytes(), std::byte{0xff});
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t c = 0; c < shape.cols; ++c) write(row, c, dense(row, c));
    }
  }
  // From a row on.
  SlicedRows at(std::int64_t row) const {
    const auto count = std::ssize(strides_);
    return sliced_rows(0, count, count, [&](std::int64_t slice) { return address(slice, row); });
  }
  std::byte* address(std::int64_t slice, std::int64_t row) const {
    const std::int64_t elements =
        slice * rows_ * strides_.front() + row * strides_[static_cast<std::size_t>(slice)];
    return const_cast<std::byte*>(data_.data()) + static_cast<std::size_t>(elements) * bytes();
  }
  Dense dense() const {
    Dense dense(rows_, shape_.cols);
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t c = 0; c < shape_.cols; ++c) dense(row, c) = read(row, c);
    }
    return dense;
  }

 private:
  std::size_t bytes() const { return dtype_bytes(shape_.dtype); }
  template <class F>
  void visit(std::int64_t row, std::int64_t c, F&& f) const {
    auto* at =
        address(c / slice_width_, row) + static_cast<std::size_t>(c % slice_width_) * bytes();
    switch (shape_.dtype) {
      case DType::kF32:
        return f(reinterpret_cast<float*>(at));
      case DType::kF64:
        return f(reinterpret_cast<double*>(at));
      case DType::kI64:
        return f(reinterpret_cast<std::int64_t*>(at));
      case DType::kU8:
        return f(reinterpret_cast<std::uint8_t*>(at));
      default:
        FAIL("no operand of an edge program");
    }
  }
  void write(std::int64_t row, std::int64_t c, double value) {
    visit(row, c, [&](auto* at) { *at = static_cast<std::decay_t<decltype(*at)>>(value); });
  }
  double read(std::int64_t row, std::int64_t c) const {
    double value = 0;
    visit(row, c, [&](const auto* at) { value = static_cast<double>(*at); });
    return value;
  }

  EdgeProgram::Shape shape_;
  std::int64_t rows_, slice_width_;
  std::vector<std::int64_t> strides_;
  std::vector<std::byte> data_;
};

// How a program is run: the results must not depend on it.
struct Cut {
  std::int64_t batch_edges = 32;
  std::size_t group = 99;  // entries a call
  TileEncoding encoding = TileEncoding::kRuns;
  std::int64_t slice_local_cols = 0;
};

struct EdgeResult {
  std::vector<Dense> accumulators, matrices;
};

// Without the text of all elements when they differ.
inline void check_equal(const Dense& actual, const Dense& expected) {
  REQUIRE(actual.values.size() == expected.values.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    different += actual.values[i] == expected.values[i] ? 0 : 1;
  }
  CHECK(different == 0);
}

inline void check_same_bits(const std::vector<Dense>& a, const std::vector<Dense>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("operand " << i);
    REQUIRE(a[i].values.size() == b[i].values.size());
    CHECK(std::memcmp(a[i].values.data(), b[i].values.data(),
                      a[i].values.size() * sizeof(double)) == 0);
  }
}

inline void check_same_bits(const EdgeResult& a, const EdgeResult& b) {
  check_same_bits(a.accumulators, b.accumulators);
  check_same_bits(a.matrices, b.matrices);
}

// A program under construction together with its operands.
template <class T>
class EdgeTrial {
 public:
  static constexpr DType kReal = DTypeOf<T>::value;
  using Operands = std::vector<EdgeProgram::Operand>;

  explicit EdgeTrial(const EdgeCase& on) : on_(on) { program_.real = kReal; }

  static EdgeProgram::Operand value(int index) { return {false, index}; }
  static EdgeProgram::Operand matrix_at(int index) { return {true, index}; }

  // Values loaded from a vertex tensor of these rows.
  int streamed(const Dense& rows, DType dtype = kReal) {
    REQUIRE(rows.rows == on_.sources());
    program_.streamed.push_back({rows.cols, dtype});
    streamed_.push_back(rows);
    return load(EdgeLoad::kStreamed, static_cast<int>(streamed_.size()) - 1, rows.cols, dtype);
  }
  // Edges are passed over unless their neighbour's row is 1.
  void splits(const Dense& rows) {
    program_.splits = static_cast<int>(streamed_.size());
    program_.streamed.push_back({1, DType::kU8});
    streamed_.push_back(rows);
  }
  int resident(const Dense& rows, DType dtype = kReal) {
    REQUIRE(rows.rows == on_.graph.rows);
    program_.resident.push_back({rows.cols, dtype});
    resident_.push_back(rows);
    return load(EdgeLoad::kResident, static_cast<int>(resident_.size()) - 1, rows.cols, dtype);
  }
  int carried(EdgeLoad kind, std::int64_t cols, DType dtype = kReal) {
    return load(kind, -1, cols, dtype);
  }
  // Its original source id is `source_id` of the streamed row, its destination the row.
  int key(const std::function<std::int64_t(std::int64_t)>& source_id) {
    Dense rows(on_.graph.rows, 1);
    for (std::int64_t i = 0; i < on_.graph.rows; ++i) rows(i, 0) = static_cast<double>(i);
    const int s = ids(source_id), t = resident(rows, DType::kI64);
    const int index = carried(EdgeLoad::kParallelIndex, 1, DType::kI64);
    return step("edge_key", {value(s), value(t), value(index)}, 3, {}, DType::kI64);
  }
  int winner_key(const std::function<std::int64_t(std::int64_t)>& source_id) {
    const int s = ids(source_id), index = carried(EdgeLoad::kParallelIndex, 1, DType::kI64);
    return step("winner_key", {value(s), value(index)}, 1, {}, DType::kI64);
  }
  // A matrix read, or a reduction that starts as `dense`.
  EdgeProgram::Operand matrix(const Dense& dense) {
    program_.matrices.push_back({dense.rows, dense.cols, kReal});
    matrices_.push_back(dense);
    return matrix_at(static_cast<int>(matrices_.size()) - 1);
  }
  int step(RowKernel kernel, Operands inputs, std::int64_t cols, const Attributes& attributes = {},
           DType dtype = kReal) {
    program_.values.push_back({cols, dtype});
    const int output = static_cast<int>(program_.values.size()) - 1;
    program_.steps.push_back({"", std::move(inputs), value(output), attributes});
    kernels_.push_back(kernel);
    return output;
  }
  int step(std::string_view op, Operands inputs, std::int64_t cols,
           const Attributes& attributes = {}, DType dtype = kReal) {
    return step(cpu_row_kernel(op, kReal), std::move(inputs), cols, attributes, dtype);
  }
  void reduce(std::string_view op, Operands inputs, EdgeProgram::Operand output) {
    program_.steps.push_back({std::string(op), std::move(inputs), output, {}});
    kernels_.push_back(cpu_row_kernel(op, kReal));
  }
  // Accumulators, in order: the folded rows, then the rest of the fold's state.
  void sum(int x, const Dense& start) {
    program_.folds.push_back({Fold::kSum, {x}, {accumulator(cols_of(x), kReal, &start)}});
  }
  void sum(int x) {
    const EdgeProgram::Shape shape = program_.values[static_cast<std::size_t>(x)];
    program_.folds.push_back({Fold::kSum, {x}, {accumulator(shape.cols, shape.dtype)}});
  }
  void sum(int x, int factor) {
    program_.folds.push_back({Fold::kSum, {x, factor}, {accumulator(cols_of(x), kReal)}});
  }
  void max(int x, int keys) {
    const int y = accumulator(cols_of(x), kReal);
    program_.folds.push_back({Fold::kMax, {x, keys}, {y, accumulator(cols_of(x), DType::kI64)}});
  }
  void softmax(int score, int x) {
    const int y = accumulator(cols_of(x), kReal);
    const int m = accumulator(cols_of(score), kReal);
    program_.folds.push_back(
        {Fold::kSoftmax, {score, x}, {y, m, accumulator(cols_of(score), kReal)}});
  }

  EdgeResult run(const Cut& cut = {}) const {
    EdgeProgram program = program_;
    program.batch_edges = cut.batch_edges;
    program.slice_local_cols = cut.slice_local_cols;
    const auto work = cpu::make_edge_work(program, kernels_);
    const std::vector<Operand> from = operands(program.streamed, streamed_);
    const std::vector<Operand> resident = operands(program.resident, resident_);
    const std::vector<Operand> to = operands(program.accumulators, accumulators_);
    std::vector<Operand> matrices;
    for (const Dense& dense : matrices_) {
      matrices.emplace_back(EdgeProgram::Shape{dense.cols, kReal}, dense, dense.cols);
    }
    const auto bytes = static_cast<std::size_t>(edge_scratch_bytes(program));
    const std::unique_ptr<std::byte, void (*)(void*)> scratch(
        static_cast<std::byte*>(std::aligned_alloc(64, std::max<std::size_t>(bytes, 64))),
        std::free);
    const std::int64_t rows = on_.graph.rows;
    const EdgeLayout layout{
        .vertices = rows, .block_rows = rows, .span_rows = rows, .panel_blocks = 1};
    for (std::size_t first = 0; first < on_.graph.spans.size(); first += cut.group) {
      const std::size_t last = std::min(first + cut.group, on_.graph.spans.size());
      EdgeWindow window;
      window.layout = &layout;
      window.first_span = static_cast<std::int64_t>(first);
      window.end_block = 1;
      window.end_slice = std::max<std::int64_t>(1, ceil_div(cut.slice_local_cols, kSliceWidth));
      std::vector<HandTile> tiles;
      std::vector<PanelTile> views;
      for (std::size_t span = first; span < last; ++span) tiles.push_back(tile(span, cut.encoding));
      for (const HandTile& tile : tiles) views.push_back({0, tile.view()});
      for (std::size_t span = first; span < last; ++span) {
        window.spans.push_back({{}, {&views[span - first], 1}});
        const std::int64_t row = static_cast<std::int64_t>(span) * on_.graph.span_rows;
        for (const Operand& operand : from) window.streamed.push_back(operand.at(row));
      }
      for (const Operand& operand : resident) window.resident.push_back(operand.at(0));
      for (const Operand& operand : to) window.accumulators.push_back(operand.at(0));
      // Those that are summed are partials of the block.
      for (std::size_t i = 0; i < matrices.size(); ++i) {
        const bool summed = std::any_of(
            program.steps.begin(), program.steps.end(), [&](const EdgeProgram::Step& step) {
              return step.output.is_matrix && step.output.index == static_cast<int>(i);
            });
        window.matrices.push_back(summed ? nullptr : matrices[i].address(0, 0));
        if (summed) window.partials.push_back(matrices[i].address(0, 0));
      }
      for (std::int64_t slice = 0; slice < window.end_slice; ++slice) {
        std::memset(scratch.get(), 0xff, bytes);
        work->run(window, {0, 1, slice, slice + 1, {scratch.get(), bytes}});
      }
    }
    EdgeResult result;
    for (const Operand& operand : to) result.accumulators.push_back(operand.dense());
    for (const Operand& operand : matrices) result.matrices.push_back(operand.dense());
    return result;
  }

 private:
  // Original ids of the streamed rows.
  int ids(const std::function<std::int64_t(std::int64_t)>& source_id) {
    Dense sources(on_.sources(), 1);
    for (std::int64_t i = 0; i < on_.sources(); ++i) {
      sources(i, 0) = static_cast<double>(source_id(i));
    }
    return streamed(sources, DType::kI64);
  }
  int load(EdgeLoad kind, int operand, std::int64_t cols, DType dtype) {
    program_.values.push_back({cols, dtype});
    program_.loads.push_back({kind, operand, static_cast<int>(program_.values.size()) - 1});
    return static_cast<int>(program_.values.size()) - 1;
  }
  std::int64_t cols_of(int value) const {
    return program_.values[static_cast<std::size_t>(value)].cols;
  }
  int accumulator(std::int64_t cols, DType dtype, const Dense* start = nullptr) {
    program_.accumulators.push_back({cols, dtype});
    accumulators_.push_back(start != nullptr ? *start : Dense(on_.graph.rows, cols));
    return static_cast<int>(accumulators_.size()) - 1;
  }
  static std::vector<Operand> operands(const std::vector<EdgeProgram::Shape>& shapes,
                                       const std::vector<Dense>& dense) {
    std::vector<Operand> result;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      result.emplace_back(shapes[i], dense[i], kSliceWidth);
    }
    return result;
  }
  HandTile tile(std::size_t span, TileEncoding encoding) const {
    HandTile tile(on_.graph.spans[span], encoding);
    tile.weights = on_.weights[span];
    tile.types = on_.type_of[span];
    tile.features = on_.features[span];
    return tile;
  }

  const EdgeCase& on_;
  EdgeProgram program_;
  std::vector<RowKernel> kernels_;
  std::vector<Dense> streamed_, resident_, matrices_, accumulators_;
};

}  // namespace ooc::testing
