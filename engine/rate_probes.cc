#include "engine/rate_probes.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cpu_backend.h"
#include "kernels/gather_cpu.h"
#include "kernels/host_buffer.h"
#include "storage/aligned_vector.h"
#include "storage/errors.h"
#include "storage/tensor_layout.h"

namespace ooc {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Memory that is given back when it goes.
class Floats {
 public:
  Floats(std::int64_t count, float value)
      : buffer_(make_host_buffer(static_cast<std::size_t>(count) * sizeof(float), "cpu")),
        count_(count) {
    std::fill_n(data(), count, value);
  }
  float* data() const { return reinterpret_cast<float*>(buffer_->data()); }
  std::int64_t count() const { return count_; }

 private:
  std::unique_ptr<DeviceBuffer> buffer_;
  std::int64_t count_;
};

// As many as have so much memory each.
std::int64_t probe_workers(const RateOptions& options, std::int64_t bytes) {
  return std::clamp<std::int64_t>(options.memory_bytes / bytes, 1, options.workers);
}

// What `work` does in a second on all workers together, if so many of them do it: it is called
// again and again and returns how much it did.
double rate_of(const RateOptions& options, std::int64_t workers,
               const std::function<double(std::int64_t worker)>& work) {
  std::vector<double> rates(static_cast<std::size_t>(workers));
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < rates.size(); ++worker) {
    threads.emplace_back([&, worker] {
      const auto id = static_cast<std::int64_t>(worker);
      work(id);  // touches its memory
      const auto begin = Clock::now();
      double done = 0, seconds = 0;
      for (; seconds < options.seconds; seconds = seconds_since(begin)) done += work(id);
      rates[worker] = done / seconds;
    });
  }
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum * static_cast<double>(options.workers) / static_cast<double>(workers);
}

// More than the caches hold, where memory allows it.
std::int64_t uncached_bytes(const RateOptions& options) {
  const std::int64_t cache = std::max<std::int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
  return std::min(std::max<std::int64_t>(4 * cache, 64 << 20), options.memory_bytes / 2);
}

class StorageProbe {
 public:
  StorageProbe(BlockIo& io, const RateOptions& options)
      : io_(io),
        seconds_(options.seconds),
        file_(make_file(io, options.directory)),
        depth_(std::clamp<std::int64_t>(options.memory_bytes / kRequest, 1, kMostDepth)),
        buffers_(make_host_buffer(static_cast<std::size_t>(depth_ * kRequest), "cpu")) {}

  bool has_room() const { return file_ != nullptr; }
  // Bytes a second. What is read must have been written, or it comes from nowhere.
  double write() {
    const double rate = transfer([](std::int64_t) { return BlockRequest::Kind::kWrite; });
    written_ = std::min(next_, size());
    return rate;
  }
  double read() {
    return transfer([](std::int64_t) { return BlockRequest::Kind::kRead; });
  }
  double both() {
    return transfer([](std::int64_t index) {
      return index % 2 == 0 ? BlockRequest::Kind::kRead : BlockRequest::Kind::kWrite;
    });
  }

 private:
  static constexpr std::int64_t kRequest = 2 << 20;
  static constexpr std::int64_t kMostDepth = 16;
  static constexpr std::int64_t kFileBytes = 1 << 30;

  // Smaller where there is no room; null where there is none.
  static std::unique_ptr<BlockFile> make_file(BlockIo& io, const std::string& directory) {
    for (std::int64_t bytes = kFileBytes; bytes >= kRequest; bytes /= 4) {
      try {
        return io.create_temporary(directory, static_cast<std::uint64_t>(bytes));
      } catch (const IoError& error) {
        spdlog::debug("{}", error.what());
      }
    }
    return nullptr;
  }

  std::int64_t size() const { return static_cast<std::int64_t>(file_->size()); }

