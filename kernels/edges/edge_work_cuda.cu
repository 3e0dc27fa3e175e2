#include "kernels/edges/edge_work_cuda.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/edges/edge_index_cuda.h"
#include "kernels/edges/gather_cuda.h"
#include "kernels/spec/compute_shape.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cuda {
namespace {

// A fold's inputs and sums, as operands of the program.
struct PlainSum {
  std::size_t streamed = 0, accumulator = 0;
  EdgeProgram::Shape shape;
  bool sliced = false;  // taken slice by slice
  bool weighted = false;
};

std::vector<PlainSum> sums_of(const EdgeProgram& program) {
  std::vector<PlainSum> sums;
  for (const EdgeProgram::FoldStep& fold : program.folds) {
    const auto load = std::find_if(program.loads.begin(), program.loads.end(),
                                   [&](const auto& l) { return l.value == fold.inputs[0]; });
    const auto accumulator = static_cast<std::size_t>(fold.accumulators[0]);
    const EdgeProgram::Shape& shape = program.accumulators[accumulator];
    sums.push_back({static_cast<std::size_t>(load->operand), accumulator, shape,
                    shape.cols == program.slice_local_cols, fold.inputs.size() > 1});
  }
  return sums;
}

// Spans of a window that are indexed at once, and what is folded of them.
struct Part {
  const EdgeWindow& window;
  const EdgeCall& call;
  std::int64_t first_span = 0, end_span = 0;  // of the window's

  std::int64_t span_count() const { return end_span - first_span; }
  std::int64_t block_count() const { return call.end_block - call.first_block; }
  std::int64_t rows() const {
    const EdgeLayout& layout = *window.layout;
    const std::int64_t first = call.first_block * layout.block_rows;
    return std::min(call.end_block * layout.block_rows, layout.vertices) - first;
  }
  bool begins() const { return window.begins && first_span == 0; }
};

class CudaEdgeWork final : public EdgeWork {
 public:
  CudaEdgeWork(const EdgeProgram& program, ArgumentRing& ring)
      : program_(program), sums_(sums_of(program)), ring_(ring) {
    weighted_ =
        std::any_of(sums_.begin(), sums_.end(), [](const auto& sum) { return sum.weighted; });
  }

  void run(const EdgeWindow& window, const EdgeCall& call) const override {
    Part part{window, call};
    while (part.first_span < std::ssize(window.spans)) {
      part.end_span = end_of(part);
      run(part);
      part.first_span = part.end_span;
    }
  }

 private:
  // As many spans as the scratch has room for the index of.
  static std::int64_t end_of(const Part& part) {
    const EdgeWindow& window = part.window;
    const std::int64_t rows = part.block_count() * window.layout->block_rows;
    const std::int64_t scratch = std::ssize(part.call.scratch);
    const auto bytes_of = [&](std::int64_t span) {
      return std::ssize(window.spans[static_cast<std::size_t>(span)].chunk);
    };
    const std::int64_t end = end_of_index(window.layout->data, rows, scratch, part.first_span,
                                          std::ssize(window.spans), bytes_of);
    std::int64_t bytes = 0;
    for (std::int64_t span = part.first_span; span < end; ++span) bytes += bytes_of(span);
    OOC_CHECK(edge_index_bytes(window.layout->data, rows, bytes) <= scratch);
    return end;
  }

  void run(const Part& part) const {
    const EdgeIndex index = make_index(part);
    for (const PlainSum& sum : sums_) run(part, sum, index);
  }

  EdgeIndex make_index(const Part& part) const {
    Arguments arguments;
    const std::size_t spans = arguments.add(spans_of(part));
    const ArgumentRing::Sent sent = ring_.send(arguments);
    const EdgeLayout& layout = *part.window.layout;
    const IndexedWindow window{layout,
                               part.window.first_span + part.first_span,
                               part.span_count(),
                               part.call.first_block,
                               part.block_count(),
                               sent.at<IndexedSpan>(spans),
                               part.window.self_loops};
    const EdgeIndex index = place_index(part, window);
    build_edge_index(window, index, ring_.stream());
    return index;
  }

  // Slices of one width together, as many as the ring takes the addresses of.
  void run(const Part& part, const PlainSum& sum, const EdgeIndex& index) const {
    const auto addresses = static_cast<std::size_t>(part.span_count() + part.block_count());
    const auto most =
        static_cast<std::int64_t>(ring_.most_bytes() / (addresses * sizeof(void*) + 16));
    OOC_CHECK(most > 0);
    const TensorLayout layout{1, sum.shape.cols, 1};
    const std::int64_t end = sum.sliced ? part.call.end_slice : layout.slice_count();
    std::int64_t slice = sum.sliced ? part.call.first_slice : 0;
    while (slice < end) {
      const std::int64_t first = slice, stride = layout.slice_stride(slice);
      while (slice < end && slice - first < most && layout.slice_stride(slice) == stride) ++slice;
      run(part, sum, index, first, slice);
    }
  }

