#include "sched/sampling/row_counts.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ooc {
namespace {

// Counts of a range of keys are exact to so many records a run.
constexpr std::int64_t kInexactOfRun = 512;

class StretchCutter {
 public:
  StretchCutter(const RowRequests& requests, const RowCountOptions& options)
      : requests_(requests),
        options_(options),
        most_(static_cast<std::uint64_t>(stretch_words(
            options.words_at_once, static_cast<std::int64_t>(requests.words.run_count())))) {}

  std::vector<RowStretch> cut() {
    cut_blocks(0, ceil_div(options_.vertices, options_.block_rows));
    return std::move(stretches_);
  }

 private:
  std::uint64_t bound(std::int64_t first, std::int64_t end) const {
    return requests_.words.size_bound(requests_.fields.begin(static_cast<std::uint64_t>(first)),
                                      requests_.fields.last(static_cast<std::uint64_t>(end - 1)));
  }
  void cut_blocks(std::int64_t first, std::int64_t end) {
    const std::int64_t first_row = first * options_.block_rows;
    const std::int64_t end_row = std::min(end * options_.block_rows, options_.vertices);
    if (first_row >= end_row || bound(first_row, end_row) == 0) return;
    if (end - first == 1) return cut_rows(first_row, end_row);
    const std::int64_t middle = first + (end - first) / 2;
    cut_blocks(first, middle);
    cut_blocks(middle, end);
  }
  void cut_rows(std::int64_t first, std::int64_t end) {
    const std::uint64_t words = bound(first, end);
    if (words == 0) return;
    if (words <= most_ || end - first == 1) return stretches_.push_back({first, end, 0});
    const std::int64_t middle = first + (end - first) / 2;
    cut_rows(first, middle);
    cut_rows(middle, end);
  }

  const RowRequests& requests_;
  const RowCountOptions& options_;
  std::uint64_t most_;
  std::vector<RowStretch> stretches_;
};

// What a worker counts of the stretches that it reads.
struct WorkerCounts {
  Records words;
  std::vector<std::int64_t> counts;
};

// count(stretch, its words, a worker's counts); returns the sums of all workers' counts. None:
// stopped.
template <class Count>
std::optional<std::vector<std::int64_t>> scan(Driver& driver, const RowRequests& requests,
                                              std::vector<RowStretch>& stretches, std::size_t size,
                                              const Count& count) {
  std::vector<WorkerCounts> workers(static_cast<std::size_t>(driver.workers()));
  try {
    auto lock = driver.lock();
    bool goes_on = true;
    for (std::size_t i = 0; goes_on && i < stretches.size(); ++i) {
      driver.run(
          [&driver, &requests, &workers, &count, size, stretch = &stretches[i]] {
            WorkerCounts& worker = workers[driver.worker()];
            if (worker.counts.empty()) worker.counts.resize(size);
            requests.read(stretch->first, stretch->end, worker.words);
            count(*stretch, worker.words.keys, worker.counts);
          },
          [] {});
      goes_on = driver.wait_for_room(lock, [] {});
    }
    goes_on =
        goes_on && driver.wait(
                       lock, WaitCause::kWorkers, [] {}, [&driver] { return driver.tasks() == 0; });
    if (!goes_on) {
      lock.unlock();
      driver.drain();
      return std::nullopt;
    }
  } catch (...) {
    driver.drain();
    throw;
  }
  std::vector<std::int64_t> sums(size);
  for (const WorkerCounts& worker : workers) {
    for (std::size_t i = 0; i < worker.counts.size(); ++i) sums[i] += worker.counts[i];
  }
  return sums;
}

// What one reading counts: by number of askers the vertices, and of each batch the rows of those
// with fewer askers than `few`, as far as there is memory for them.
struct Askers {
  std::size_t batches = 0, few = 0;

  explicit Askers(std::size_t of) : batches(of), few(few_askers(of)) {}
  std::size_t size() const { return batches + 1 + batches * few; }
  std::size_t rows(std::size_t batch, std::size_t askers) const {
    return batches + 1 + batch * few + askers;
  }
};

std::optional<std::vector<std::int64_t>> count_askers(Driver& driver, const RowRequests& requests,
                                                      const Askers& askers,
                                                      std::vector<RowStretch>& stretches) {
  return scan(driver, requests, stretches, askers.size(),
              [&](RowStretch& stretch, std::span<const std::uint64_t> keys,
                  std::vector<std::int64_t>& counts) {
                stretch.words = keys.size();
                requests.for_each_vertex(keys, [&](std::int64_t, auto words) {
                  ++counts[words.size()];
                  if (words.size() >= askers.few) return;
                  for (const std::uint64_t word : words) {
                    ++counts[askers.rows(requests.fields.second(word), words.size())];
                  }
                });
              });
}

// By batch; by another reading where the first one didn't count them.
std::optional<std::vector<std::int64_t>> count_cold(Driver& driver, const RowRequests& requests,
                                                    const Askers& askers,
                                                    const std::vector<std::int64_t>& counted,
                                                    RowCounts& counts) {
  const auto least = static_cast<std::size_t>(counts.least);
  if (counts.hot_rows == 0) {
    return std::vector<std::int64_t>(requests.batch_rows.begin(), requests.batch_rows.end());
  }
  if (least <= std::max<std::size_t>(1, askers.few)) {
    std::vector<std::int64_t> rows(askers.batches);
    for (std::size_t batch = 0; batch < askers.batches; ++batch) {
      for (std::size_t i = 1; i < least; ++i) rows[batch] += counted[askers.rows(batch, i)];
    }
    return rows;
  }
  return scan(
      driver, requests, counts.stretches, askers.batches,
      [&](RowStretch&, std::span<const std::uint64_t> keys, std::vector<std::int64_t>& rows) {
        requests.for_each_vertex(keys, [&](std::int64_t, auto words) {
          if (words.size() >= least) return;
          for (const std::uint64_t word : words) ++rows[requests.fields.second(word)];
        });
      });
}

}  // namespace

std::uint64_t RowCounts::most_words() const {
  std::uint64_t most = 0;
  for (const RowStretch& stretch : stretches) most = std::max(most, stretch.words);
  return most;
}

std::size_t few_askers(std::size_t batches) {
  constexpr std::size_t kMost = 64, kMemory = 1 << 17;
  return std::min(kMost, kMemory / std::max<std::size_t>(1, batches));
}

std::int64_t stretch_words(std::int64_t words_at_once, std::int64_t runs) {
  return words_at_once + kInexactOfRun * runs;
}

std::optional<RowCounts> count_rows(Driver& driver, const RowRequests& requests,
                                    const RowCountOptions& options) {
  RowCounts counts;
  counts.stretches = StretchCutter(requests, options).cut();
  const Askers askers(requests.batch_rows.size());
  const auto counted = count_askers(driver, requests, askers, counts.stretches);
  if (!counted) return std::nullopt;
  std::erase_if(counts.stretches, [](const RowStretch& stretch) { return stretch.words == 0; });
  counts.least = requests.batches() + 1;
  while (counts.least > 1) {
    const std::int64_t rows = (*counted)[static_cast<std::size_t>(counts.least - 1)];
    if (counts.hot_rows + rows > options.hot_rows) break;
    counts.hot_rows += rows;
    --counts.least;
  }
  auto cold = count_cold(driver, requests, askers, *counted, counts);
  if (!cold) return std::nullopt;
  counts.cold_rows = std::move(*cold);
  return counts;
}

}  // namespace ooc
