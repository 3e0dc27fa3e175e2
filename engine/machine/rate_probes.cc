#include "engine/machine/rate_probes.h"

#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "engine/machine/storage_probe.h"
#include "kernels/device/cpu_backend.h"
#include "kernels/device/host_buffer.h"
#include "kernels/edges/gather_cpu.h"
#include "sched/plan/passes/stages.h"
#include "storage/base/aligned_vector.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"
#include "storage/format/zero_packing.h"

namespace ooc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kFilling = 2.5;  // of the time of a rate: a second, in which disks write 1 GiB

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Memory that is given back when it goes.
class Floats {
 public:
  Floats(std::int64_t count, float value)
      : buffer_(static_cast<std::size_t>(count) * sizeof(float), "cpu"), count_(count) {
    std::fill_n(data(), count, value);
  }
  float* data() const { return reinterpret_cast<float*>(buffer_.data()); }
  std::int64_t count() const { return count_; }
  std::span<std::byte> bytes() const {
    return {buffer_.data(), static_cast<std::size_t>(count_) * sizeof(float)};
  }

 private:
  HostBuffer buffer_;
  std::int64_t count_;
};

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Threads that measure the same at once.
class Workers {
 public:
  // As many as have so much memory each.
  Workers(const RateOptions& options, std::int64_t bytes)
      : count_(std::clamp<std::int64_t>(options.memory_bytes / bytes, 1, options.workers)),
        all_(options.workers) {}
  std::int64_t count() const { return count_; }

