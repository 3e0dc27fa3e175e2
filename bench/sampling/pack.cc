#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/sampling/steps.h"
#include "kernels/device/host_buffer.h"
#include "storage/stores/direct_chunk_reader.h"

namespace ooc::bench {
namespace {

constexpr std::size_t kBuffer = 256 << 10;  // of a batch, one being filled and one on its way
constexpr std::int64_t kBlocks = 8;         // that are read at once

// Vertices that `least` batches or more ask for are as many as there is room for.
struct Asked {
  std::vector<std::uint32_t> counts;
  std::uint32_t least = 0;
  std::int64_t cold = 0;

  Asked(std::int64_t vertices, const Keys& keys, const Words& all, std::int64_t batches,
        double hot_share)
      : counts(static_cast<std::size_t>(vertices)), least(static_cast<std::uint32_t>(batches) + 1) {
    for (const std::uint64_t word : all) ++counts[keys.vertex(word)];
    std::vector<std::int64_t> histogram(static_cast<std::size_t>(batches) + 2);
    for (const std::uint32_t count : counts) ++histogram[count];
    auto room = static_cast<std::int64_t>(hot_share * static_cast<double>(vertices));
    while (least > 0 && room >= histogram[least]) room -= histogram[least--];
    ++least;
    for (const std::uint64_t word : all) cold += counts[keys.vertex(word)] < least ? 1 : 0;
  }
};

// Blocks of all columns, read while those before are worked on.
class Blocks {
 public:
  Blocks(BlockIo& io, const VertexTensorFile& tensor)
      : tensor_(tensor),
        reader_(io, tensor.file()),
        chunk_bytes_(io_aligned(static_cast<std::uint64_t>(layout().block_rows * kSliceWidth * 4))),
        memory_(2 * kBlocks * slices() * chunk_bytes_, "blocks") {}

  const TensorLayout& layout() const { return tensor_.layout(); }
  std::size_t row_bytes() const { return static_cast<std::size_t>(layout().cols) * 4; }
  void ask(std::int64_t first, std::size_t half) {
    const std::int64_t end = std::min(first + kBlocks, layout().block_count());
    for (std::int64_t block = first; block < end; ++block) {
      for (std::int64_t slice = 0; slice < layout().slice_count(); ++slice) {
        const std::int64_t chunk = vertex_chunk_of(layout(), tensor_.dtype(), block, slice);
        reader_.read(static_cast<std::uint64_t>(chunk), at(half, block - first, slice),
                     waits_[half].completion());
      }
    }
  }
  void wait(std::size_t half) { waits_[half].wait(); }
  // A row, counted from the first block's.
  void copy_row(std::size_t half, std::int64_t row, std::byte* to) const {
    for (std::int64_t slice = 0; slice < layout().slice_count(); ++slice) {
      const auto bytes = static_cast<std::size_t>(layout().slice_cols(slice)) * 4;
      const std::int64_t offset = row % layout().block_rows * layout().slice_stride(slice) * 4;
      std::memcpy(to, at(half, row / layout().block_rows, slice) + offset, bytes);
      to += bytes;
    }
  }

 private:
  std::size_t slices() const { return static_cast<std::size_t>(layout().slice_count()); }
  std::byte* at(std::size_t half, std::int64_t block, std::int64_t slice) const {
    const std::size_t index = (half * kBlocks + static_cast<std::size_t>(block)) * slices() +
                              static_cast<std::size_t>(slice);
    return memory_.data() + index * chunk_bytes_;
  }

  const VertexTensorFile& tensor_;
  DirectChunkReader reader_;
  std::size_t chunk_bytes_;
  HostBuffer memory_;
  BlockWait waits_[2];
};

// What batches are given goes to a file, a buffer at a time.
class BatchFiles {
 public:
  BatchFiles(BlockIo& io, std::size_t batches, std::size_t row_bytes, std::int64_t rows, bool disk)
      : io_(io),
        row_bytes_(row_bytes),
        full_(kBuffer / row_bytes * row_bytes),
        disk_(disk),
        memory_(2 * kBuffer * batches, "batches"),
        batches_(batches) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(rows) * row_bytes / full_ * kBuffer;
    file_ = io.create_temporary(".", disk ? bytes + kIoAlignment : kIoAlignment);
  }
  std::byte* place(std::size_t batch) { return buffer(batch) + batches_[batch].filled; }
  void add_row(std::size_t batch) {
    Batch& at = batches_[batch];
    if ((at.filled += row_bytes_) < full_) return;
    at.written.wait();
    if (disk_) {
      io_.submit({BlockRequest::Kind::kWrite, file_.get(), end_, buffer(batch), full_,
                  at.written.completion()});
    }
    end_ += kBuffer;
    at.filled = 0;
    at.half ^= 1;
  }
  double finish() {
    for (Batch& batch : batches_) batch.written.wait();
    return disk_ ? static_cast<double>(end_) : 0;
  }

 private:
  struct Batch {
    std::size_t filled = 0, half = 0;
    BlockWait written;
  };
  std::byte* buffer(std::size_t batch) {
    return memory_.data() + (2 * batch + batches_[batch].half) * kBuffer;
  }

  BlockIo& io_;
  std::size_t row_bytes_, full_;
  bool disk_;
  HostBuffer memory_;
  std::vector<Batch> batches_;
  std::unique_ptr<BlockFile> file_;
  std::uint64_t end_ = 0;
};

}  // namespace

void pack(const Dataset& dataset, const Keys& keys, const Words& all, std::int64_t batches,
          double hot_share, bool disk) {
  const Asked asked(dataset.vertices(), keys, all, batches, hot_share);
  fmt::print("{{\"hot from\": {}, \"cold share\": {:.3f}}}\n", asked.least,
             static_cast<double>(asked.cold) / static_cast<double>(all.size()));
  const auto io = make_block_io();
  Blocks blocks(*io, *dataset.tensor("features"));
  const TensorLayout& layout = blocks.layout();
  BatchFiles files(*io, static_cast<std::size_t>(batches), blocks.row_bytes(), asked.cold, disk);
  const double begin = now();
  std::size_t next = 0, half = 0;
  blocks.ask(0, half);
  for (std::int64_t first = 0; first < layout.block_count(); first += kBlocks, half ^= 1) {
    blocks.wait(half);
    blocks.ask(first + kBlocks, half ^ 1);
    const auto end = static_cast<std::uint64_t>((first + kBlocks) * layout.block_rows);
    for (; next < all.size() && keys.vertex(all[next]) < end; ++next) {
      const std::uint64_t vertex = keys.vertex(all[next]);
      if (asked.counts[vertex] >= asked.least) continue;
      const auto batch = static_cast<std::size_t>(keys.batch(all[next]));
      blocks.copy_row(half, static_cast<std::int64_t>(vertex) - first * layout.block_rows,
                      files.place(batch));
      files.add_row(batch);
    }
  }
  const double written = files.finish(), seconds = now() - begin;
  report("pack", seconds, static_cast<double>(asked.cold), "cold rows");
  const double bytes =
      static_cast<double>(layout.rows) * static_cast<double>(blocks.row_bytes()) + written;
  fmt::print("{{\"pack GB\": {:.2f}, \"GB/s\": {:.2f}}}\n", bytes * 1e-9, bytes / seconds * 1e-9);
}

}  // namespace ooc::bench