  // A buffer's next request is submitted when its last one is done, for about `seconds_`.
  double transfer(const std::function<BlockRequest::Kind(std::int64_t index)>& kind) {
    next_ = done_ = 0;
    const auto begin = Clock::now();
    const auto range = written_ > 0 ? written_ : size();
    std::function<void(std::int64_t)> submit = [&](std::int64_t buffer) {
      const std::int64_t offset = next_ % range;
      const BlockRequest::Kind what = kind(next_ / kRequest);
      next_ += kRequest;
      ++pending_;
      io_.submit({what, file_.get(), static_cast<std::uint64_t>(offset),
                  buffers_->data() + buffer * kRequest, static_cast<std::size_t>(kRequest),
                  [&, buffer](std::exception_ptr error) {
                    const std::lock_guard lock(mutex_);
                    if (error && !error_) error_ = error;
                    done_ += kRequest;
                    if (!error_ && seconds_since(begin) < seconds_) submit(buffer);
                    if (--pending_ == 0) all_done_.notify_all();
                  }});
    };
    std::unique_lock lock(mutex_);
    for (std::int64_t buffer = 0; buffer < depth_; ++buffer) submit(buffer);
    all_done_.wait(lock, [&] { return pending_ == 0; });
    if (error_) std::rethrow_exception(error_);
    return static_cast<double>(done_) / seconds_since(begin);
  }

  BlockIo& io_;
  double seconds_;
  std::unique_ptr<BlockFile> file_;
  std::int64_t depth_;
  std::unique_ptr<DeviceBuffer> buffers_;
  std::int64_t written_ = 0;
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::int64_t next_ = 0, done_ = 0, pending_ = 0;
  std::exception_ptr error_;
};

// Sums of rows of one slice: tiles of half an edge a row, block after block of a worker's own, as a
// propagation goes over the blocks of a span.
class GatherProbe {
 public:
  static constexpr std::int64_t kSpanRows = 65536, kBlockRows = 4096, kEdges = 2048;
  static constexpr std::int64_t kRowBytes = kSliceWidth * std::int64_t{sizeof(float)};
  static constexpr std::int64_t kBlockBytes = kBlockRows * kRowBytes, kMostBlocks = 256;
  static constexpr std::size_t kTiles = 64;

  GatherProbe(const RateOptions& options, std::int64_t workers)
      : blocks_(std::clamp<std::int64_t>(uncached_bytes(options) / (workers * kBlockBytes), 1,
                                         kMostBlocks)),
        sources_(kSpanRows * kSliceWidth, 1),
        accumulators_(workers * blocks_ * kBlockRows * kSliceWidth, 0) {
    std::minstd_rand random(1);
    tiles_.resize(kTiles);
    bytes_.resize(kTiles);
    for (std::size_t tile = 0; tile < kTiles; ++tile) {
      std::vector<LocalEdge> edges(kEdges);
      for (LocalEdge& edge : edges) {
        edge = {static_cast<std::uint16_t>(random() % kBlockRows),
                static_cast<std::uint16_t>(random() % kSpanRows)};
      }
      std::sort(edges.begin(), edges.end(), [](LocalEdge a, LocalEdge b) {
        return a.row != b.row ? a.row < b.row : a.source < b.source;
      });
      tiles_[tile] = encode_tile(edges, bytes_[tile]);
      attach_tile(tiles_[tile], bytes_[tile].data());
    }
  }

  // All blocks of a worker, once.
  double sum(std::int64_t worker) {
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const std::int64_t at = worker * blocks_ + block;
      const cpu::SumGroup::Entry entry{tiles_[static_cast<std::size_t>(at) % kTiles],
                                       sources_.data()};
      cpu::gather_sum<float>(
          {{&entry, 1}, accumulators_.data() + at * kBlockRows * kSliceWidth, kSliceWidth});
    }
    constexpr double kDensity = static_cast<double>(kEdges) / kBlockRows;
    const double folding = kBlockRows * (1 - std::exp(-kDensity));  // rows of a tile
    return static_cast<double>(blocks_ * kRowBytes) * (kEdges + 2 * folding);
  }

 private:
  std::int64_t blocks_;
  Floats sources_, accumulators_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<TileView> tiles_;
};

// A row group's rows through operators such as stand behind a propagation. Of one worker.
class RowProbe {
 public:
  static constexpr std::int64_t kRows = 2048, kCols = 128;
  static constexpr std::int64_t kBytes = kRows * kCols * std::int64_t{sizeof(float)};

  RowProbe(const Backend& backend, std::int64_t groups)
      : relu_(backend.row_kernel("relu", DType::kF32)),
        dropout_(backend.row_kernel("dropout", DType::kF32)),
        scale_(backend.row_kernel("scale_rows", DType::kF32)),
        add_(backend.row_kernel("add", DType::kF32)),
        multiply_(backend.row_kernel("matmul", DType::kF32)),
        sum_(backend.row_kernel("matmul_reduce", DType::kF32)),
        rows_(groups * kRows * kCols, 1),
        made_(3 * kRows * kCols, 1),
        matrix_(kCols * kCols, 0.01f),
        factor_(kRows, 0.5f),
        ids_(kRows, 1) {}

