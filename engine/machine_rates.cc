#include "engine/machine_rates.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "kernels/blas.h"
#include "kernels/gather_cpu.h"
#include "storage/aligned_vector.h"
#include "storage/checksum.h"
#include "storage/errors.h"
#include "storage/tensor_layout.h"

namespace ooc {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What `work` does in a second on all workers together: it is called again and again and returns
// how much it did.
double rate_of(const RateOptions& options, const std::function<double(std::int64_t worker)>& work) {
  std::vector<double> rates(static_cast<std::size_t>(options.workers));
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
  return sum;
}

class StorageProbe {
 public:
  StorageProbe(BlockIo& io, const RateOptions& options)
      : io_(io),
        seconds_(options.seconds),
        file_(make_file(io, options.directory)),
        depth_(static_cast<std::size_t>(std::clamp<std::int64_t>(
            options.memory_bytes / static_cast<std::int64_t>(kRequest), 1, kMostDepth))),
        buffers_(depth_ * kRequest, std::byte{1}) {}

  bool has_room() const { return file_ != nullptr; }
  double write() { return transfer(BlockRequest::Kind::kWrite, file_->size()); }
  double read() { return transfer(BlockRequest::Kind::kRead, written_); }

 private:
  static constexpr std::size_t kRequest = std::size_t{2} << 20;
  static constexpr std::int64_t kMostDepth = 16;
  static constexpr std::size_t kFileBytes = std::size_t{256} << 20;

  // Smaller where there is no room; null where there is none.
  static std::unique_ptr<BlockFile> make_file(BlockIo& io, const std::string& directory) {
    for (std::size_t bytes = kFileBytes; bytes >= kRequest; bytes /= 4) {
      try {
        return io.create_temporary(directory, bytes);
      } catch (const IoError& error) {
        spdlog::debug("{}", error.what());
      }
    }
    return nullptr;
  }

  // Bytes a second; at least one round of requests, at most `limit` bytes.
  double transfer(BlockRequest::Kind kind, std::size_t limit) {
    const auto begin = Clock::now();
    std::size_t offset = 0;
    while (offset < limit && (offset == 0 || seconds_since(begin) < seconds_)) {
      BlockWait wait;
      for (std::size_t i = 0; i < depth_ && offset < limit; ++i, offset += kRequest) {
        io_.submit({kind, file_.get(), offset, buffers_.data() + i * kRequest, kRequest,
                    wait.completion()});
      }
      wait.wait();
    }
    if (kind == BlockRequest::Kind::kWrite) written_ = offset;
    return static_cast<double>(offset) / seconds_since(begin);
  }

  BlockIo& io_;
  double seconds_;
  std::unique_ptr<BlockFile> file_;
  std::size_t depth_;
  AlignedVector<std::byte> buffers_;
  std::size_t written_ = 0;
};

// Sums of rows of 128 bytes, drawn from a tensor that no cache holds where memory allows it.
class GatherProbe {
 public:
  explicit GatherProbe(const RateOptions& options) {
    const std::int64_t cache = std::max<std::int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
    const std::int64_t bytes = std::min(4 * cache, options.memory_bytes / 2);
    spans_ = std::max<std::int64_t>(1, bytes / (kSpanRows * kRowBytes));
    sources_.assign(static_cast<std::size_t>(spans_ * kSpanRows * kSliceWidth), 1);
    accumulators_.assign(static_cast<std::size_t>(options.workers * kBlockRows * kSliceWidth), 0);
    std::minstd_rand random(1);
    std::vector<LocalEdge> edges(kEdges);
    for (LocalEdge& edge : edges) {
      edge = {static_cast<std::uint16_t>(random() % kBlockRows),
              static_cast<std::uint16_t>(random() % kSpanRows)};
    }
    std::sort(edges.begin(), edges.end(), [](LocalEdge a, LocalEdge b) {
      return a.row != b.row ? a.row < b.row : a.source < b.source;
    });
    tile_ = encode_tile(edges, bytes_);
    attach_tile(tile_, bytes_.data());
  }

  // Sums the rows of every span; the bytes that plans count for it (Pass::bytes_moved).
  double sum(std::int64_t worker) {
    for (std::int64_t span = 0; span < spans_; ++span) {
      // Each worker is somewhere else.
      const std::int64_t at = (span + worker * 5) % spans_;
      const cpu::SumGroup::Entry entry{tile_, sources_.data() + at * kSpanRows * kSliceWidth};
      cpu::gather_sum<float>(
          {{&entry, 1}, accumulators_.data() + worker * kBlockRows * kSliceWidth, kSliceWidth});
    }
    return static_cast<double>(spans_ * kEdges * 3 * kRowBytes);
  }

