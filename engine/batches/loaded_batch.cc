#include "engine/batches/loaded_batch.h"

#include <algorithm>
#include <utility>

#include "engine/sampling/sampled_sums.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

namespace ooc {
namespace {

constexpr std::int64_t kWordBits = 64;
constexpr const char* kDegrees = "degrees";

MatrixView view_of(const RowInput& input, const RowOutput& output) {
  const std::int64_t cols = input.store->layout().cols;
  const TensorLayout layout{output.rows, cols, output.rows};
  return {
      input.dtype, output.rows, cols, kSliceWidth, layout.slice_stride(layout.slice_count() - 1),
      0,           output.place};
}

}  // namespace

std::vector<BatchInput> wanted_inputs(const BatchLoaderOptions& options) {
  std::vector<BatchInput> wanted;
  const auto add = [&](const BatchInput& input) {
    const auto same = std::find_if(wanted.begin(), wanted.end(), [&](const BatchInput& other) {
      return other.name == input.name;
    });
    if (same == wanted.end()) {
      wanted.push_back(input);
    } else {
      same->level = std::max(same->level, input.level);
    }
  };
  for (const BatchInput& input : options.inputs) add(input);
  if (options.sample_scale || options.adds_loops) {
    const int expanding = std::max(static_cast<int>(options.hops.size()) - 1, 0);
    add({kDegrees, DType::kI32, expanding, kDegreeColumns});
  }
  return wanted;
}

std::vector<BatchInput> packed_inputs(const BatchLoaderOptions& options) {
  return options.packed.empty() ? wanted_inputs(options) : options.packed;
}

void pack_alike(BatchLoaderOptions& one, BatchLoaderOptions& other) {
  std::map<std::string, BatchInput> all;
  for (const BatchLoaderOptions* const of : {&one, &other}) {
    for (const BatchInput& input : wanted_inputs(*of)) all.emplace(input.name, input);
  }
  for (BatchLoaderOptions* const of : {&one, &other}) {
    of->packed.clear();
    for (const auto& [name, input] : all) of->packed.push_back(input);
  }
}

SampledBatch::SampledBatch(const BatchLoaderOptions& options, const GraphInputs& inputs) {
  const std::vector<BatchInput> wanted = wanted_inputs(options);
  for (const BatchInput& input : packed_inputs(options)) {
    packed_.push_back({input.name, &inputs.store(input.name), input.dtype});
    const auto found = std::find_if(wanted.begin(), wanted.end(),
                                    [&](const BatchInput& of) { return of.name == input.name; });
    levels_.push_back(found == wanted.end() ? kUnwanted : found->level);
  }
}

// Memory for as many rows of every input as are asked for.
std::vector<RowOutput> SampledBatch::place_rows() {
  const auto rows_of = [&](std::size_t input) {
    const int level = levels_[input];
    return level == kUnwanted ? 0 : level_rows_[static_cast<std::size_t>(level)];
  };
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    bytes += row_output_bytes(packed_[i], rows_of(i));
  }
  if (!memory_ || static_cast<std::int64_t>(memory_->bytes()) < bytes) {
    memory_.reset();
    memory_.emplace(static_cast<std::size_t>(bytes + bytes / 8), "rows of a batch");
  }
  std::vector<RowOutput> outputs;
  std::byte* at = memory_->data();
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    outputs.push_back(place_row_output(packed_[i], rows_of(i), at));
    at += row_output_bytes(packed_[i], rows_of(i));
  }
  return outputs;
}

const BatchContent& SampledBatch::assemble(const Superbatch& superbatch, const PackedRows& rows,
                                           ComingRows& coming, std::int64_t batch) {
  level_rows_ = superbatch.level_rows(batch);
  const std::vector<RowOutput> outputs = place_rows();
  rows.assemble(coming, outputs);
  superbatch.read_edges(batch, edges_, records_);
  content_ = {level_rows_, edges_, records_, {}};
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    if (levels_[i] == kUnwanted) continue;
    content_.rows[packed_[i].name] = view_of(packed_[i], outputs[i]);
  }
  return content_;
}

void SampledBatch::release() {
  content_ = {};
  edges_ = {};
  records_ = {};
  memory_.reset();
}

LoadedBatch::LoadedBatch(const BatchLoaderOptions& options, const EdgeData& data)
    : options_(options), data_(data) {}

// Of all levels but the last.
std::int64_t LoadedBatch::expanding_rows() const {
  const std::size_t levels = content_.level_rows.size();
  return content_.level_rows[levels > 1 ? levels - 2 : 0];
}

const std::int32_t* LoadedBatch::degrees() const {
  return content_.rows.at(kDegrees).data<std::int32_t>(0);
}

void LoadedBatch::set(const BatchContent& content) {
  content_ = content;
  inputs_.clear();
  for (const BatchInput& input : options_.inputs) {
    inputs_[input.name] = content_.rows.at(input.name).slices;
  }
  if (options_.sample_scale) find_scales();
  if (options_.adds_loops) find_loops();
  graph_.build({.level_rows = content_.level_rows,
                .edges = content_.edges,
                .data = data_,
                .records = content_.records,
                .loops = loops_,
                .out_edges = options_.out_edges});
}

void LoadedBatch::release() {
  content_ = {};
  scales_ = {};
  loops_ = {};
  graph_ = {};
  inputs_.clear();
}

namespace {

// Where chances go by weights, fewer than are asked for are all that have a chance.
bool has_all_chances(const HopSampling& sampling, std::size_t sampled) {
  return sampling.choice == HopSampling::Choice::kWeighted &&
         std::cmp_less(sampled, sampling.fanout);
}

}  // namespace

// In-edges of a vertex by those that it took; edges are in order of destinations.
void LoadedBatch::find_scales() {
  const auto rows = static_cast<std::size_t>(rows_of(*options_.sample_scale));
  const std::int32_t* const of_rows = degrees();
  const std::span<const BatchEdge> edges = content_.edges;
  scales_.resize(rows);
  auto* const single = reinterpret_cast<float*>(scales_.data());
  std::size_t edge = 0, hop = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t end = edge;
    while (end < edges.size() && edges[end].destination == row) ++end;
    while (std::cmp_greater_equal(row, content_.level_rows[hop])) ++hop;
    const std::int32_t* const degree = of_rows + row * kDegreeColumns;
    const double all = degree[kInDegree] + degree[kSelfLoops];
    const bool has_all = end == edge || has_all_chances(options_.hops[hop], end - edge);
    const double scale = has_all ? 1 : all / static_cast<double>(end - edge);
    if (options_.real == DType::kF32) {
      single[row] = static_cast<float>(scale);
    } else {
      scales_[row] = scale;
    }
    edge = end;
  }
  inputs_[kSampleScaleInput] = one_slice(scales_.data());
}

void LoadedBatch::find_loops() {
  const std::int64_t rows = expanding_rows();
  const std::int32_t* const of_rows = degrees();
  loops_.assign(static_cast<std::size_t>(ceil_div(rows, kWordBits)), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool has_loop = of_rows[row * kDegreeColumns + kSelfLoops] > 0;
    loops_[static_cast<std::size_t>(row / kWordBits)] |= std::uint64_t{has_loop}
                                                         << (row % kWordBits);
  }
}

MatrixView LoadedBatch::seed_rows(const std::string& name) const {
  MatrixView rows = content_.rows.at(name);
  rows.rows = rows_of(0);
  return rows;
}

}  // namespace ooc
