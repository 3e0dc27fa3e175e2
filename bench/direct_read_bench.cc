// Reads every chunk of a dataset's file through storage/stores/direct_chunk_reader.h, a number of
// them at once, and prints what it took as one line of JSON. bench/direct_reads.py runs it beside
// fio.
//
//   direct_read_bench DATASET/features tensor --depth 8 [--threads] [--verify] [--passes N]
//   direct_read_bench DATASET/edges.in edges --list     the chunks' offsets and bytes
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/device/host_buffer.h"
#include "storage/stores/direct_chunk_reader.h"

namespace ooc::bench {
namespace {

struct Options {
  std::string path;
  ChunkFileKind kind = ChunkFileKind::kVertexTensor;
  unsigned depth = 8;
  int passes = 1;
  bool threads = false;
  bool verify = false;
  bool list = false;
};

// Reads that have completed, for the one thread that goes on with them.
class Completed {
 public:
  BlockCompletion completion(std::size_t slot) {
    return [this, slot](std::exception_ptr error) {
      const std::lock_guard lock(mutex_);
      slots_.emplace_back(slot, std::move(error));
      changed_.notify_one();
    };
  }
  std::size_t take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !slots_.empty(); });
    const auto [slot, error] = slots_.front();
    slots_.pop_front();
    if (error) std::rethrow_exception(error);
    return slot;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::size_t, std::exception_ptr>> slots_;
};

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::vector<std::uint64_t> chunks_of(const ChunkFileReader& file, int passes) {
  std::vector<std::uint64_t> chunks;
  for (int pass = 0; pass < passes; ++pass) {
    for (std::uint64_t i = 0; i < file.shape().chunk_count; ++i) {
      if (file.entry(i).bytes > 0) chunks.push_back(i);
    }
  }
  return chunks;
}

void read_chunks(const Options& options, const ChunkFileReader& file) {
  const std::vector<std::uint64_t> chunks = chunks_of(file, options.passes);
  std::size_t largest = 0;
  for (const std::uint64_t chunk : chunks) {
    largest = std::max<std::size_t>(largest, io_aligned(file.entry(chunk).bytes));
  }
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t buffer_bytes = (largest + kHugePage - 1) / kHugePage * kHugePage;
  std::vector<std::unique_ptr<HostBuffer>> buffers;
  for (unsigned i = 0; i < options.depth; ++i) {
    buffers.push_back(std::make_unique<HostBuffer>(buffer_bytes, "cpu"));
    std::fill_n(buffers.back()->data(), buffer_bytes, std::byte{1});
  }
  const auto io =
      make_block_io({.kind = options.threads ? BlockIoKind::kThreads : BlockIoKind::kBest,
                     .depth = options.depth});
  const DirectChunkReader reader(*io, file);
  Completed completed;
  std::vector<std::uint64_t> chunk_in(options.depth);
  std::size_t next = 0, done = 0;
  std::uint64_t bytes = 0;
  const auto submit = [&](std::size_t slot) {
    chunk_in[slot] = chunks[next++];
    reader.read(chunk_in[slot], buffers[slot]->data(), completed.completion(slot));
  };
  const double cpu_begin = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  while (next < std::min<std::size_t>(options.depth, chunks.size())) submit(next);
  for (; done < chunks.size(); ++done) {
    const std::size_t slot = completed.take();
    bytes += reader.payload(chunk_in[slot], buffers[slot]->data()).size();
    if (next < chunks.size()) submit(slot);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print(R"({{"way": "{}", "bytes": {}, "chunks": {}, "seconds": {}, "cpu_seconds": {}}})"
             "\n",
             io->name(), bytes, chunks.size(), seconds.count(), cpu_seconds() - cpu_begin);
}

Options parse(int argc, char** argv) {
  Options options;
  options.path = argv[1];
  if (std::string(argv[2]) == "edges") options.kind = ChunkFileKind::kEdges;
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--depth" && i + 1 < argc)
      options.depth = static_cast<unsigned>(std::atoi(argv[++i]));
    if (name == "--passes" && i + 1 < argc) options.passes = std::atoi(argv[++i]);
    options.threads |= name == "--threads";
    options.verify |= name == "--verify";
    options.list |= name == "--list";
  }
  return options;
}

}  // namespace
}  // namespace ooc::bench

int main(int argc, char** argv) {
  using namespace ooc;
  if (argc < 3) {
    fmt::print(stderr,
               "usage: direct_read_bench FILE tensor|edges [--depth N] [--passes N] "
               "[--threads] [--verify] [--list]\n");
    return 2;
  }
  try {
    const bench::Options options = bench::parse(argc, argv);
    const ChunkFileReader file(posix_file_system(), options.path, options.kind,
                               options.verify ? VerifyPolicy::kAlways : VerifyPolicy::kNever);
    if (!options.list) bench::read_chunks(options, file);
    for (std::uint64_t i = 0; options.list && i < file.shape().chunk_count; ++i) {
      if (file.entry(i).bytes > 0) {
        fmt::print("{} {}\n", file.entry(i).offset, file.entry(i).bytes);
      }
    }
  } catch (const Error& error) {
    fmt::print(stderr, "direct_read_bench: error: {}\n", error.what());
    return 1;
  }
}
