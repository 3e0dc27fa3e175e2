// The sum over in-edges on a GPU, for gather.py, which takes turns with cuSPARSE.
//
//   gather_bench make DIR VERTICES EDGES HUB SEED   draws a graph and writes it to DIR
//   gather_bench run DIR COLUMNS                    puts it into the GPU's memory, then does what
//                                                   each line of standard input says:
//     run N      sums N times as production does: an index of each panel's edges, then the sums
//     index N    the indexes alone
//     gather N   the sums alone, by indexes that are kept
//     check N    sums, and compares N rows with sums in fp64 on the host
//     write FILE sums, and writes fp32 rows beside each other
//
// Answers are lines of JSON. Edges are cut as ooc-prep cuts them; a window has all spans.
// Row v of the matrix has ((1009 v + 9176 c) mod 65536) / 32768 - 1 in column c.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>

#include "bench/gpu/gather_graph.h"
#include "kernels/device/cuda_backend.h"
#include "kernels/device/device_cuda.h"
#include "kernels/edges/edge_index_cuda.h"
#include "kernels/edges/gather_cuda.h"
#include "kernels/spec/compute_shape.h"
#include "storage/format/edge_file.h"

namespace ooc::bench {
namespace {

float value_at(std::int64_t row, std::int64_t col) {
  return static_cast<float>((1009 * row + 9176 * col) & 0xffff) / 32768.0f - 1.0f;
}

// Edge chunks of a panel, by span, as they lie in a dataset.
std::vector<std::vector<std::byte>> encode_panel(const Graph& graph, const EdgeLayout& layout,
                                                 std::int64_t panel) {
  std::vector<TileEncoder> encoders(static_cast<std::size_t>(layout.span_count()),
                                    TileEncoder(layout));
  const std::int64_t rows = layout.panel_blocks * layout.block_rows;
  const std::byte nothing{};  // is what edges carry
  for (std::int64_t row = panel * rows; row < std::min((panel + 1) * rows, layout.vertices);
       ++row) {
    const auto at = static_cast<std::size_t>(row);
    for (std::int64_t edge = graph.starts[at]; edge < graph.starts[at + 1]; ++edge) {
      const std::int64_t source = graph.neighbours[static_cast<std::size_t>(edge)];
      encoders[static_cast<std::size_t>(source / layout.span_rows)].add({source, row}, &nothing);
    }
  }
  std::vector<std::vector<std::byte>> chunks;
  for (TileEncoder& encoder : encoders) {
    EncodedTiles tiles = encoder.finish();
    std::vector<std::byte>& chunk = chunks.emplace_back();
    if (tiles.headers.empty()) continue;
    const EdgeChunkHeader header{static_cast<std::uint32_t>(tiles.headers.size()), 0};
    const std::size_t header_bytes = sizeof header + tiles.headers.size() * sizeof(TileHeader);
    for (TileHeader& tile : tiles.headers) tile.offset += header_bytes;
    chunk.resize(header_bytes + tiles.bytes.size());
    std::memcpy(chunk.data(), &header, sizeof header);
    std::memcpy(chunk.data() + sizeof header, tiles.headers.data(), header_bytes - sizeof header);
    std::copy(tiles.bytes.begin(), tiles.bytes.end(),
              chunk.begin() + static_cast<std::ptrdiff_t>(header_bytes));
  }
  return chunks;
}

// A vertex tensor in the GPU's memory: slice after slice, each with all rows.
class Tensor {
 public:
  Tensor(Backend& backend, std::int64_t rows, std::int64_t cols)
      : layout_{rows, cols, rows}, queue_(backend.queue(QueueKind::kCompute)) {
    full_bytes_ = 4 * rows * kSliceWidth;
    const std::int64_t slices = layout_.slice_count();
    const std::int64_t last = 4 * rows * layout_.slice_stride(slices - 1);
    buffer_ = backend.allocate(static_cast<std::size_t>((slices - 1) * full_bytes_ + last));
  }
  const TensorLayout& layout() const { return layout_; }
  std::byte* row(std::int64_t slice, std::int64_t row) const {
    return buffer_->data() + slice * full_bytes_ + 4 * row * layout_.slice_stride(slice);
  }
  SlicedRows rows_from(std::int64_t first) const {
    return {row(0, first), full_bytes_, row(layout_.slice_count() - 1, first)};
  }