  void run(const Part& part, const PlainSum& sum, const EdgeIndex& index, std::int64_t first,
           std::int64_t end) const {
    Arguments arguments;
    const std::size_t sources = arguments.add(sources_of(part, sum, first, end));
    const std::size_t accumulators = arguments.add(accumulators_of(part, sum, first, end));
    const ArgumentRing::Sent sent = ring_.send(arguments);
    GatherSum gather{.dtype = sum.shape.dtype,
                     .index = index,
                     .block_rows = part.window.layout->block_rows,
                     .block_count = part.block_count(),
                     .rows = part.rows(),
                     .span_count = part.span_count(),
                     .slice_count = end - first,
                     .stride = TensorLayout{1, sum.shape.cols, 1}.slice_stride(first),
                     .sources = sent.at<const void*>(sources),
                     .accumulators = sent.at<void*>(accumulators),
                     .begins = part.begins()};
    if (!sum.weighted) gather.index.weights = nullptr;
    gather_sum(gather, ring_.stream());
  }

  std::vector<IndexedSpan> spans_of(const Part& part) const {
    std::vector<IndexedSpan> spans;
    for (std::int64_t i = part.first_span; i < part.end_span; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::span<const std::byte> chunk = part.window.spans[at].chunk;
      IndexedSpan& span = spans.emplace_back();
      span.chunk = chunk.empty() ? nullptr : chunk.data();
      if (program_.splits < 0) continue;
      const auto operand = static_cast<std::size_t>(program_.splits);
      const SlicedRows& rows = part.window.streamed[at * program_.streamed.size() + operand];
      span.splits = reinterpret_cast<const std::uint8_t*>(rows.slice(0, 1));
    }
    return spans;
  }

  // Of slices [first, end): address(slice, count) of each, of `count` at hand.
  template <class Address>
  static void for_each_slice(const Part& part, const PlainSum& sum, std::int64_t first,
                             std::int64_t end, Address&& address) {
    const std::int64_t before = sum.sliced ? part.window.first_slice : 0;  // that aren't at hand
    const std::int64_t count = ceil_div(sum.shape.cols, kSliceWidth) - before;
    for (std::int64_t slice = first; slice < end; ++slice) address(slice - before, count);
  }

  std::vector<const void*> sources_of(const Part& part, const PlainSum& sum, std::int64_t first,
                                      std::int64_t end) const {
    std::vector<const void*> sources;
    for_each_slice(part, sum, first, end, [&](std::int64_t slice, std::int64_t count) {
      for (std::int64_t i = part.first_span; i < part.end_span; ++i) {
        const auto at = static_cast<std::size_t>(i) * program_.streamed.size() + sum.streamed;
        sources.push_back(part.window.streamed[at].slice(slice, count));
      }
    });
    return sources;
  }

  std::vector<void*> accumulators_of(const Part& part, const PlainSum& sum, std::int64_t first,
                                     std::int64_t end) const {
    std::vector<void*> accumulators;
    for_each_slice(part, sum, first, end, [&](std::int64_t slice, std::int64_t count) {
      for (std::int64_t i = part.call.first_block; i < part.call.end_block; ++i) {
        const auto block = static_cast<std::size_t>(i - part.window.first_block);
        const auto at = block * program_.accumulators.size() + sum.accumulator;
        accumulators.push_back(part.window.accumulators[at].slice(slice, count));
      }
    });
    return accumulators;
  }

  // In the call's scratch, as edge_index_bytes() counts.
  EdgeIndex place_index(const Part& part, const IndexedWindow& window) const {
    std::int64_t chunk_bytes = 0;
    for (std::int64_t i = part.first_span; i < part.end_span; ++i) {
      chunk_bytes += std::ssize(part.window.spans[static_cast<std::size_t>(i)].chunk);
    }
    auto words = [at = part.call.scratch.data()](std::int64_t count) mutable {
      return std::exchange(at, at + round_up(4 * count, kIndexAlignment));
    };
    const std::int64_t edges = most_edges(window.layout.data, chunk_bytes) + window.rows();
    EdgeIndex index;
    index.row_ptr = reinterpret_cast<std::uint32_t*>(words(window.rows() + 1));
    index.strip_sums =
        reinterpret_cast<std::uint32_t*>(words(ceil_div(window.rows(), kIndexStrip)));
    index.neighbours = reinterpret_cast<std::uint32_t*>(words(edges));
    if (weighted_) index.weights = reinterpret_cast<float*>(words(edges));
    return index;
  }

  const EdgeProgram program_;
  const std::vector<PlainSum> sums_;
  ArgumentRing& ring_;
  bool weighted_ = false;
};

}  // namespace

std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program, ArgumentRing& ring) {
  if (!is_plain_sum(program)) {
    throw DeviceError("the model computes on edges, which no CUDA kernel does yet",
                      "--devices cuda", "give --devices cpu");
  }
  return std::make_unique<CudaEdgeWork>(program, ring);
}

}  // namespace ooc::cuda
