// What metrics are computed of, in memory.
#pragma once

#include <catch2/catch.hpp>
#include <limits>
#include <optional>
#include <vector>

#include "engine/metrics/metrics.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/memory_tensor.h"

namespace ooc::test {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Logits, labels and splits of a task, in memory, and as plain arrays.
template <class T>
struct MetricInputs {
  MetricInputs(Task task_of_rows, std::int64_t vertices, std::int64_t columns,
               std::int64_t block_rows = 16)
      : task(task_of_rows),
        rows(vertices),
        cols(columns),
        logits({vertices, columns, block_rows}),
        single({vertices, 1, block_rows}),
        bits({vertices, columns, block_rows}),
        values({vertices, columns, block_rows}),
        splits({vertices, 1, block_rows}) {}

  Scores compute(Metric metric) { return compute({metric}, nullptr).value().front(); }

  std::optional<std::vector<Scores>> compute(const std::vector<Metric>& metrics,
                                             const std::atomic<bool>* stop) {
    MemoryFileSystem files;
    MemoryBlockIo io(files);
    AnyMemoryTensor& label_tensor = task == Task::kMultiLabel ? static_cast<AnyMemoryTensor&>(bits)
                                    : task == Task::kRegression
                                        ? static_cast<AnyMemoryTensor&>(values)
                                        : single;
    std::int64_t bytes_read = 0;
    BlockRows logit_rows = stored_rows(logits.store(io), bytes_read);
    BlockRows label_rows = stored_rows(label_tensor.store(io), bytes_read);
    BlockRows split_rows = stored_rows(splits.store(io), bytes_read);
    const auto scores = compute_metrics(metrics, task, logit_rows, label_rows, split_rows, stop);
    CHECK((bytes_read > 0) == scores.has_value());
    return scores;
  }

  Task task;
  std::int64_t rows, cols;
  MemoryTensor<T> logits;
  MemoryTensor<std::int32_t> single;
  MemoryTensor<std::uint8_t> bits;
  MemoryTensor<float> values;
  MemoryTensor<std::uint8_t> splits;
};

}  // namespace ooc::test