  void fill() {
    for_each_slice([&](std::int64_t slice, std::vector<float>& rows, std::int64_t stride) {
      tbb::parallel_for(std::int64_t{0}, layout_.rows, [&](std::int64_t row) {
        for (std::int64_t col = 0; col < layout_.slice_cols(slice); ++col) {
          rows[static_cast<std::size_t>(row * stride + col)] =
              value_at(row, slice * kSliceWidth + col);
        }
      });
      queue_.copy(this->row(slice, 0), rows.data(), rows.size() * sizeof(float));
    });
  }
  // Rows beside each other, without padding.
  std::vector<float> read() {
    std::vector<float> all(static_cast<std::size_t>(layout_.rows * layout_.cols));
    for_each_slice([&](std::int64_t slice, std::vector<float>& rows, std::int64_t stride) {
      queue_.copy(rows.data(), this->row(slice, 0), rows.size() * sizeof(float));
      queue_.wait(queue_.record());
      tbb::parallel_for(std::int64_t{0}, layout_.rows, [&](std::int64_t row) {
        std::copy_n(rows.begin() + row * stride, layout_.slice_cols(slice),
                    all.begin() + row * layout_.cols + slice * kSliceWidth);
      });
    });
    return all;
  }

 private:
  template <class Visit>
  void for_each_slice(Visit&& visit) {
    for (std::int64_t slice = 0; slice < layout_.slice_count(); ++slice) {
      const std::int64_t stride = layout_.slice_stride(slice);
      std::vector<float> rows(static_cast<std::size_t>(layout_.rows * stride));
      visit(slice, rows, stride);
      queue_.wait(queue_.record());
    }
  }

  TensorLayout layout_;
  Queue& queue_;
  std::int64_t full_bytes_ = 0;
  std::unique_ptr<DeviceBuffer> buffer_;
};

// What the kernels are given of a panel; memory of the GPU.
struct Panel {
  EdgeWindow window;
  cuda::IndexedWindow indexed;
  cuda::EdgeIndex index;
  std::vector<cuda::GatherSum> sums;  // slices of one width each
};

class Bench {
 public:
  Bench(const Graph& graph, std::int64_t columns)
      : graph_(graph),
        backend_(make_cuda_backend(0, 0)),
        direct_(0, 0),
        layout_(choose_edge_layout(graph.vertices(), graph.edges(), kDefaultBlockRows)),
        from_(*backend_, graph.vertices(), columns),
        to_(*backend_, graph.vertices(), columns) {
    from_.fill();
    program_.streamed = {{columns, DType::kF32}};
    program_.accumulators = program_.values = program_.streamed;
    program_.loads = {{EdgeLoad::kStreamed, 0, 0}};
    program_.folds = {{Fold::kSum, {0}, {0}}};
    program_.slice_local_cols = columns;
    work_ = backend_->edge_work(program_);
    for (std::int64_t i = 0; i < layout_.panel_count(); ++i) add_panel(i);
    scratch_ = backend_->allocate(static_cast<std::size_t>(scratch_bytes_));
    index();
  }

  void run() {
    for (const Panel& panel : panels_) {
      const EdgeWindow& window = panel.window;
      work_->run(window, {window.first_block,
                          window.end_block,
                          0,
                          window.end_slice,
                          {scratch_->data(), scratch_->bytes()}});
    }
  }
  void index() {
    for (const Panel& panel : panels_) {
      cuda::build_edge_index(panel.indexed, panel.index, stream());
    }
  }
  void gather() {
    for (const Panel& panel : panels_) {
      for (const cuda::GatherSum& sum : panel.sums) cuda::gather_sum(sum, stream());
    }
  }
  // Mean seconds of some calls, when the GPU is done with them.
  template <class Call>
  double seconds_of(std::int64_t count, Call&& call) {
    finish();
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count; ++i) call();
    finish();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    return taken.count() / static_cast<double>(count);
  }

