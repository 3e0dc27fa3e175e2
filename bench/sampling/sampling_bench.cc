// What sampling from disk takes, step by step, on a dataset: sampled edges of each hop by a
// sequential reading of edges.out; sorting and merging what is asked for; packing the rows that
// batches need. Prints one line of JSON a step.
//
//   sampling_bench DATASET.ooc --seeds 300000 --batch 1000 --fanouts 25,10 [--disk] [--hot SHARE]
#include <fmt/format.h>
#include <hwy/contrib/sort/vqsort.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/sampling/steps.h"
#include "kernels/device/host_buffer.h"
#include "kernels/sampling/neighbour_draws.h"
#include "kernels/sampling/neighbour_lists.h"
#include "storage/base/counter_random.h"
#include "storage/dataset/dataset.h"
#include "storage/edges/sorted_runs.h"
#include "storage/stores/direct_chunk_reader.h"

namespace ooc::bench {
namespace {

struct Options {
  std::string dataset;
  std::int64_t seeds = 300000, batch = 1000;
  std::vector<std::size_t> fanouts{25, 10};
  bool disk = false;
  double hot = 0.2;  // of the rows
};

// The edge chunks of a few spans, in memory or read while others are worked on.
class Chunks {
 public:
  Chunks(const EdgeFile& file, bool disk)
      : file_(file), disk_(disk), io_(make_block_io()), reader_(*io_, file.file()) {
    const EdgeLayout& layout = file.layout();
    std::size_t bytes = 0;
    for (std::int64_t span = 0; span < layout.span_count(); ++span) {
      begins_.push_back(bytes);
      for (std::int64_t p = 0; p < layout.panel_count(); ++p) {
        bytes += reader_.buffer_bytes(chunk(span, p));
      }
      if (disk && (span + 1) % kSpans == 0) bytes = 0;
      most_ = std::max(most_, bytes);
    }
    if (!disk) most_ = bytes;
    for (auto& buffer : buffers_) buffer = std::make_unique<HostBuffer>(most_ + (8 << 20), "spans");
    if (disk) return;
    for (std::int64_t span = 0; span < layout.span_count(); ++span) submit(span, 0);
    waits_[0].wait();
  }
  static constexpr std::int64_t kSpans = 16;
  // Asks for spans [first, first + kSpans) into buffer `which`.
  void ask(std::int64_t first, int which) {
    if (!disk_) return;
    const std::int64_t end = std::min(first + kSpans, file_.layout().span_count());
    for (std::int64_t span = first; span < end; ++span) submit(span, which);
  }
  void wait(int which) { waits_[which].wait(); }
  std::span<const std::byte> at(std::int64_t span, std::int64_t panel, int which) const {
    std::size_t offset = begins_[static_cast<std::size_t>(span)];
    for (std::int64_t p = 0; p < panel; ++p) offset += reader_.buffer_bytes(chunk(span, p));
    return {buffers_[disk_ ? which : 0]->data() + offset, file_.chunk_bytes(span, panel)};
  }

