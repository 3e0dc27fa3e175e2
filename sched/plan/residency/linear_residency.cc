#include "sched/plan/residency/linear_residency.h"

#include <algorithm>
#include <cmath>

#include "sched/plan/io_chunks.h"

namespace ooc {
namespace {

constexpr double kTolerance = 1e-6;  // ten times the solver's
// Of I/O chunks, at most, by which shares of tensors and of destination ranges of them differ.
constexpr std::int64_t kPadding = 16 << 10;

// Bytes are in MiB here, so that numbers are of one size.
double scaled(double bytes) { return bytes / (1 << 20); }
double scaled(std::int64_t bytes) { return scaled(static_cast<double>(bytes)); }

std::int64_t memory_of(const PlanProblem& problem, const Timeline& line, std::int64_t end) {
  const PlannedTensor& tensor = tensor_of(problem, line);
  return rows_bytes(tensor, line.first_block, end, 0, tensor.layout.slice_count());
}

// Rounding keeps during >= keep, up to the solver's tolerance.
void lower_keep(const Timeline& line, ResidentPrefix& levels) {
  for (int i = 0; i < line.interval_count(); ++i) {
    std::int64_t& keep = levels.keep[static_cast<std::size_t>(i)];
    keep = std::min(keep, levels.during[static_cast<std::size_t>(i)]);
    if (line.end_of(i) < 0) continue;
    keep = std::min(keep, levels.during[static_cast<std::size_t>(line.end_of(i))]);
  }
}

}  // namespace

ResidencyLp::ResidencyLp(const PlanProblem& problem, Slots all_slot_counts, Zeros zeros)
    : problem_(problem), size_(all_slot_counts), zeros_(zeros) {
  const auto passes = static_cast<std::size_t>(problem.draft().pass_count());
  memory_.resize(passes);
  used_.resize(passes);
  read_.resize(passes);
  written_.resize(passes);
  constant_.resize(passes);
  for (std::size_t t = 0; t < problem.timelines().size(); ++t) add_tensor(static_cast<int>(t));
  for (const Direction direction : {Direction::kIn, Direction::kOut}) add_edges(direction);
  for (const InPlaceAlias& alias : problem.aliases()) add_alias(alias);
  const auto apart = streamed_apart(problem.draft(), problem.share());
  for (std::size_t t = 0; t < apart.size(); ++t) {
    for (const Access& access : apart[t]) {
      const std::int64_t bytes =
          streamed_bytes(problem.builder(), problem.draft(), problem.share(), access.pass, t);
      constant_[static_cast<std::size_t>(access.pass)] += scaled(access.sweeps * bytes);
    }
  }
  for (int p = 0; p < problem.draft().pass_count(); ++p) add_pass(p);
  if (problem.arena().bytes == 0) return;
  for (int p = 0; p < problem.draft().pass_count(); ++p) {
    const auto at = static_cast<std::size_t>(p);
    const double room = all_slot_counts == Slots::kLeast ? scaled(problem.arena().bytes + kPadding)
                                                         : scaled(problem.arena().bytes - kPadding);
    program_.at_most(memory_[at], room - used_[at]);
  }
}

void ResidencyLp::minimise_bytes() {
  for (std::size_t p = 0; p < read_.size(); ++p) {
    for (const auto& [variable, bytes] : read_[p]) program_.add_cost(variable, bytes);
    for (const auto& [variable, bytes] : written_[p]) program_.add_cost(variable, bytes);
    constant_cost_ += constant_[p];
  }
  if (size_ == Slots::kLeast) return;
  // What saves nothing leaves its memory to slots.
  constexpr double kLittle = 1e-5;
  for (const Share& share : shares_) {
    const Timeline& line = problem_.timelines()[static_cast<std::size_t>(share.timeline)];
    program_.add_cost(share.variable, kLittle * scaled(memory_of(problem_, line, line.end_block)));
  }
}

void ResidencyLp::minimise_seconds(const std::vector<double>& compute_seconds,
                                   const TransferRates& rates) {
  const double mib = 1 << 20;
  // A pass may read in one phase and write in another.
  const double both_ways = std::max(rates.read, rates.both);
  for (std::size_t p = 0; p < read_.size(); ++p) {
    const int seconds = program_.add_variable(1, true);
    program_.at_least({{seconds, 1}}, compute_seconds[p]);
    std::vector<LinearProgram::Term> reads{{seconds, 1}}, writes = reads, both = reads;
    for (const auto& [variable, bytes] : read_[p]) {
      reads.emplace_back(variable, -bytes * mib / rates.read);
      both.emplace_back(variable, -bytes * mib / both_ways);
    }
    for (const auto& [variable, bytes] : written_[p]) {
      writes.emplace_back(variable, -bytes * mib / rates.write);
      both.emplace_back(variable, -bytes * mib / both_ways);
    }
    program_.at_least(reads, constant_[p] * mib / rates.read);
    program_.at_least(writes, 0);
    program_.at_least(both, constant_[p] * mib / both_ways);
  }
}

bool ResidencyLp::solve(const Bounds& bounds) {
  problem_.builder().check_stop();
  values_ = program_.solve(bounds);
  return !values_.empty();
}

std::optional<ResidencyLp::Branch> ResidencyLp::branch() const {
  constexpr double kLeastMissing = 1e-5;
  const SlotRow* worst = nullptr;
  double most = kLeastMissing;
  for (const SlotRow& slot_counts : slot_rows_) {
    if (value(slot_counts.held) > 1 - kTolerance) continue;
    const double missing = slot_counts.bytes * (1 - value(slot_counts.there));
    if (missing > most) worst = &slot_counts;
    most = std::max(most, missing);
  }
  if (worst == nullptr) return std::nullopt;
  return Branch{{{worst->held, 1, 1}}, {{worst->there, 1, 1}, {worst->held, 0, worst->most}}};
}

std::optional<ResidencyLp::Rounding> ResidencyLp::rounding() const {
  std::optional<Rounding> found;
  double nearest = 1;
  for (const Share& share : shares_) {
    const Timeline& line = problem_.timelines()[static_cast<std::size_t>(share.timeline)];
    const double at = value(share.variable);
    const std::int64_t level = level_of(line, at);
    if (level == line.end_block) continue;
    const double below = share_of(line, level);
    const double above = share_of(line, whole_blocks(line, level + line.quantum));
    const double distance = std::min(at - below, above - at);
    if (distance <= kTolerance || distance >= nearest) continue;
    nearest = distance;
    const double nearer = at - below < above - at ? below : above;
    found = {{share.variable, nearer, nearer}, {share.variable, below, below}};
  }
  return found;
}

ResidentSet ResidencyLp::residency() const {
  ResidentSet out = problem_.empty_residency();
  for (std::size_t t = 0; t < out.tensors.size(); ++t) {
    const Timeline& line = problem_.timelines()[t];
    for (std::size_t i = 0; i < keep_[t].size(); ++i) {
      out.tensors[t].keep[i] = level_of(line, value(keep_[t][i]));
    }
    for (std::size_t i = 0; i < during_[t].size(); ++i) {
      out.tensors[t].during[i] = level_of(line, value(during_[t][i]));
    }
    lower_keep(line, out.tensors[t]);
  }
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    const auto at = static_cast<std::size_t>(direction);
    const double share = value(edges_[at]);
    const std::int64_t all = problem_.edges().chunk_count();
    const auto memory = static_cast<double>(problem_.memory().edge_range(direction, all));
    const std::int64_t above = problem_.edges().memory(direction, first_chunk(problem_, direction));
    out.edge_chunks[at] = share > 1 - kTolerance
                              ? all
                              : problem_.edges().chunks_within(
                                    direction, above + static_cast<std::int64_t>(share * memory));
  }
  return out;
}

