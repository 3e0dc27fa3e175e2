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
    if (words <= most_ || end - first == 1) return stretches_.push_back({first, end});
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

// Vertices by the number of their askers.
std::optional<std::vector<std::int64_t>> count_askers(Driver& driver, const RowRequests& requests,
                                                      std::vector<RowStretch>& stretches) {
  const auto most = static_cast<std::size_t>(requests.batches());
  return scan(
      driver, requests, stretches, most + 1,
      [&](RowStretch&, std::span<const std::uint64_t> keys, std::vector<std::int64_t>& counts) {
        requests.for_each_vertex(keys, [&](std::int64_t, auto words) { ++counts[words.size()]; });
      });
}

// Makes those with so many askers hot, and counts those with one fewer, by stretch.
std::optional<std::vector<std::int64_t>> choose_most_asked(Driver& driver,
                                                           const RowRequests& requests,
                                                           std::vector<RowStretch>& stretches,
                                                           std::size_t least, HotRows& hot) {
  std::vector<std::int64_t> fewer(stretches.size());
  const auto done = scan(driver, requests, stretches, 0,
                         [&](RowStretch& stretch, std::span<const std::uint64_t> keys, auto&) {
                           std::int64_t& of_stretch =
                               fewer[static_cast<std::size_t>(&stretch - stretches.data())];
                           requests.for_each_vertex(keys, [&](std::int64_t vertex, auto words) {
                             if (words.size() >= least) hot.choose(vertex);
                             of_stretch += words.size() + 1 == least ? 1 : 0;
                           });
                         });
  if (!done) return std::nullopt;
  return fewer;
}

bool choose_hot(Driver& driver, const RowRequests& requests, std::vector<RowStretch>& stretches,
                HotRows& hot) {
  const auto counted = count_askers(driver, requests, stretches);
  if (!counted) return false;
  std::size_t least = counted->size();
  std::int64_t room = hot.most_rows();
  while (least > 1 && (*counted)[least - 1] <= room) room -= (*counted)[--least];
  const auto fewer = choose_most_asked(driver, requests, stretches, least, hot);
  if (!fewer) return false;
  if (least > 1 && room > 0) {
    std::vector<RowStretch> chosen;
    for (std::size_t i = 0; i < stretches.size() && (*fewer)[i] <= room; ++i) {
      if ((*fewer)[i] == 0) continue;
      chosen.push_back(stretches[i]);
      room -= (*fewer)[i];
    }
    const auto done = scan(driver, requests, chosen, 0,
                           [&](RowStretch&, std::span<const std::uint64_t> keys, auto&) {
                             requests.for_each_vertex(keys, [&](std::int64_t vertex, auto words) {
                               if (words.size() + 1 == least) hot.choose(vertex);
                             });
                           });
    if (!done) return false;
  }
  hot.finish_choice(least == 1);
  return true;
}

// By batch, and hot rows in the end.
std::optional<std::vector<std::int64_t>> count_cold(Driver& driver, const RowRequests& requests,
                                                    std::vector<RowStretch>& stretches,
                                                    const HotRows& hot) {
  const auto batches = static_cast<std::size_t>(requests.batches());
  return scan(driver, requests, stretches, batches + 1,
              [&](RowStretch& stretch, std::span<const std::uint64_t> keys,
                  std::vector<std::int64_t>& rows) {
                stretch.words = keys.size();
                requests.for_each_vertex(keys, [&](std::int64_t vertex, auto words) {
                  if (hot.is_hot(vertex)) {
                    ++rows[batches];
                    stretch.is_read |= !hot.is_here(hot.index(vertex));
                    return;
                  }
                  stretch.is_read = true;
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

std::int64_t stretch_words(std::int64_t words_at_once, std::int64_t runs) {
  return words_at_once + kInexactOfRun * runs;
}

std::optional<RowCounts> count_rows(Driver& driver, const RowRequests& requests,
                                    const RowCountOptions& options, HotRows& hot) {
  RowCounts counts;
  counts.stretches = StretchCutter(requests, options).cut();
  if (!hot.is_chosen()) {
    hot.forget_choice();  // what a stopped one left
    if (!choose_hot(driver, requests, counts.stretches, hot)) return std::nullopt;
  }
  auto rows = count_cold(driver, requests, counts.stretches, hot);
  if (!rows) return std::nullopt;
  counts.hot_rows = rows->back();
  rows->pop_back();
  counts.cold_rows = std::move(*rows);
  std::erase_if(counts.stretches, [](const RowStretch& stretch) { return stretch.words == 0; });
  return counts;
}

}  // namespace ooc
