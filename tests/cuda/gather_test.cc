#include <catch2/catch.hpp>
#include <random>
#include <utility>
#include <vector>

#include "kernels/edges/gather_cuda.h"
#include "tests/support/cuda/device_copies.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::test {
namespace {

using cuda::Device;

constexpr std::int64_t kBlockRows = 64, kBlocks = 2, kSpans = 40, kSpanRows = 50, kSlices = 2;

// An index, and what it sums; accumulators begin at 0.5.
template <class T>
struct Sums {
  std::vector<std::uint32_t> row_ptr{0}, neighbours;
  std::vector<float> weights;
  std::vector<std::vector<T>> sources, accumulators;  // slice after slice

  Sums(std::int64_t stride, bool weighted, unsigned seed) {
    std::mt19937 random(seed);
    const auto draw = [&] { return static_cast<float>(random() % 20001) / 10000.0f - 1.0f; };
    for (std::int64_t row = 0; row < kBlocks * kBlockRows; ++row) {
      // The first hub takes more pieces than a block of threads sums at once, from some spans.
      // Edges of the last one come from the last spans alone.
      const bool late = row == 71;
      const unsigned hub = row == 5 ? 9000 : row == 69 || late ? 4097 : row == 70 ? 2000 : 0;
      unsigned edges = row % 7 == 3 ? 0 : random() % 20 + hub;
      for (std::uint32_t span = late ? kSpans - 3 : 0; span < kSpans; ++span) {
        const unsigned of_span = span + 1 == kSpans ? edges : random() % (edges / 4 + 1);
        for (std::uint32_t e = 0; e < of_span; ++e) {
          const auto neighbour = static_cast<std::uint32_t>(random() % kSpanRows);
          neighbours.push_back(cuda::IndexedEdge(span, neighbour, e % cuda::kPieceEdges == 0).word);
          if (weighted) weights.push_back(draw());
        }
        edges -= of_span;
      }
      row_ptr.push_back(static_cast<std::uint32_t>(neighbours.size()));
    }
    for (std::int64_t i = 0; i < kSlices * kSpans; ++i) {
      sources.emplace_back();
      for (std::int64_t j = 0; j < kSpanRows * stride; ++j) {
        sources.back().push_back(static_cast<T>(draw()));
      }
    }
    accumulators.assign(kSlices * kBlocks,
                        std::vector<T>(static_cast<std::size_t>(kBlockRows * stride), T(0.5)));
  }

  // Piece after piece, and edge after edge in each.
  std::vector<std::vector<T>> expected(std::int64_t stride, bool begins) const {
    std::vector<std::vector<T>> sums = accumulators;
    for (std::int64_t slice = 0; slice < kSlices; ++slice) {
      for (std::int64_t row = 0; row < kBlocks * kBlockRows; ++row) {
        T* const to = sums[static_cast<std::size_t>(slice * kBlocks + row / kBlockRows)].data() +
                      row % kBlockRows * stride;
        for (std::int64_t col = 0; col < stride; ++col) {
          to[col] = sum_of(slice, row, begins ? T(0) : to[col], stride, col);
        }
      }
    }
    return sums;
  }

 private:
  T sum_of(std::int64_t slice, std::int64_t row, T before, std::int64_t stride,
           std::int64_t col) const {
    T sum = before, piece = 0;
    for (std::uint32_t e = row_ptr[static_cast<std::size_t>(row)];
         e < row_ptr[static_cast<std::size_t>(row) + 1]; ++e) {
      const cuda::IndexedEdge edge = neighbours[e];
      if (edge.begins_piece()) sum += std::exchange(piece, T(0));
      const T x = sources[static_cast<std::size_t>(slice * kSpans + edge.span())]
                         [static_cast<std::size_t>(edge.row() * stride + col)];
      const volatile T product = weights.empty() ? x : static_cast<T>(weights[e]) * x;
      piece += product;
    }
    return sum + piece;
  }
};

template <class T>
void check_sums(Device& device, std::int64_t stride, bool weighted, bool begins, unsigned seed) {
  const Sums<T> on(stride, weighted, seed);
  DeviceCopies copies(device);
  std::vector<const void*> sources;
  std::vector<void*> accumulators;
  for (const auto& rows : on.sources) sources.push_back(copies.of(rows));
  for (const auto& rows : on.accumulators) accumulators.push_back(copies.of(rows));
  cuda::GatherSum sum{
      .dtype = sizeof(T) == 4 ? DType::kF32 : DType::kF64,
      .index = {copies.of(on.row_ptr), nullptr, copies.of(on.neighbours), copies.of(on.weights)},
      .block_rows = kBlockRows,
      .block_count = kBlocks,
      .rows = kBlocks * kBlockRows,
      .span_count = kSpans,
      .slice_count = kSlices,
      .stride = stride,
      .begins = begins};
  sum.sources = copies.of(sources);
  sum.accumulators = copies.of(accumulators);
  cuda::gather_sum(sum, device.queue(QueueKind::kCompute).stream());
  const auto expected = on.expected(stride, begins);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::vector<T> found(expected[i].size());
    copies.back(found, static_cast<const T*>(accumulators[i]));
    CHECK((found == expected[i]));
  }
}

}  // namespace

TEST_CASE("cuda edges: sums of neighbours' rows, piece by piece, to the bit") {
  for_each_order(1, {}, [] {
    Device device(0, 0);
    unsigned seed = 0;
    for (const std::int64_t stride : {1, 5, 8, 24, 32}) {
      const bool weighted = ++seed % 2 == 0, begins = seed % 3 != 1;
      INFO("stride " << stride << ", weighted " << weighted << ", begins " << begins);
      check_sums<float>(device, stride, weighted, begins, seed);
      check_sums<double>(device, stride, !weighted, begins, seed);
    }
  });
}

}  // namespace ooc::test