// I/O chunks are alike but for the tensor's last one.
double ResidencyLp::share_of(const Timeline& line, std::int64_t level) const {
  if (level >= line.end_block) return 1;
  return static_cast<double>(memory_of(problem_, line, level)) /
         static_cast<double>(memory_of(problem_, line, line.end_block));
}

std::int64_t ResidencyLp::level_of(const Timeline& line, double share) const {
  if (share > 1 - kTolerance) return line.end_block;
  const std::int64_t first = whole_blocks(line, line.first_block + line.quantum);
  const double step = share_of(line, first);
  const auto steps = static_cast<std::int64_t>((share + kTolerance) / step);
  const std::int64_t most = (line.end_block - 1 - line.first_block) / line.quantum;
  return line.first_block + std::min(steps, most) * line.quantum;
}

int ResidencyLp::add_share(int timeline) {
  shares_.push_back({program_.add_variable(0), timeline});
  return shares_.back().variable;
}

void ResidencyLp::add_tensor(int t) {
  const Timeline& line = problem_.timelines()[static_cast<std::size_t>(t)];
  const PlannedTensor& tensor = tensor_of(problem_, line);
  const double bytes = scaled(payload_bytes(tensor, line.first_block, line.end_block)) *
                       (zeros_ == Zeros::kLeftOut ? tensor.packed : 1);
  const double memory = scaled(memory_of(problem_, line, line.end_block));
  std::vector<int>& keep = keep_.emplace_back();
  std::vector<int>& during = during_.emplace_back();
  for (const Access& access : line.accesses) {
    during.push_back(add_share(t));
    memory_[static_cast<std::size_t>(access.pass)].emplace_back(during.back(), memory);
    if (access.pins) program_.fix(during.back());
  }
  for (int i = 0; i < line.interval_count(); ++i) {
    keep.push_back(add_share(t));
    for (const int pass : passes_between(line, i, problem_.draft().pass_count())) {
      memory_[static_cast<std::size_t>(pass)].emplace_back(keep.back(), memory);
    }
    for (const int access : {i, line.end_of(i)}) {
      if (access < 0) continue;
      program_.at_most({{keep.back(), 1}, {during[static_cast<std::size_t>(access)], -1}}, 0);
    }
  }
  add_traffic(line, bytes, keep, during);
}