  // What `work` does in a second on all workers together, each with a processor of its own as far
  // as there are any: it is called again and again and returns how much it did. `before` is called
  // before each time, and doesn't count.
  double rate(
      double seconds, const std::function<double(std::int64_t worker)>& work,
      const std::function<void(std::int64_t worker)>& before = [](std::int64_t) {}) const {
    std::vector<double> rates(static_cast<std::size_t>(count_));
    std::vector<std::thread> threads;
    for (std::size_t worker = 0; worker < rates.size(); ++worker) {
      threads.emplace_back([&, worker] {
        const auto id = static_cast<std::int64_t>(worker);
        work(id);  // touches its memory
        const auto begin = Clock::now();
        double done = 0, taken = 0;
        do {
          before(id);
          taken -= thread_seconds();
          done += work(id);
          taken += thread_seconds();
        } while (seconds_since(begin) < seconds);
        rates[worker] = done / taken;
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto processors = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
    return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(count_) *
           static_cast<double>(std::min(all_, processors));
  }

 private:
  std::int64_t count_, all_;
};

// Threads that do the same again and again, until this goes.
class Load {
 public:
  Load(std::int64_t threads, const std::function<void(std::int64_t thread)>& work) {
    for (std::int64_t thread = 0; thread < threads; ++thread) {
      threads_.emplace_back([thread, work](const std::stop_token& stop) {
        while (!stop.stop_requested()) work(thread);
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

std::int64_t cache_bytes() { return std::max<std::int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE)); }

// More than the caches hold, where memory allows it: half of it, for probes hold some of their own.
std::int64_t uncached_bytes(const RateOptions& options) {
  constexpr std::int64_t kLeast = 4 << 20, kUsual = 64 << 20;
  const std::int64_t bytes =
      std::min(std::max(4 * cache_bytes(), kUsual), options.memory_bytes / 2);
  return std::max(kLeast, bytes);
}

// What storage is measured with.
std::int64_t request_bytes(const RateOptions& options) {
  return std::clamp<std::int64_t>(options.memory_bytes / 4, 2 << 20, 32 << 20);
}

// Takes bytes out of all caches.
void evict([[maybe_unused]] const float* data, [[maybe_unused]] std::int64_t bytes) {
#ifdef __x86_64__
  constexpr std::int64_t kCacheLine = 64;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  for (std::int64_t at = 0; at < bytes; at += kCacheLine) _mm_clflush(begin + at);
  _mm_mfence();
#endif
}

// Sums of rows of one slice: tiles of half an edge a row, block after block of a worker's own, as a
// propagation goes over the blocks of a span.
class GatherProbe {
 public:
  static constexpr std::int64_t kSpanRows = 65536, kBlockRows = 4096, kEdges = 2048;
  static constexpr std::int64_t kRowBytes = kSliceWidth * std::int64_t{sizeof(float)};
  static constexpr std::int64_t kBlockBytes = kBlockRows * kRowBytes, kMostBlocks = 256;
  // A prime: a block takes another tile each time, or its folding rows alone would stay in cache.
  static constexpr std::size_t kTiles = 61;

  // `rows`: of all workers.
  GatherProbe(const Floats& rows, std::int64_t workers)
      : blocks_(std::min(rows.count() / (workers * kBlockRows * kSliceWidth), kMostBlocks)),
        sources_(kSpanRows * kSliceWidth, 1),
        accumulators_(rows.data()),
        next_tile_(static_cast<std::size_t>(workers), 0) {
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

  // A server's caches may hold more than there is memory for here, but not the sums of millions of
  // rows beside what streams in.
  void evict_blocks(std::int64_t worker) {
    evict(accumulators_ + worker * blocks_ * kBlockRows * kSliceWidth, blocks_ * kBlockBytes);
  }

  // All blocks of a worker, once.
  double sum(std::int64_t worker) {
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const std::int64_t at = worker * blocks_ + block;
      const std::size_t tile = next_tile_[static_cast<std::size_t>(worker)]++ % kTiles;
      const cpu::SumGroup::Entry entry{tiles_[tile], sources_.data()};
      cpu::gather_sum<float>(
          {{&entry, 1}, accumulators_ + at * kBlockRows * kSliceWidth, kSliceWidth});
    }
    constexpr double kDensity = static_cast<double>(kEdges) / kBlockRows;
    const double folding = kBlockRows * (1 - std::exp(-kDensity));  // rows of a tile
    return static_cast<double>(blocks_ * kRowBytes) * (kEdges + 2 * folding);
  }

 private:
  std::int64_t blocks_;
  Floats sources_;
  float* accumulators_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<TileView> tiles_;
  std::vector<std::size_t> next_tile_;  // by worker
};

// A row group's rows through operators such as stand after a propagation. Of one worker.
class RowProbe {
 public:
  static constexpr std::int64_t kRows = 2048, kCols = 128;
  static constexpr std::int64_t kElements = kRows * kCols;
  static constexpr std::int64_t kBytes = kElements * std::int64_t{sizeof(float)};
  static constexpr std::int64_t kGroups = 4;  // that it holds itself, about

  // `rows`: of `groups` row groups, one after the other.
  RowProbe(float* rows, std::int64_t groups)
      : relu_(cpu_row_kernel("relu", DType::kF32)),
        dropout_(cpu_row_kernel("dropout", DType::kF32)),
        scale_(cpu_row_kernel("scale_rows", DType::kF32)),
        add_(cpu_row_kernel("add", DType::kF32)),
        multiply_(cpu_row_kernel("matmul", DType::kF32)),
        sum_(cpu_row_kernel("matmul_reduce", DType::kF32)),
        rows_(rows),
        groups_(groups),
        made_(3 * kElements, 1),
        sparse_(kElements, 0),
        matrices_(2 * kCols * kCols, 0.01f),
        factor_(kRows, 0.5f),
        ids_(kRows, 1) {
    std::minstd_rand random(1);
    const auto half = [&] { return static_cast<float>(random() % 2); };
    std::generate_n(sparse_.data(), kElements, half);
  }

  // Bytes read and written.
  double elementwise() {
    const Matrix x = next_group(), a = made(0), b = made(1), c = made(2);
    const MatrixView factor = column(DType::kF32, factor_.data());
    call(relu_, {x.view()}, a.view(), {});
    call(scale_, {a.view(), factor}, b.view(), {});
    call(add_, {a.view(), b.view()}, c.view(), {});
    return 7.0 * kBytes;
  }
  // Elements.
  double dropout() {
    const Matrix a = made(0), b = made(1);
    const MatrixView ids = column(DType::kI64, ids_.data());
    call(dropout_, {a.view(), ids}, b.view(), {.value = 0.5});
    return kElements;
  }
  // Bytes packed, or unpacked, in turn: half of the elements are zeros, as after ReLU.
  double pack() {
    if (packed_from_ == 0) {
      packed_from_ = pack_zeros(sparse_.bytes());
      OOC_CHECK(packed_from_ > 0);
    } else {
      OOC_CHECK(unpack_zeros(sparse_.bytes(), std::exchange(packed_from_, 0)));
    }
    return kBytes;
  }
  // They come from storage, or from other processors.
  void evict_sparse() { evict(sparse_.data(), kBytes); }
  // Multiply-adds, as plans count them.
  double multiply() {
    const Matrix x = next_group(), a = made(0);
    call(multiply_, {x.view(), matrix(0)}, a.view(), {});
    return kRows * product_work(kCols, kCols);
  }
  double sum() {
    const Matrix x = next_group(), a = made(0);
    call(sum_, {x.view(), a.view()}, matrix(1), {});
    return kRows * product_work(kCols, kCols);
  }

 private:
  struct Matrix {
    float* data;

    MatrixView view() const {
      auto* first = reinterpret_cast<std::byte*>(data);
      constexpr std::int64_t kStride = kRows * kSliceWidth * std::int64_t{sizeof(float)};
      return {DType::kF32,
              kRows,
              kCols,
              kSliceWidth,
              kSliceWidth,
              0,
              {first, kStride, first + (kCols / kSliceWidth - 1) * kStride}};
    }
  };

  Matrix next_group() { return Matrix(rows_ + next_++ % groups_ * kElements); }
  Matrix made(std::int64_t index) { return Matrix(made_.data() + index * kElements); }
  MatrixView matrix(std::int64_t index) {
    return {DType::kF32,
            kCols,
            kCols,
            kCols,
            kCols,
            0,
            one_slice(matrices_.data() + index * kCols * kCols)};
  }
  static MatrixView column(DType dtype, void* data) {
    return {dtype, kRows, 1, kSliceWidth, 1, 0, one_slice(data)};
  }
  static void call(RowKernel kernel, const std::vector<MatrixView>& inputs,
                   const MatrixView& output, const Attributes& attributes) {
    kernel({inputs, {&output, 1}, attributes, {}});
  }

  RowKernel relu_, dropout_, scale_, add_, multiply_, sum_;
  float* rows_;
  std::int64_t groups_;
  Floats made_, sparse_, matrices_, factor_;
  AlignedVector<std::int64_t> ids_;
  std::int64_t next_ = 0;
  std::size_t packed_from_ = 0;  // 0: it isn't
};

}  // namespace

// What computes works on the same rows, in turn; storage has memory of its own, for the rows are
// read meanwhile.
struct RateProbes::State {
  State(BlockIo& io, const RateOptions& options)
      : rows(uncached_bytes(options) / std::int64_t{sizeof(float)}, 1),
        requests(request_bytes(options) / std::int64_t{sizeof(float)}, 0),
        storage(io, options.directory, requests.bytes()),
        edge_workers(options, 2 * GatherProbe::kBlockBytes),
        gather(rows, edge_workers.count()),
        row_workers(options, 4 * RowProbe::kGroups * RowProbe::kBytes) {
    const std::int64_t groups = rows.count() / (row_workers.count() * RowProbe::kElements);
    for (std::int64_t worker = 0; worker < row_workers.count(); ++worker) {
      probes.emplace_back(rows.data() + worker * groups * RowProbe::kElements, groups);
    }
  }

  Floats rows;
  Floats requests;
  StorageProbe storage;
  Workers edge_workers;
  GatherProbe gather;
  Workers row_workers;
  std::vector<RowProbe> probes;  // by worker
};

RateProbes::RateProbes(BlockIo& io, const RateOptions& options)
    : state_(std::make_unique<State>(io, options)) {
  if (has_storage()) state_->storage.fill(kFilling * options.seconds);
}

RateProbes::~RateProbes() = default;

bool RateProbes::has_storage() const { return state_->storage.has_file(); }

void RateProbes::measure(double seconds, MachineRates& rates) {
  State& state = *state_;
  const auto probe = [&](std::int64_t worker) -> RowProbe& {
    return state.probes[static_cast<std::size_t>(worker)];
  };
  if (has_storage()) {
    // Where storage is what a pass waits for, its workers wait, too: half of them compute.
    const Load load((state.row_workers.count() + 1) / 2,
                    [&](std::int64_t worker) { probe(worker).elementwise(); });
    rates.storage_write = state.storage.write(seconds);
    rates.storage_read = state.storage.read(seconds);
    rates.storage_both = state.storage.both(seconds);
  }
  rates.gather = state.edge_workers.rate(
      seconds, [&](std::int64_t worker) { return state.gather.sum(worker); },
      [&](std::int64_t worker) { state.gather.evict_blocks(worker); });
  const auto rate = [&](double (RowProbe::*work)()) {
    return state.row_workers.rate(seconds,
                                  [&](std::int64_t worker) { return (probe(worker).*work)(); });
  };
  rates.elementwise = rate(&RowProbe::elementwise);
  rates.dropout = rate(&RowProbe::dropout);
  rates.packing = state.row_workers.rate(
      seconds, [&](std::int64_t worker) { return probe(worker).pack(); },
      [&](std::int64_t worker) { probe(worker).evict_sparse(); });
  rates.multiply_adds = rate(&RowProbe::multiply);
  rates.row_sums = rate(&RowProbe::sum);
}

}  // namespace ooc