 private:
  std::uint64_t chunk(std::int64_t span, std::int64_t panel) const {
    return static_cast<std::uint64_t>(file_.chunk_of(span, panel));
  }
  void submit(std::int64_t span, int which) {
    std::size_t offset = begins_[static_cast<std::size_t>(span)];
    for (std::int64_t p = 0; p < file_.layout().panel_count(); ++p) {
      if (file_.chunk_bytes(span, p) == 0) continue;
      reader_.read(chunk(span, p), buffers_[which]->data() + offset, waits_[which].completion());
      offset += reader_.buffer_bytes(chunk(span, p));
    }
  }
  const EdgeFile& file_;
  bool disk_;
  std::unique_ptr<BlockIo> io_;
  DirectChunkReader reader_;
  std::vector<std::size_t> begins_;
  std::size_t most_ = 0;
  std::unique_ptr<HostBuffer> buffers_[2];
  BlockWait waits_[2];
};

void sort_words(Words& words) {
  // Halves of a worker each, then one merge: what runs outside memory do.
  const auto middle = words.begin() + static_cast<std::ptrdiff_t>(words.size() / 2);
  tbb::parallel_for(0, 2, [&](int half) {
    hwy::Sorter sorter;
    const std::size_t begin = half == 0 ? 0 : words.size() / 2;
    const std::size_t end = half == 0 ? words.size() / 2 : words.size();
    sorter(words.data() + begin, end - begin, hwy::SortAscending());
  });
  Words merged(words.size());
  std::merge(words.begin(), middle, middle, words.end(), merged.begin());
  words.swap(merged);
}

// The range of words whose vertices are in [first, end).
std::pair<std::size_t, std::size_t> range_of(const Words& words, const Keys& keys,
                                             std::int64_t first, std::int64_t end,
                                             std::int64_t vertices) {
  const auto at = [&](std::int64_t vertex) {
    if (vertex >= vertices) return words.size();
    const std::uint64_t key = keys.key(static_cast<std::uint64_t>(vertex), 0, 0);
    return static_cast<std::size_t>(std::lower_bound(words.begin(), words.end(), key) -
                                    words.begin());
  };
  return {at(first), at(end)};
}

struct Worker {
  NeighbourLists lists;
  std::vector<std::uint8_t> asks;
  std::vector<std::uint32_t> ordinals;  // by request, as many as it may take
  std::vector<std::uint32_t> counts;    // by request
  std::vector<std::uint32_t> before;    // by vertex: edges in earlier chunks
  Words out;
};
using Workers = tbb::enumerable_thread_specific<Worker>;

// The edges that the requests choose: (neighbour, batch, local number of the asker).
Words expand(Chunks& chunks, const EdgeFile& file, const Keys& keys,
             const std::vector<std::uint32_t>& degrees, const Words& requests, std::size_t fanout,
             std::uint64_t epoch) {
  const EdgeLayout& layout = file.layout();
  Workers workers;
  const auto draw = [&](Worker& worker, std::int64_t first, std::size_t begin, std::size_t end) {
    worker.asks.assign(static_cast<std::size_t>(layout.span_rows), 0);
    worker.before.assign(static_cast<std::size_t>(layout.span_rows), 0);
    worker.ordinals.resize((end - begin) * fanout);
    worker.counts.resize(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t vertex = keys.vertex(requests[i]);
      worker.asks[vertex - static_cast<std::uint64_t>(first)] = 1;
      const std::uint32_t degree = degrees[vertex];
      worker.counts[i - begin] = std::min(degree, static_cast<std::uint32_t>(fanout));
      draw_distinct(
          asker_key(epoch + keys.batch(requests[i]), vertex), degree,
          std::span(worker.ordinals).subspan((i - begin) * fanout, worker.counts[i - begin]));
    }
  };
  const auto run = [&](std::int64_t span, int which) {
    Worker& worker = workers.local();
    const std::int64_t first = span * layout.span_rows;
    const auto [begin, end] =
        range_of(requests, keys, first, first + layout.span_rows, layout.vertices);
    if (begin == end) return;
    draw(worker, first, begin, end);
    for (std::int64_t panel = 0; panel < layout.panel_count(); ++panel) {
      const std::span<const std::byte> bytes = chunks.at(span, panel, which);
      if (bytes.empty()) continue;
      const std::vector<PanelTile> tiles = panel_tiles(layout, panel, bytes);
      worker.lists.build(layout, tiles, worker.asks, {});
      for (std::size_t i = begin; i < end; ++i) {
        const auto local = static_cast<std::int64_t>(keys.vertex(requests[i])) - first;
        const auto neighbours = worker.lists.neighbours(local);
        const std::uint32_t before = worker.before[static_cast<std::size_t>(local)];
        const auto ordinals =
            std::span(worker.ordinals).subspan((i - begin) * fanout, worker.counts[i - begin]);
        for (auto at = std::lower_bound(ordinals.begin(), ordinals.end(), before);
             at != ordinals.end() && *at - before < neighbours.size(); ++at) {
          worker.out.push_back(
              keys.key(neighbours[*at - before], keys.batch(requests[i]), keys.local(requests[i])));
        }
      }
      for (std::int64_t v = 0; v < layout.span_rows; ++v) {
        worker.before[static_cast<std::size_t>(v)] +=
            static_cast<std::uint32_t>(worker.lists.neighbours(v).size());
      }
    }
  };
  chunks.ask(0, 0);
  for (std::int64_t at = 0, which = 0; at < layout.span_count(); at += Chunks::kSpans, which ^= 1) {
    chunks.wait(static_cast<int>(which));
    chunks.ask(at + Chunks::kSpans, static_cast<int>(which ^ 1));
    const std::int64_t end = std::min(at + Chunks::kSpans, layout.span_count());
    tbb::parallel_for(at, end, [&](std::int64_t span) { run(span, static_cast<int>(which)); });
  }
  Words edges;
  std::size_t size = 0;
  for (const Worker& worker : workers) size += worker.out.size();
  edges.reserve(size);
  for (Worker& worker : workers) {
    edges.insert(edges.end(), worker.out.begin(), worker.out.end());
    Words().swap(worker.out);
  }
  return edges;
}

// What `edges` find that batches don't have yet gets numbers; every edge becomes
// (batch, asker, neighbour), by its batch. Both are sorted.
struct Resolved {
  Words fresh;    // (vertex, batch, number)
  Words settled;  // (batch, asker's number, neighbour's number)
};
Resolved resolve(const Keys& keys, const Words& edges, const Words& known,
                 std::vector<std::uint64_t>& counts) {
  Resolved out;
  out.settled.reserve(edges.size());
  const int half = (64 - keys.batch_bits) / 2;
  std::size_t k = 0;
  for (std::size_t i = 0; i < edges.size();) {
    const std::uint64_t group = edges[i] >> keys.local_bits();
    while (k < known.size() && known[k] >> keys.local_bits() < group) ++k;
    const bool is_known = k < known.size() && known[k] >> keys.local_bits() == group;
    const std::uint64_t batch = keys.batch(edges[i]);
    const std::uint64_t number = is_known ? keys.local(known[k]) : counts[batch]++;
    if (!is_known) out.fresh.push_back(group << keys.local_bits() | number);
    for (; i < edges.size() && edges[i] >> keys.local_bits() == group; ++i) {
      out.settled.push_back(batch << (64 - keys.batch_bits) | keys.local(edges[i]) << half |
                            number);
    }
  }
  return out;
}

void run(const Options& options) {
  const Dataset dataset = Dataset::open(posix_file_system(), options.dataset, VerifyPolicy::kNever);
  const EdgeFile& file = dataset.edge_file(Direction::kOut);
  const std::int64_t batches = ceil_div(options.seeds, options.batch);
  const Keys keys{
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(dataset.vertices() - 1))),
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(batches)))};
  Chunks chunks(file, options.disk);
  Words fresh;
  const CounterRandom random(1, 1);
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(batches));
  std::vector<bool> taken(static_cast<std::size_t>(dataset.vertices()));
  for (std::uint64_t i = 0; std::ssize(fresh) < options.seeds; ++i) {
    const auto v = static_cast<std::size_t>(random.below(i, dataset.vertices()));
    if (taken[v]) continue;
    taken[v] = true;
    const std::size_t batch = fresh.size() / static_cast<std::size_t>(options.batch);
    fresh.push_back(keys.key(v, batch, counts[batch]++));
  }
  sort_words(fresh);
  Words known = fresh;
  std::vector<std::uint32_t> degrees(static_cast<std::size_t>(dataset.vertices()));
  {
    std::vector<std::int32_t> rows(65536 * kDegreeColumns);
    for (std::int64_t v = 0; v < dataset.vertices(); v += 65536) {
      const std::int64_t count = std::min<std::int64_t>(65536, dataset.vertices() - v);
      dataset.tensor("degrees")->read_rows(v, count, rows.data());
      for (std::int64_t i = 0; i < count; ++i) {
        degrees[static_cast<std::size_t>(v + i)] = static_cast<std::uint32_t>(
            rows[static_cast<std::size_t>(i * kDegreeColumns + kInDegree)] +
            rows[static_cast<std::size_t>(i * kDegreeColumns + kSelfLoops)]);
      }
    }
  }
  const double begin = now();
  for (std::size_t hop = 0; hop < options.fanouts.size(); ++hop) {
    double start = now();
    Words edges = expand(chunks, file, keys, degrees, fresh, options.fanouts[hop], 7);
    double seconds = now() - start;
    report("route", seconds, static_cast<double>(edges.size()), "sampled edges");
    fmt::print("{{\"requests\": {}, \"ns per edge of the graph\": {:.2f}}}\n", fresh.size(),
               seconds / static_cast<double>(dataset.edges()) * 1e9);
    start = now();
    sort_words(edges);
    report("sort", now() - start, static_cast<double>(edges.size()), "words");
    start = now();
    Resolved resolved = resolve(keys, edges, known, counts);
    report("resolve", now() - start, static_cast<double>(edges.size()), "words");
    start = now();
    sort_words(resolved.settled);
    report("sort by batch", now() - start, static_cast<double>(resolved.settled.size()), "words");
    fresh = std::move(resolved.fresh);
    Words merged(known.size() + fresh.size());
    std::merge(known.begin(), known.end(), fresh.begin(), fresh.end(), merged.begin());
    known.swap(merged);
  }
  report("all routes", now() - begin, static_cast<double>(known.size()), "vertices of batches");
  pack(dataset, keys, known, batches, options.hot, options.disk);
}

}  // namespace
}  // namespace ooc::bench

int main(int argc, char** argv) {
  ooc::bench::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return std::string(argv[++i]); };
    if (word == "--seeds") {
      options.seeds = std::stoll(value());
    } else if (word == "--batch") {
      options.batch = std::stoll(value());
    } else if (word == "--disk") {
      options.disk = true;
    } else if (word == "--hot") {
      options.hot = std::stod(value());
    } else if (word == "--fanouts") {
      options.fanouts.clear();
      std::string list = value();
      for (std::size_t at = 0; at < list.size(); at = list.find(',', at) + 1) {
        options.fanouts.push_back(std::stoul(list.substr(at)));
        if (list.find(',', at) == std::string::npos) break;
      }
    } else {
      options.dataset = word;
    }
  }
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 2);
  ooc::bench::run(options);
}