void ResidencyLp::add_traffic(const Timeline& line, double bytes, const std::vector<int>& keep,
                              const std::vector<int>& during) {
  for (std::size_t i = 0; i < line.accesses.size(); ++i) {
    const Access& access = line.accesses[i];
    const auto pass = static_cast<std::size_t>(access.pass);
    if (access.writes) {
      add_writes(line, bytes, keep, pass);
      continue;
    }
    const auto more_sweeps = static_cast<double>(access.sweeps - 1);
    constant_[pass] += bytes * (more_sweeps + 1);
    read_[pass].emplace_back(i > 0 ? keep[i - 1] : keep.back(), -bytes);
    if (more_sweeps > 0) read_[pass].emplace_back(during[i], -more_sweeps * bytes);
  }
}

void ResidencyLp::add_writes(const Timeline& line, double bytes, const std::vector<int>& keep,
                             std::size_t pass) {
  const int stored = program_.add_variable(0);
  written_[pass].emplace_back(stored, bytes);
  if (line.always_stored || line.leaves) program_.at_least({{stored, 1}}, 1);
  for (const int interval : keep) program_.at_least({{stored, 1}, {interval, 1}}, 1);
}

void ResidencyLp::add_edges(Direction direction) {
  const int variable = program_.add_variable(0);
  edges_[static_cast<std::size_t>(direction)] = variable;
  const std::int64_t chunks = problem_.edges().chunk_count();
  const double bytes = scaled(problem_.memory().edge_range(direction, chunks));
  for (auto& terms : memory_) terms.emplace_back(variable, bytes);
}

void ResidencyLp::add_alias(const InPlaceAlias& alias) {
  const int from = during_[static_cast<std::size_t>(alias.from)].back();
  const int to = during_[static_cast<std::size_t>(alias.to)].front();
  const int shared = program_.add_variable(0);
  for (const int share : {from, to}) program_.at_most({{shared, 1}, {share, -1}}, 0);
  const Timeline& line = problem_.timelines()[static_cast<std::size_t>(alias.to)];
  memory_[static_cast<std::size_t>(alias.pass)].emplace_back(
      shared, -scaled(memory_of(problem_, line, line.end_block)));
}