  std::vector<float> sums() {
    run();
    finish();
    return to_.read();
  }
  // The largest difference of some rows' sums over the largest sum of theirs.
  double check(std::int64_t count) {
    const std::vector<float> found = sums();
    const std::int64_t columns = to_.layout().cols;
    const std::int64_t step = std::max<std::int64_t>(1, graph_.vertices() / count);
    double difference = 0, largest = 0;
    for (std::int64_t row = 0; row < graph_.vertices(); row += step) {
      std::vector<double> sum(static_cast<std::size_t>(columns));
      const auto at = graph_.starts.begin() + row;
      for (std::int64_t edge = at[0]; edge < at[1]; ++edge) {
        const std::int64_t source = graph_.neighbours[static_cast<std::size_t>(edge)];
        for (std::int64_t col = 0; col < columns; ++col) {
          sum[static_cast<std::size_t>(col)] += value_at(source, col);
        }
      }
      for (std::int64_t col = 0; col < columns; ++col) {
        const double wanted = sum[static_cast<std::size_t>(col)];
        difference = std::max(
            difference, std::abs(wanted - found[static_cast<std::size_t>(row * columns + col)]));
        largest = std::max(largest, std::abs(wanted));
      }
    }
    return difference / largest;
  }
  std::string facts() const {
    std::int64_t hub = 0;
    for (std::size_t i = 1; i < graph_.starts.size(); ++i) {
      hub = std::max(hub, graph_.starts[i] - graph_.starts[i - 1]);
    }
    return fmt::format(
        R"({{"vertices":{},"edges":{},"columns":{},"most_edges_of_a_row":{},"panels":{},)"
        R"("span_rows":{},"chunk_bytes":{},"peak_device_bytes":{}}})",
        graph_.vertices(), graph_.edges(), to_.layout().cols, hub, layout_.panel_count(),
        layout_.span_rows, chunk_bytes_, backend_->memory_peak());
  }

 private:
  cudaStream_t stream() { return direct_.queue(QueueKind::kCompute).stream(); }
  void finish() {
    for (Queue* queue : {&backend_->queue(QueueKind::kCompute),
                         static_cast<Queue*>(&direct_.queue(QueueKind::kCompute))}) {
      queue->wait(queue->record());
    }
  }

