// Programs over batches, written by hand, and rows in memory to run them on.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/device/cpu_backend.h"
#include "sched/batch/batch_executor.h"
#include "tests/sched/batch/random_batch.h"

namespace ooc::test {

// Rows of doubles, one beside the other.
struct Table {
  std::int64_t rows = 0, cols = 0;
  std::vector<double> values;

  Table() = default;
  Table(std::int64_t r, std::int64_t c)
      : rows(r), cols(c), values(static_cast<std::size_t>(r * c)) {}
  double& at(std::int64_t row, std::int64_t col) {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
  double at(std::int64_t row, std::int64_t col) const {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
};

// Values that fp32 has exactly, in (-1, 1).
inline Table random_table(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Table table(rows, cols);
  SplitMix random(seed);
  for (double& value : table.values) {
    value = static_cast<double>(random() % 2001) / 1024.0 - 1000.0 / 1024.0;
  }
  return table;
}

template <class T>
std::vector<T> packed(const Table& table) {
  return {table.values.begin(), table.values.end()};
}

class ProgramMaker {
 public:
  Program program;

  ValueId input(const std::string& name, std::int64_t cols, int level, DType dtype = DType::kF32) {
    return add({name, ValueKind::kInput, 0, cols, dtype, 1, false, level});
  }
  ValueId vertex(std::int64_t cols, int level, DType dtype = DType::kF32) {
    return add({"v", ValueKind::kVertex, 0, cols, dtype, 1, false, level});
  }
  ValueId edge(std::int64_t cols, int level, DType dtype = DType::kF32) {
    return add({"e", ValueKind::kEdge, 0, cols, dtype, 1, false, level});
  }
  ValueId parameter(std::int64_t rows, std::int64_t cols) {
    return add({"p", ValueKind::kParameter, rows, cols});
  }
  ValueId reduction(std::int64_t rows, std::int64_t cols, DType dtype = DType::kF32) {
    return add({"r", ValueKind::kReduction, rows, cols, dtype});
  }
  Stage& stage(const std::string& name) {
    Stage& added = program.stages.emplace_back();
    added.name.assign(name);
    return added;
  }
  // to = sum of from over edges, perhaps times their weights.
  void sum(Direction direction, ValueId from, ValueId to, bool loops = false,
           bool weighted = false) {
    const Value& sums = program.values[static_cast<std::size_t>(to)];
    const int level = direction == Direction::kIn ? sums.level : sums.level - 1;
    const std::int64_t cols = sums.cols;
    const ValueId read = edge(cols, level);
    Propagation edges{direction, loops, {{EdgeLoad::kStreamed, from, read}}, {}, {}, cols};
    std::vector<ValueId> inputs{read};
    if (weighted) {
      inputs.push_back(edge(1, level));
      edges.inputs.push_back({EdgeLoad::kWeights, -1, inputs.back()});
    }
    edges.folds = {{Fold::kSum, inputs, {to}}};
    stage("sum").propagation = edges;
  }

 private:
  ValueId add(const Value& value) {
    program.values.push_back(value);
    return static_cast<ValueId>(program.values.size()) - 1;
  }
};

// Calls work in a TBB arena of so many workers, whatever the machine has.
template <class Work>
void with_workers(int workers, Work&& work) {
  const tbb::global_control most(tbb::global_control::max_allowed_parallelism,
                                 static_cast<std::size_t>(std::max(workers, 2)));
  tbb::task_arena(workers).execute(work);
}

// Owns inputs and parameters in the layout in which they are read.
class BatchData {
 public:
  template <class T>
  void input(const Program& program, const std::string& name, const Table& table) {
    for (const Value& value : program.values) {
      if (value.kind != ValueKind::kInput || value.name != name) continue;
      std::vector<std::byte>& bytes =
          memory_.emplace_back(static_cast<std::size_t>(batch_rows_bytes(value, table.rows)));
      const SlicedRows rows = place_batch_rows(value, table.rows, bytes.data());
      inputs[name] = rows;
      const TensorLayout layout{table.rows, table.cols, table.rows};
      for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
        auto* to = reinterpret_cast<T*>(rows.slice(slice, layout.slice_count()));
        for (std::int64_t row = 0; row < table.rows; ++row) {
          for (std::int64_t col = 0; col < layout.slice_cols(slice); ++col) {
            to[row * layout.slice_stride(slice) + col] =
                static_cast<T>(table.at(row, slice * kSliceWidth + col));
          }
        }
      }
      return;
    }
    FAIL("no input " << name);
  }
  void* parameter(const Table& table) {
    return parameters_.emplace_back(packed<float>(table)).data();
  }

  BatchInputs inputs;

 private:
  std::vector<std::vector<std::byte>> memory_;  // whose bytes stay where they are
  std::vector<std::vector<float>> parameters_;
};

template <class T>
Table table_of(const MatrixView& view) {
  Table table(view.rows, view.cols);
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t col = 0; col < view.cols; ++col) {
      const std::int64_t slice = col / kSliceWidth;
      table.at(row, col) =
          static_cast<double>(view.data<T>(slice)[row * view.stride(slice) + col % kSliceWidth]);
    }
  }
  return table;
}