  // Bytes read and written.
  double elementwise() {
    const Matrix x = next_group(), a = made(0), b = made(1), c = made(2);
    const MatrixView factor = column(DType::kF32, factor_.data(), &factor_slice_);
    const MatrixView ids = column(DType::kI64, ids_.data(), &ids_slice_);
    call(relu_, {x.view()}, a.view(), {});
    call(dropout_, {a.view(), ids}, b.view(), {.value = 0.5});
    call(scale_, {b.view(), factor}, c.view(), {});
    call(add_, {b.view(), c.view()}, a.view(), {});
    return 9.0 * kBytes;
  }
  // Multiply-adds.
  double multiply() {
    const Matrix x = next_group(), a = made(0);
    call(multiply_, {x.view(), parameter()}, a.view(), {});
    return kRows * kCols * kCols;
  }
  double sum() {
    const Matrix x = next_group(), a = made(0);
    call(sum_, {x.view(), a.view()}, parameter(), {});
    return kRows * kCols * kCols;
  }

 private:
  struct Matrix {
    explicit Matrix(float* data) {
      for (std::size_t slice = 0; slice < slices.size(); ++slice) {
        slices[slice] = data + static_cast<std::int64_t>(slice) * kRows * kSliceWidth;
      }
    }
    MatrixView view() const {
      return {DType::kF32, kRows, kCols, kSliceWidth, kSliceWidth, 0, slices.data()};
    }
    std::array<void*, kCols / kSliceWidth> slices;
  };

  Matrix next_group() {
    const std::int64_t groups = rows_.count() / (kRows * kCols);
    return Matrix(rows_.data() + next_++ % groups * kRows * kCols);
  }
  Matrix made(std::int64_t index) { return Matrix(made_.data() + index * kRows * kCols); }
  MatrixView parameter() {
    matrix_slice_ = matrix_.data();
    return {DType::kF32, kCols, kCols, kCols, kCols, 0, &matrix_slice_};
  }
  static MatrixView column(DType dtype, void* data, void** slice) {
    *slice = data;
    return {dtype, kRows, 1, kSliceWidth, 1, 0, slice};
  }
  static void call(RowKernel kernel, const std::vector<MatrixView>& inputs,
                   const MatrixView& output, const Attributes& attributes) {
    kernel({inputs, {&output, 1}, attributes, {}});
  }

  RowKernel relu_, dropout_, scale_, add_, multiply_, sum_;
  Floats rows_, made_, matrix_, factor_;
  AlignedVector<std::int64_t> ids_;
  void* matrix_slice_ = nullptr;
  void* factor_slice_ = nullptr;
  void* ids_slice_ = nullptr;
  std::int64_t next_ = 0;
};

}  // namespace

void probe_storage(BlockIo& io, const RateOptions& options, MachineRates& rates) {
  StorageProbe storage(io, options);
  if (!storage.has_room()) return;
  rates.storage_write = storage.write();
  rates.storage_read = storage.read();
  rates.storage_both = storage.both();
}

double gather_rate(const RateOptions& options) {
  const std::int64_t workers = probe_workers(options, 2 * GatherProbe::kBlockBytes);
  GatherProbe gather(options, workers);
  return rate_of(options, workers, [&](std::int64_t worker) { return gather.sum(worker); });
}

void probe_rows(const RateOptions& options, MachineRates& rates) {
  constexpr std::int64_t kOwn = 4;  // groups that a worker holds beside the rows
  const std::int64_t workers = probe_workers(options, 2 * kOwn * RowProbe::kBytes);
  const std::int64_t groups =
      std::max<std::int64_t>(uncached_bytes(options) / (workers * RowProbe::kBytes), 1);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  std::vector<RowProbe> probes;
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    probes.emplace_back(*backend, groups);
  }
  const auto rate = [&](double (RowProbe::*work)()) {
    return rate_of(options, workers, [&](std::int64_t worker) {
      return (probes[static_cast<std::size_t>(worker)].*work)();
    });
  };
  rates.elementwise = rate(&RowProbe::elementwise);
  rates.multiply_adds = rate(&RowProbe::multiply);
  rates.row_sums = rate(&RowProbe::sum);
}

}  // namespace ooc