  std::byte* take(std::int64_t bytes) {
    buffers_.push_back(
        backend_->allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))));
    return buffers_.back()->data();
  }
  template <class T>
  T* copy_of(const std::vector<T>& values) {
    const std::size_t bytes = values.size() * sizeof(T);
    std::byte* const to = take(static_cast<std::int64_t>(bytes));
    Queue& queue = backend_->queue(QueueKind::kCompute);
    queue.copy(to, values.data(), bytes);
    queue.wait(queue.record());
    return reinterpret_cast<T*>(to);
  }

  void add_panel(std::int64_t number) {
    Panel& panel = panels_.emplace_back();
    EdgeWindow& window = panel.window;
    window.layout = &layout_;
    window.first_block = number * layout_.panel_blocks;
    window.end_block = std::min(window.first_block + layout_.panel_blocks, layout_.block_count());
    window.end_slice = to_.layout().slice_count();
    std::int64_t bytes = 0;
    for (const std::vector<std::byte>& chunk : encode_panel(graph_, layout_, number)) {
      const std::int64_t first = std::ssize(window.spans) * layout_.span_rows;
      EdgeWindow::Span& span = window.spans.emplace_back();
      if (!chunk.empty()) span.chunk = {copy_of(chunk), chunk.size()};
      window.streamed.push_back(from_.rows_from(first));
      bytes += std::ssize(chunk);
    }
    for (std::int64_t block = window.first_block; block < window.end_block; ++block) {
      window.accumulators.push_back(to_.rows_from(block * layout_.block_rows));
    }
    chunk_bytes_ += bytes;
    const std::int64_t rows = (window.end_block - window.first_block) * layout_.block_rows;
    scratch_bytes_ = std::max(scratch_bytes_, edge_index_bytes(layout_.data, rows, bytes));
    add_index(panel);
    for (std::int64_t slice = 0; slice < window.end_slice;) slice = add_sum(panel, slice);
  }

  void add_index(Panel& panel) {
    const EdgeWindow& window = panel.window;
    std::vector<cuda::IndexedSpan> spans;
    for (const EdgeWindow::Span& span : window.spans) {
      spans.push_back({span.chunk.empty() ? nullptr : span.chunk.data(), nullptr});
    }
    panel.indexed = {.layout = layout_,
                     .first_span = 0,
                     .span_count = std::ssize(spans),
                     .first_block = window.first_block,
                     .block_count = window.end_block - window.first_block,
                     .spans = copy_of(spans)};
    const std::int64_t rows = panel.indexed.rows(), first = window.first_block * layout_.block_rows;
    const std::int64_t end = std::min(first + rows, layout_.vertices);
    const std::int64_t edges = graph_.starts[static_cast<std::size_t>(end)] -
                               graph_.starts[static_cast<std::size_t>(first)];
    const auto words = [&](std::int64_t count) {
      return reinterpret_cast<std::uint32_t*>(take(4 * count));
    };
    panel.index = {words(rows + 1), words(ceil_div(rows, kIndexStrip)), words(edges), nullptr};
  }

  // Of the slices from this one on that are as wide; the one after them.
  std::int64_t add_sum(Panel& panel, std::int64_t slice) {
    const EdgeWindow& window = panel.window;
    const std::int64_t stride = to_.layout().slice_stride(slice);
    std::vector<const void*> sources;
    std::vector<void*> accumulators;
    std::int64_t end = slice;
    for (; end < window.end_slice && to_.layout().slice_stride(end) == stride; ++end) {
      for (std::int64_t span = 0; span < window.end_span(); ++span) {
        sources.push_back(from_.row(end, span * layout_.span_rows));
      }
      for (std::int64_t block = window.first_block; block < window.end_block; ++block) {
        accumulators.push_back(to_.row(end, block * layout_.block_rows));
      }
    }
    const std::int64_t first = window.first_block * layout_.block_rows;
    panel.sums.push_back(
        {.dtype = DType::kF32,
         .index = panel.index,
         .block_rows = layout_.block_rows,
         .block_count = panel.indexed.block_count,
         .rows = std::min(window.end_block * layout_.block_rows, layout_.vertices) - first,
         .span_count = window.end_span(),
         .slice_count = end - slice,
         .stride = stride,
         .sources = copy_of(sources),
         .accumulators = copy_of(accumulators),
         .begins = true});
    return end;
  }

  const Graph& graph_;
  std::unique_ptr<Backend> backend_;
  cuda::Device direct_;  // whose stream the kernels are launched on one by one
  const EdgeLayout layout_;
  Tensor from_, to_;
  EdgeProgram program_;
  std::unique_ptr<EdgeWork> work_;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::vector<Panel> panels_;
  std::unique_ptr<DeviceBuffer> scratch_;
  std::int64_t chunk_bytes_ = 0, scratch_bytes_ = 0;
};

std::string answer(Bench& bench, const std::string& what, const std::string& argument) {
  if (what == "write") {
    write_array(argument, bench.sums());
    return "{}";
  }
  const std::int64_t count = std::stoll(argument);
  if (what == "check") return fmt::format(R"({{"difference":{}}})", bench.check(count));
  const double seconds = what == "run"     ? bench.seconds_of(count, [&] { bench.run(); })
                         : what == "index" ? bench.seconds_of(count, [&] { bench.index(); })
                                           : bench.seconds_of(count, [&] { bench.gather(); });
  return fmt::format(R"({{"seconds":{}}})", seconds);
}

int main_of(const std::vector<std::string>& words) {
  if (words.size() == 6 && words[0] == "make") {
    write_graph(words[1], draw_graph(std::stoll(words[2]), std::stoll(words[3]),
                                     std::stoll(words[4]), std::stoull(words[5])));
    return 0;
  }
  if (words.size() != 3 || words[0] != "run") {
    std::cerr << "gather_bench make DIR VERTICES EDGES HUB SEED | run DIR COLUMNS\n";
    return 2;
  }
  const Graph graph = read_graph(words[1]);
  Bench bench(graph, std::stoll(words[2]));
  std::cout << bench.facts() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream text(line);
    std::string what, argument;
    text >> what >> argument;
    std::cout << answer(bench, what, argument) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace ooc::bench

int main(int count, char** words) {
  try {
    return ooc::bench::main_of({words + 1, words + count});
  } catch (const std::exception& error) {
    std::cerr << "gather_bench: " << error.what() << '\n';
    return 1;
  }
}
