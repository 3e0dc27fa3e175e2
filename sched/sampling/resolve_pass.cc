#include "sched/sampling/resolve_pass.h"

#include <algorithm>
#include <utility>

#include "storage/base/types.h"

namespace ooc {

struct ResolvePass::Range {
  // Requests of one vertex and batch.
  struct Group {
    std::uint32_t begin = 0;   // of the records
    std::uint32_t number = 0;  // in the batch; of a fresh one, counted from its range's first
    bool is_fresh = false;
  };
  KeyRange keys;
  Records asked;
  std::vector<Group> groups;
  std::vector<std::uint32_t> fresh;   // by batch
  std::vector<std::uint32_t> before;  // by batch: rows that it has before this range
  bool is_resolved = false;           // under the driver's lock
};

ResolvePass::ResolvePass(Driver& driver, const ResolveLists& lists, const ResolveLimits& limits,
                         std::span<std::uint32_t> rows, std::int64_t span_rows,
                         RecordBuffers* vertices)
    : driver_(driver),
      lists_(lists),
      limits_(limits),
      rows_(rows),
      span_rows_(span_rows),
      vertices_(vertices),
      counts_(static_cast<std::size_t>(driver.workers())),
      ranges_(
          cut_ranges(lists.asked, lists.requests, {0, ~std::uint64_t{0}}, limits.range_records)),
      begun_(ranges_.size()) {
  limits_.ranges_at_once = ranges_at_once(lists.asked, limits.ranges_at_once, limits.range_records);
  const auto open = [&](SortedRuns* runs) {
    return runs == nullptr
               ? nullptr
               : std::make_unique<RecordBuffers>(*runs, driver.workers(), limits.buffer_records);
  };
  fresh_ = open(lists.fresh);
  edges_ = open(lists.edges);
}

ResolvePass::~ResolvePass() { driver_.drain(); }

bool ResolvePass::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready) {
  return driver_.wait(
      lock, WaitCause::kWorkers, [] {}, ready);
}

bool ResolvePass::run() {
  std::size_t launched = 0;
  auto lock = driver_.lock();
  for (std::size_t at = 0; at < ranges_.size(); ++at) {
    while (launched < ranges_.size() && under_way_ < limits_.ranges_at_once) launch(launched++);
    if (launched == at) {
      if (!wait(lock, [&] { return under_way_ < limits_.ranges_at_once; })) return false;
      launch(launched++);
    }
    const std::shared_ptr<Range> range = begun_[at];
    if (!wait(lock, [&] { return range->is_resolved; })) return false;
    commit(*range);
    driver_.run([this, range] { number(*range); },
                [this, at] {
                  begun_[at] = nullptr;
                  --under_way_;
                });
  }
  if (!wait(lock, [&] { return under_way_ == 0; })) return false;
  lock.unlock();
  if (fresh_) fresh_->finish();
  if (edges_) edges_->finish();
  return true;
}

void ResolvePass::launch(std::size_t at) {
  const auto range = std::make_shared<Range>();
  range->keys = ranges_[at];
  begun_[at] = range;
  ++under_way_;
  driver_.run([this, range] { resolve(*range); }, [range] { range->is_resolved = true; });
}

// In order of ranges: numbers of fresh vertices begin where those of the ranges before ended.
void ResolvePass::commit(Range& range) {
  range.before.assign(rows_.begin(), rows_.end());
  for (std::size_t batch = 0; batch < rows_.size(); ++batch) rows_[batch] += range.fresh[batch];
}

void ResolvePass::resolve(Range& range) const {
  const KeyFields& fields = lists_.requests;
  lists_.asked.read(range.keys.first, range.keys.last, range.asked);
  std::vector<Records> known(lists_.known.size());
  std::vector<std::size_t> next(known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    lists_.known[i]->read(range.keys.first, range.keys.last, known[i]);
  }
  // Of the pair that `key` is of; pairs are looked for in order.
  const auto find = [&](std::uint64_t key) -> const std::uint64_t* {
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto& keys = known[i].keys;
      while (next[i] < keys.size() && keys[next[i]] < fields.first_of_pair(key)) ++next[i];
      if (next[i] < keys.size() && fields.same_pair(keys[next[i]], key)) return &keys[next[i]];
    }
    return nullptr;
  };
  range.fresh.assign(rows_.size(), 0);
  const auto& keys = range.asked.keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && fields.same_pair(keys[i - 1], keys[i])) continue;
    const std::uint64_t* const found = find(keys[i]);
    const auto number = found != nullptr ? static_cast<std::uint32_t>(fields.third(*found))
                                         : range.fresh[fields.second(keys[i])]++;
    range.groups.push_back({static_cast<std::uint32_t>(i), number, found == nullptr});
  }
}

void ResolvePass::number(const Range& range) {
  const KeyFields& fields = lists_.requests;
  const std::size_t worker = driver_.worker(), data_bytes = lists_.asked.data_bytes();
  std::vector<std::int64_t>& counts = counts_[worker];
  const auto& keys = range.asked.keys;
  for (std::size_t g = 0; g < range.groups.size(); ++g) {
    const Range::Group& group = range.groups[g];
    const std::uint64_t vertex = fields.first(keys[group.begin]);
    const std::uint64_t batch = fields.second(keys[group.begin]);
    const std::uint64_t number = group.number + (group.is_fresh ? range.before[batch] : 0);
    if (group.is_fresh) {
      const std::uint64_t key = fields.key(vertex, batch, number);
      if (fresh_) fresh_->add(worker, key);
      if (vertices_ != nullptr) vertices_->add(worker, key);
      const auto span = static_cast<std::size_t>(vertex / static_cast<std::uint64_t>(span_rows_));
      if (counts.size() <= span) counts.resize(span + 1);
      ++counts[span];
    }
    if (!edges_) continue;
    const std::size_t end = g + 1 < range.groups.size() ? range.groups[g + 1].begin : keys.size();
    for (std::size_t i = group.begin; i < end; ++i) {
      edges_->add(worker, lists_.numbered.key(batch, fields.third(keys[i]), number),
                  range.asked.data.data() + i * data_bytes);
    }
  }
}

std::vector<std::int64_t> ResolvePass::fresh_by_span(std::int64_t spans) const {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(spans));
  for (const std::vector<std::int64_t>& counts : counts_) {
    for (std::size_t span = 0; span < counts.size(); ++span) sums[span] += counts[span];
  }
  return sums;
}

}  // namespace ooc