// The memory of uses, and what is read of the edges.
void ResidencyLp::add_pass(int index) {
  const auto at = static_cast<std::size_t>(index);
  const PassDraft& pass = problem_.draft().passes[at];
  used_[at] += scaled(problem_.memory().worker_scratch(index));
  for (const UseDraft& use : pass.uses) add_use(index, use);
  if (!pass.edges) return;
  add_edge_slots(index);
  const StageShape& stage = problem_.builder().stages()[static_cast<std::size_t>(pass.stage)];
  const Direction direction = stage.edge_file;
  const double bytes = scaled(pass.groups * problem_.sweep_bytes(direction, pass.dst_range_blocks));
  constant_[at] += bytes;
  read_[at].emplace_back(edges_[static_cast<std::size_t>(direction)], -bytes);
}

void ResidencyLp::add_use(int index, const UseDraft& use) {
  const auto at = static_cast<std::size_t>(index);
  const PassDraft& pass = problem_.draft().passes[at];
  const SlotCounts slot_counts =
      size_ == Slots::kLeast ? SlotCounts{} : problem_.slot_counts(index);
  const double bytes = scaled(problem_.memory().use(index, use, 0, slot_counts).bytes);
  if (bytes == 0) return;
  if (use.tensor < 0 || problem_.memory().streams_apart(use)) {
    used_[at] += bytes;
    return;
  }
  const Timeline& line = problem_.timelines()[static_cast<std::size_t>(use.tensor)];
  std::size_t access = 0;
  while (line.accesses[access].pass != index) ++access;
  if (line.accesses[access].pins) return;
  const int held = during_[static_cast<std::size_t>(use.tensor)][access];
  const bool dst_range = use.role == UseRole::kResident || use.role == UseRole::kAccumulator;
  if (dst_range && (pass.dst_ranges == 1 || size_ == Slots::kLeast)) {
    // What ranges don't hold of it; of several destination ranges the largest one, so no less than
    // the average.
    const double least = pass.dst_ranges == 1 ? bytes
                                              : static_cast<double>(pass.dst_ranges_at_once) *
                                                    average_dst_range(use, pass);
    used_[at] += least;
    memory_[at].emplace_back(held, -least);
    return;
  }
  const double most = share_of(line, whole_blocks(line, line.end_block - 1));
  memory_[at].emplace_back(add_slots(held, bytes, most), bytes);
}

double ResidencyLp::average_dst_range(const UseDraft& use, const PassDraft& pass) const {
  const PlannedTensor& tensor = problem_.draft().tensors[static_cast<std::size_t>(use.tensor)];
  const std::int64_t slices = use.sliced ? pass.slices_at_once : tensor.layout.slice_count();
  const Timeline& line = problem_.timelines()[static_cast<std::size_t>(use.tensor)];
  return scaled(rows_bytes(tensor, line.first_block, line.end_block, 0, slices)) /
         static_cast<double>(pass.dst_ranges);
}

void ResidencyLp::add_edge_slots(int index) {
  const PassDraft& pass = problem_.draft().passes[static_cast<std::size_t>(index)];
  const Direction direction =
      problem_.builder().stages()[static_cast<std::size_t>(pass.stage)].edge_file;
  const auto side = static_cast<std::size_t>(direction);
  const SlotCounts size = size_ == Slots::kLeast ? SlotCounts{} : problem_.slot_counts(index);
  const double bytes = scaled(problem_.memory().edge_slot_memory(index, 0, size).bytes);
  if (bytes == 0) return;
  int& slot_counts = edge_slots_[side];
  if (slot_counts < 0) slot_counts = add_slots(edges_[side], bytes, 1);
  memory_[static_cast<std::size_t>(index)].emplace_back(slot_counts, bytes);
}

int ResidencyLp::add_slots(int held, double bytes, double most) {
  const int there = program_.add_variable(0);
  program_.at_least({{there, 1}, {held, 1}}, 1);
  slot_rows_.push_back({held, there, bytes, most});
  return there;
}

}  // namespace ooc
