#include "engine/infer/results.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {
namespace {

// The dataset's rows of ranges of original vertices.
class RowsById {
 public:
  // Reads all ids once, and a block's again for each range that it may have ids of.
  explicit RowsById(const TensorStore& ids) : ids_(stored_rows(ids, bytes_read_)) {
    for (std::int64_t block = 0; block < ids_.layout().block_count(); ++block) {
      const std::span<const std::int64_t> block_ids = ids_of(block);
      const auto [least, largest] = std::minmax_element(block_ids.begin(), block_ids.end());
      ranges_.emplace_back(*least, *largest);
    }
  }

  // Calls visit(id, row) for the ids of [begin, end), by rows.
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t end, Visit&& visit) {
    for (std::size_t block = 0; block < ranges_.size(); ++block) {
      if (ranges_[block].first >= end || ranges_[block].second < begin) continue;
      std::int64_t row = static_cast<std::int64_t>(block) * ids_.layout().block_rows;
      for (const std::int64_t id : ids_of(static_cast<std::int64_t>(block))) {
        if (id >= begin && id < end) visit(id, row);
        ++row;
      }
    }
  }

 private:
  std::span<const std::int64_t> ids_of(std::int64_t block) {
    return {static_cast<const std::int64_t*>(ids_.block(block)),
            static_cast<std::size_t>(ids_.layout().rows_of(block))};
  }

  std::int64_t bytes_read_ = 0;
  BlockRows ids_;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;  // least and largest id by block
};

// Writes a result in the original vertex order, as many rows at a time as its memory holds.
class ResultWriter {
 public:
  ResultWriter(const GraphInputs& inputs, std::int64_t memory_bytes, ResultFile& file,
               const std::atomic<bool>* stop)
      : rows_by_id_(inputs.store("ids")), memory_bytes_(memory_bytes), file_(file), stop_(stop) {}

  // What `result` makes of each batch, with what the input calls its vertices.
  void write(const ResultSource& from, ResultRows& result) {
    const auto& [source, original_ids, names] = from;
    const TensorLayout& layout = source.layout();
    std::int64_t row_bytes = layout.cols * std::int64_t{sizeof(float)} + result.row_bytes();
    if (original_ids != nullptr) row_bytes += sizeof(std::int64_t);
    // Twice the mean, and what holds it.
    if (names != nullptr)
      row_bytes += 64 + 2 * (names->end() / std::max<std::int64_t>(1, layout.rows));
    std::vector<float> values;
    for_each_batch(layout, row_bytes, [&](std::int64_t begin, std::int64_t end) {
      values.resize(static_cast<std::size_t>((end - begin) * layout.cols));
      rows_by_id_.visit(begin, end, [&](std::int64_t id, std::int64_t row) {
        source.copy_row(row, values.data() + (id - begin) * layout.cols);
      });
      result.append(values, file_);
      if (original_ids != nullptr) append_ids(begin, end, *original_ids);
      if (names != nullptr) append_names(begin, end, *names);
    });
  }

 private:
  // Calls write(first id, end) for batches of ids whose rows of `row_bytes` the memory holds.
  template <class Write>
  void for_each_batch(const TensorLayout& layout, std::int64_t row_bytes, Write&& write) {
    const std::int64_t batch = std::max<std::int64_t>(1, memory_bytes_ / row_bytes);
    for (std::int64_t begin = 0; begin < layout.rows; begin += batch) {
      if (stop_ != nullptr && stop_->load()) {
        throw Interrupted("interrupted, nothing was written", "", "run it again");
      }
      write(begin, std::min(begin + batch, layout.rows));
    }
  }

  void append_ids(std::int64_t begin, std::int64_t end, BlockRows& original_ids) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(end - begin));
    rows_by_id_.visit(begin, end, [&](std::int64_t id, std::int64_t row) {
      original_ids.copy_row(row, &ids[static_cast<std::size_t>(id - begin)]);
    });
    file_.append_ids(ids);
  }

  void append_names(std::int64_t begin, std::int64_t end, const OriginalNames& names) {
    std::string buffer;
    std::vector<std::string> batch(static_cast<std::size_t>(end - begin));
    std::pair<std::int64_t, std::int64_t> at{-1, -1};
    rows_by_id_.visit(begin, end, [&](std::int64_t id, std::int64_t row) {
      const auto place = names.place_of(row);
      if (std::exchange(at, place) != place) names.release();
      batch[static_cast<std::size_t>(id - begin)] = names.of(row, buffer);
    });
    names.release();
    file_.append_names(batch);
  }

  RowsById rows_by_id_;
  std::int64_t memory_bytes_;
  ResultFile& file_;
  const std::atomic<bool>* stop_;
};

}  // namespace

ResultShape ResultRows::shape(const Dataset& dataset,
                              const std::vector<std::string>& class_names) const {
  ResultShape shape{.dtype = DType::kF32, .rows = dataset.vertices(), .cols = cols_};
  shape.ids = dataset.manifest().remapped;
  if (output_ == Output::kValues && cols_ == 1) shape.cols = 0;
  if (output_ == Output::kClasses) {
    const bool many = task_ == Task::kMultiLabel;
    shape.dtype = many ? DType::kU8 : DType::kI64;
    shape.cols = many ? cols_ : 0;
  }
  constexpr std::array<const char*, 5> kWhat{"logit", "class", "probability", "value", "embedding"};
  shape.what = kWhat[static_cast<std::size_t>(output_)];
  // A binary task has one logit of two classes.
  const bool of_classes = output_ == Output::kClasses || std::ssize(class_names) == cols_;
  if (of_classes && output_ != Output::kEmbeddings) shape.names = class_names;
  return shape;
}

std::int64_t ResultRows::row_bytes() const {
  return output_ == Output::kClasses ? std::max(cols_, std::int64_t{sizeof(std::int64_t)}) : 0;
}

void ResultRows::append(std::span<float> rows, ResultFile& file) {
  const std::int64_t count = std::ssize(rows) / cols_;
  if (output_ == Output::kClasses) return append_classes(rows, count, file);
  if (output_ == Output::kProbabilities) {
    for (std::int64_t i = 0; i < count; ++i) to_probabilities(rows.subspan(i * cols_, cols_));
  }
  file.append(rows.data(), count);
}

void ResultRows::append_classes(std::span<const float> logits, std::int64_t rows,
                                ResultFile& file) {
  if (task_ == Task::kMultiLabel) {
    bits_.resize(logits.size());
    std::transform(logits.begin(), logits.end(), bits_.begin(),
                   [](float x) { return static_cast<std::uint8_t>(x > 0); });
    return file.append(bits_.data(), rows);
  }
  classes_.resize(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const float* row = logits.data() + static_cast<std::int64_t>(i) * cols_;
    classes_[i] = task_ == Task::kBinary ? static_cast<std::int64_t>(row[0] > 0)
                                         : std::max_element(row, row + cols_) - row;
  }
  file.append(classes_.data(), rows);
}

void ResultRows::to_probabilities(std::span<float> row) const {
  if (task_ != Task::kSingle) {
    for (float& x : row) x = static_cast<float>(1 / (1 + std::exp(-double{x})));
    return;
  }
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(x - largest);
  for (float& x : row) x = static_cast<float>(std::exp(x - largest) / sum);
}

void write_result(const GraphInputs& inputs, const ResultSource& source, ResultRows& result,
                  std::int64_t memory_bytes, ResultFile& file, const std::atomic<bool>* stop) {
  ResultWriter(inputs, memory_bytes, file, stop).write(source, result);
}

}  // namespace ooc