 private:
  static constexpr std::int64_t kSpanRows = 65536, kBlockRows = 4096, kEdges = 65536;
  static constexpr std::int64_t kRowBytes = kSliceWidth * std::int64_t{sizeof(float)};

  std::int64_t spans_ = 0;
  AlignedVector<float> sources_, accumulators_;
  std::vector<std::byte> bytes_;
  TileView tile_;
};

double multiply_rate(const RateOptions& options) {
  constexpr std::int64_t kRows = 512, kWidth = 128;
  struct Operands {
    AlignedVector<float> a = AlignedVector<float>(kRows * kWidth, 1);
    AlignedVector<float> b = AlignedVector<float>(kWidth * kWidth, 1);
    AlignedVector<float> c = AlignedVector<float>(kRows * kWidth);
  };
  std::vector<Operands> operands(static_cast<std::size_t>(options.workers));
  return rate_of(options, [&](std::int64_t worker) {
    Operands& own = operands[static_cast<std::size_t>(worker)];
    Gemm<float> call;
    call.m = kRows;
    call.n = call.k = kWidth;
    call.a = own.a.data();
    call.b = own.b.data();
    call.c = own.c.data();
    call.lda = call.ldb = call.ldc = kWidth;
    gemm(call);
    return static_cast<double>(kRows * kWidth * kWidth);
  });
}

struct Rate {
  const char* name;
  double MachineRates::*member;
};
constexpr Rate kRates[] = {{"storage_read", &MachineRates::storage_read},
                           {"storage_write", &MachineRates::storage_write},
                           {"memory", &MachineRates::memory},
                           {"multiply_adds", &MachineRates::multiply_adds}};

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line;
  }
  return "";
}

std::string cache_path(const RateOptions& options, const std::string& cache) {
  struct stat status {};
  ::stat(options.directory.c_str(), &status);
  const std::string key = fmt::format("{} {} {}", processor(), options.workers,
                                      static_cast<std::uint64_t>(status.st_dev));
  return join_path(cache,
                   fmt::format("rates-{:016x}.json", checksum64(std::as_bytes(std::span(key)))));
}

bool read_rates(FileSystem& files, const std::string& path, MachineRates& rates) {
  try {
    if (!files.exists(path)) return false;
    const std::vector<std::byte> bytes = read_file(files, path);
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const Json json = Json::parse(text, text + bytes.size());
    for (const Rate& rate : kRates) {
      rates.*rate.member = json.at(rate.name).get<double>();
      if (!std::isfinite(rates.*rate.member) || rates.*rate.member <= 0) return false;
    }
    return true;
  } catch (const std::exception& error) {
    spdlog::debug("{}: {}", path, error.what());
    return false;
  }
}

void write_rates(FileSystem& files, const std::string& cache, const std::string& path,
                 const MachineRates& rates) {
  try {
    Json json;
    for (const Rate& rate : kRates) json[rate.name] = rates.*rate.member;
    const std::string text = json.dump(2) + "\n";
    files.create_directories(cache);
    write_file_atomically(files, path, std::as_bytes(std::span(text)));
  } catch (const Error& error) {
    spdlog::debug("measured rates are not kept: {}", error.what());
  }
}

}  // namespace

MachineRates measure_rates(BlockIo& io, const RateOptions& options) {
  MachineRates rates;
  {
    StorageProbe storage(io, options);
    if (storage.has_room()) {
      rates.storage_write = storage.write();
      rates.storage_read = storage.read();
    }
  }
  {
    GatherProbe gather(options);
    rates.memory = rate_of(options, [&](std::int64_t worker) { return gather.sum(worker); });
  }
  rates.multiply_adds = multiply_rate(options);
  return rates;
}

MachineRates machine_rates(FileSystem& files, BlockIo& io, const RateOptions& options,
                           const std::string& cache) {
  const std::string path = cache.empty() ? "" : cache_path(options, cache);
  MachineRates rates;
  if (!cache.empty() && read_rates(files, path, rates)) return rates;
  rates = measure_rates(io, options);
  if (!cache.empty()) write_rates(files, cache, path, rates);
  return rates;
}

std::string rates_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return join_path(cache, "ooc");
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? join_path(home, ".cache/ooc") : "";
}

}  // namespace ooc