template <class T>
Table sum_of(const BatchExecutor& executor, const Program& program, ValueId id) {
  const Value& value = program.values[static_cast<std::size_t>(id)];
  Table table(value.rows, value.cols);
  const auto* from = reinterpret_cast<const T*>(executor.reduction(id));
  for (double& element : table.values) element = static_cast<double>(*from++);
  return table;
}

// Relative to the largest.
inline void check_close(const Table& table, const Table& expected, double tolerance = 1e-5) {
  REQUIRE(table.values.size() == expected.values.size());
  double worst = 0, largest = 1;
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    worst = std::max(worst, std::abs(table.values[i] - expected.values[i]));
    if (std::isnan(table.values[i])) worst = 1e300;
    largest = std::max(largest, std::abs(expected.values[i]));
  }
  CHECK(worst <= tolerance * largest);
}

// Rows of edges folded in double.
inline Table summed(const RandomBatch& batch, Direction direction, int level, const Table& from,
                    bool loops = false, bool weighted = false) {
  const bool in = direction == Direction::kIn;
  const auto rows = [&](int of) { return batch.level_rows[static_cast<std::size_t>(of)]; };
  Table sums(rows(in ? level : level + 1), from.cols);
  const auto add = [&](std::int64_t to, std::int64_t read, double weight) {
    for (std::int64_t col = 0; col < from.cols; ++col) {
      sums.at(to, col) += weight * from.at(read, col);
    }
  };
  for (std::size_t i = 0; i < batch.edges.size(); ++i) {
    if (batch.segments[i] > level) continue;
    const BatchEdge& edge = batch.edges[i];
    const double weight = weighted ? static_cast<double>(batch.weight(i)) : 1;
    in ? add(edge.destination, edge.source, weight) : add(edge.source, edge.destination, weight);
  }
  for (std::int64_t row = 0; loops && row < rows(level); ++row) {
    if (!batch.has_loop(row)) add(row, row, 1);
  }
  return sums;
}

// a b, or of a's rows their products' sum (a^T b), or a b^T.
inline Table product(const Table& a, const Table& b) {
  Table c(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = 0; k < a.cols; ++k) {
      for (std::int64_t j = 0; j < b.cols; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return c;
}
inline Table transposed(const Table& a) {
  Table t(a.cols, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) t.at(j, i) = a.at(i, j);
  }
  return t;
}
inline Table with_rows(const Table& a, std::int64_t rows) {
  Table b(rows, a.cols);
  std::copy_n(a.values.begin(), std::min(a.values.size(), b.values.size()), b.values.begin());
  return b;
}

}  // namespace ooc::test
