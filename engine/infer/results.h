// What inference writes: rows in the original vertex order, with what the input calls the vertices.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/metrics/block_rows.h"
#include "engine/model/parts/task.h"
#include "engine/train/graph_inputs.h"
#include "storage/dataset/dataset.h"
#include "storage/dataset/original_names.h"
#include "storage/dataset/result_file.h"

namespace ooc {

enum class Output {
  kLogits,   // fp32 [V, classes]; [V, 1] of a binary task; none of a regression
  kClasses,  // int64 [V]: the class of the largest logit, the lowest of equal ones; of a binary
             // task 1 where the logit is above 0. Multi-label: uint8 [V, classes], 1 likewise
  kProbabilities,  // fp32 as the logits: their softmax; of binary and multi-label the sigmoid
  kValues,         // of a regression, fp32 [V, targets]; [V] of one target
  kEmbeddings,     // fp32 [V, hidden]: the last hidden layer
};

// Makes the rows of a result of rows of logits, values or embeddings that lie one after another.
// One thread.
class ResultRows {
 public:
  // `cols` of the rows that are given.
  ResultRows(Output output, Task task, std::int64_t cols)
      : output_(output), task_(task), cols_(cols) {}

  ResultShape shape(const Dataset& dataset, const std::vector<std::string>& class_names) const;
  // Memory for a row beside the one that is given.
  std::int64_t row_bytes() const;
  // Works on `rows` in place.
  void append(std::span<float> rows, ResultFile& file);

 private:
  void append_classes(std::span<const float> logits, std::int64_t rows, ResultFile& file);
  void to_probabilities(std::span<float> row) const;

  Output output_;
  Task task_;
  std::int64_t cols_;
  std::vector<std::int64_t> classes_;
  std::vector<std::uint8_t> bits_;
};

struct ResultSource {
  BlockRows& rows;
  // What the input calls the vertices; both null: what they are called here.
  BlockRows* original_ids = nullptr;
  const OriginalNames* names = nullptr;
};

// Writes all rows, as many at a time as `memory_bytes` hold. Throws Interrupted once `stop` is set.
void write_result(const GraphInputs& inputs, const ResultSource& source, ResultRows& result,
                  std::int64_t memory_bytes, ResultFile& file, const std::atomic<bool>* stop);

}  // namespace ooc
