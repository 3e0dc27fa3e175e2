#include "engine/minibatch/loaded_batch.h"

#include <algorithm>

#include "engine/sampling/sampled_sums.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

namespace ooc {
namespace {

constexpr std::int64_t kWordBits = 64;
constexpr const char* kDegrees = "degrees";

}  // namespace

std::vector<RowInput> packed_inputs(const BatchLoaderOptions& options, const GraphInputs& inputs) {
  std::vector<RowInput> packed;
  for (const BatchInput& input : options.inputs) {
    if (inputs.contains(input.name)) {
      packed.push_back({input.name, &inputs.store(input.name), input.dtype});
    }
  }
  const bool has_degrees = std::any_of(
      packed.begin(), packed.end(), [](const RowInput& input) { return input.name == kDegrees; });
  if ((options.sample_scale || options.adds_loops) && !has_degrees) {
    packed.push_back({kDegrees, &inputs.store(kDegrees), DType::kI32});
  }
  return packed;
}

LoadedBatch::LoadedBatch(const BatchLoaderOptions& options, const GraphInputs& inputs,
                         const EdgeData& data)
    : options_(options), data_(data), packed_(packed_inputs(options, inputs)) {
  for (const BatchInput& input : options_.inputs) {
    wanted_.push_back({packed_at(input.name), input.level, input.name});
  }
  if (options_.sample_scale || options_.adds_loops) packed_degrees_ = packed_at(kDegrees);
}

std::size_t LoadedBatch::packed_at(const std::string& name) const {
  const auto found = std::find_if(packed_.begin(), packed_.end(),
                                  [&](const RowInput& input) { return input.name == name; });
  OOC_CHECK(found != packed_.end());
  return static_cast<std::size_t>(found - packed_.begin());
}

// Of all levels but the last.
std::int64_t LoadedBatch::expanding_rows() const {
  return level_rows_[level_rows_.size() > 1 ? level_rows_.size() - 2 : 0];
}

// Memory for as many rows of every input as programs read.
std::vector<RowOutput> LoadedBatch::place_rows() {
  std::vector<std::int64_t> rows(packed_.size());
  for (const Input& input : wanted_) {
    rows[input.packed] = std::max(rows[input.packed], rows_of(input.level));
  }
  if (packed_degrees_) {
    rows[*packed_degrees_] = std::max(rows[*packed_degrees_], expanding_rows());
  }
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < packed_.size(); ++i) bytes += row_output_bytes(packed_[i], rows[i]);
  if (!memory_ || static_cast<std::int64_t>(memory_->bytes()) < bytes) {
    memory_.reset();
    memory_.emplace(static_cast<std::size_t>(bytes + bytes / 8), "rows of a batch");
  }
  std::vector<RowOutput> outputs;
  std::byte* at = memory_->data();
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    outputs.push_back(place_row_output(packed_[i], rows[i], at));
    at += row_output_bytes(packed_[i], rows[i]);
  }
  return outputs;
}

void LoadedBatch::assemble(const Superbatch& superbatch, const PackedRows& rows, ComingRows& coming,
                           std::int64_t batch) {
  level_rows_ = superbatch.level_rows(batch);
  const std::vector<RowOutput> outputs = place_rows();
  rows.assemble(coming, outputs);
  inputs_.clear();
  for (const Input& input : wanted_) inputs_[input.name] = outputs[input.packed].place;
  superbatch.read_edges(batch, edges_, records_);
  if (options_.sample_scale) find_scales(outputs[*packed_degrees_].place);
  if (options_.adds_loops) find_loops(outputs[*packed_degrees_].place);
  graph_.build({.level_rows = level_rows_,
                .edges = edges_,
                .data = data_,
                .records = records_,
                .loops = loops_,
                .out_edges = options_.out_edges});
}

// In-edges of a vertex by those that it took; edges are in order of destinations.
void LoadedBatch::find_scales(const SlicedRows& degrees) {
  const auto rows = static_cast<std::size_t>(rows_of(*options_.sample_scale));
  const auto* const of_rows = reinterpret_cast<const std::int32_t*>(degrees.last);
  scales_.resize(rows);
  auto* const single = reinterpret_cast<float*>(scales_.data());
  std::size_t edge = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t end = edge;
    while (end < edges_.size() && edges_[end].destination == row) ++end;
    const std::int32_t* const degree = of_rows + row * kDegreeColumns;
    const double all = degree[kInDegree] + degree[kSelfLoops];
    const double scale = end == edge ? 1 : all / static_cast<double>(end - edge);
    if (options_.real == DType::kF32) {
      single[row] = static_cast<float>(scale);
    } else {
      scales_[row] = scale;
    }
    edge = end;
  }
  inputs_[kSampleScaleInput] = one_slice(scales_.data());
}

void LoadedBatch::find_loops(const SlicedRows& degrees) {
  const std::int64_t rows = expanding_rows();
  const auto* const of_rows = reinterpret_cast<const std::int32_t*>(degrees.last);
  loops_.assign(static_cast<std::size_t>(ceil_div(rows, kWordBits)), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool has_loop = of_rows[row * kDegreeColumns + kSelfLoops] > 0;
    loops_[static_cast<std::size_t>(row / kWordBits)] |= std::uint64_t{has_loop}
                                                         << (row % kWordBits);
  }
}

MatrixView LoadedBatch::seed_rows(const std::string& name) const {
  const RowInput& input = packed_[packed_at(name)];
  const std::int64_t rows = rows_of(0), cols = input.store->layout().cols;
  const TensorLayout layout{rows, cols, rows};
  return {
      input.dtype,     rows, cols, kSliceWidth, layout.slice_stride(layout.slice_count() - 1), 0,
      inputs_.at(name)};
}

}  // namespace ooc
