#include "sched/plan_lp.h"

#include <algorithm>
#include <cmath>

#include "sched/linear_program.h"

namespace ooc {
namespace {

// An access to a tensor: timeline and number.
using Held = std::pair<int, int>;

// Bytes are in MiB here, so that numbers are of one size.
double scaled(double bytes) { return bytes / (1 << 20); }

class ResidencyLp {
 public:
  // `whole`: accesses during which the tensor lies in memory as a whole; null: what the memory of
  // uses takes shrinks with the share that is kept, which is less than it will be.
  ResidencyLp(const PlanProblem& problem, const std::set<Held>* whole)
      : problem_(problem), whole_(whole) {
    const auto passes = static_cast<std::size_t>(problem.draft().pass_count());
    memory_.resize(passes);
    used_.resize(passes);
    read_.resize(passes);
    written_.resize(passes);
    constant_.resize(passes);
    for (std::size_t t = 0; t < problem.timelines().size(); ++t) add_tensor(static_cast<int>(t));
    for (const Direction direction : {Direction::kIn, Direction::kOut}) add_edges(direction);
    for (int p = 0; p < problem.draft().pass_count(); ++p) add_pass(p);
    for (std::size_t p = 0; p < passes; ++p) {
      if (problem.limit() == 0) break;
      program_.at_most(memory_[p], scaled(static_cast<double>(problem.limit())) - used_[p]);
    }
  }

  // The costs: bytes.
  double minimise_bytes() {
    double constant = 0;
    for (std::size_t p = 0; p < read_.size(); ++p) {
      for (const auto& [variable, bytes] : read_[p]) program_.add_cost(variable, bytes);
      for (const auto& [variable, bytes] : written_[p]) program_.add_cost(variable, bytes);
      constant += constant_[p];
    }
    return constant;
  }

  // The costs: a pass's time is that of transfers or compute, whichever is longer.
  void minimise_seconds(const std::vector<double>& compute_seconds, const TransferRates& rates) {
    const double mib = 1 << 20;
    for (std::size_t p = 0; p < read_.size(); ++p) {
      const int seconds = program_.add_variable(1, true);
      program_.at_least({{seconds, 1}}, compute_seconds[p]);
      std::vector<LinearProgram::Term> reads{{seconds, 1}}, writes = reads, both = reads;
      for (const auto& [variable, bytes] : read_[p]) {
        reads.emplace_back(variable, -bytes * mib / rates.read);
        both.emplace_back(variable, -bytes * mib / rates.both);
      }
      for (const auto& [variable, bytes] : written_[p]) {
        writes.emplace_back(variable, -bytes * mib / rates.write);
        both.emplace_back(variable, -bytes * mib / rates.both);
      }
      program_.at_least(reads, constant_[p] * mib / rates.read);
      program_.at_least(writes, 0);
      program_.at_least(both, constant_[p] * mib / rates.both);
    }
  }

  bool solve() {
    values_ = program_.solve();
    return !values_.empty();
  }
  double cost() const { return program_.cost(values_); }

  // Rounded down to whole units.
  Kept residency() const {
    Kept out = problem_.nothing();
    for (std::size_t t = 0; t < out.tensors.size(); ++t) {
      const Timeline& line = problem_.timelines()[t];
      const auto blocks = static_cast<double>(line.end_block - line.first_block);
      const auto level = [&](int variable) {
        const double share = values_[static_cast<std::size_t>(variable)] + 1e-7;
        return whole_blocks(line, line.first_block + static_cast<std::int64_t>(share * blocks));
      };
      for (std::size_t i = 0; i < keep_[t].size(); ++i) {
        out.tensors[t].keep[i] = level(keep_[t][i]);
      }
      for (std::size_t i = 0; i < during_[t].size(); ++i) {
        out.tensors[t].during[i] = level(during_[t][i]);
      }
      raise_during(line, out.tensors[t]);
    }
    for (const Direction direction : {Direction::kIn, Direction::kOut}) {
      const auto at = static_cast<std::size_t>(direction);
      const double share = values_[static_cast<std::size_t>(edges_[at])];
      const std::int64_t all = problem_.edges().chunk_count();
      const auto memory = static_cast<double>(problem_.memory().edge_piece(direction, all));
      const std::int64_t above =
          problem_.edges().memory(direction, problem_.first_chunk(direction));
      out.edge_chunks[at] = share > 1 - 1e-7
                                ? all
                                : problem_.edges().chunks_within(
                                      direction, above + static_cast<std::int64_t>(share * memory));
    }
    return out;
  }

  std::set<Held> held_whole() const {
    std::set<Held> held;
    for (std::size_t t = 0; t < during_.size(); ++t) {
      for (std::size_t i = 0; i < during_[t].size(); ++i) {
        if (values_[static_cast<std::size_t>(during_[t][i])] < 1 - 1e-6) continue;
        held.emplace(static_cast<int>(t), static_cast<int>(i));
      }
    }
    for (int direction = 0; direction < 2; ++direction) {
      const int variable = edges_[static_cast<std::size_t>(direction)];
      if (values_[static_cast<std::size_t>(variable)] >= 1 - 1e-6) held.emplace(-1, direction);
    }
    return held;
  }

 private:
  // Rounding keeps during >= keep, up to the solver's tolerance.
  static void raise_during(const Timeline& line, Levels& levels) {
    for (int i = 0; i < line.interval_count(); ++i) {
      std::int64_t& keep = levels.keep[static_cast<std::size_t>(i)];
      keep = std::min(keep, levels.during[static_cast<std::size_t>(i)]);
      if (line.end_of(i) < 0) continue;
      keep = std::min(keep, levels.during[static_cast<std::size_t>(line.end_of(i))]);
    }
  }

  void add_tensor(int t) {
    const Timeline& line = problem_.timelines()[static_cast<std::size_t>(t)];
    const PlannedTensor& tensor = problem_.tensor(line);
    const std::int64_t first = line.first_block, end = line.end_block;
    const double bytes = scaled(static_cast<double>(payload_bytes(tensor, first, end)));
    const double memory =
        scaled(static_cast<double>(rows_bytes(tensor, first, end, 0, tensor.layout.slice_count())));
    std::vector<int>& keep = keep_.emplace_back();
    std::vector<int>& during = during_.emplace_back();
    for (const Access& access : line.accesses) {
      during.push_back(program_.add_variable(0));
      memory_[static_cast<std::size_t>(access.pass)].emplace_back(during.back(), memory);
    }
    for (int i = 0; i < line.interval_count(); ++i) {
      keep.push_back(program_.add_variable(0));
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

  void add_traffic(const Timeline& line, double bytes, const std::vector<int>& keep,
                   const std::vector<int>& during) {
    for (std::size_t i = 0; i < line.accesses.size(); ++i) {
      const Access& access = line.accesses[i];
      const auto pass = static_cast<std::size_t>(access.pass);
      if (access.makes) {
        add_writes(line, bytes, keep, pass);
        continue;
      }
      const auto again = static_cast<double>(access.sweeps - 1);
      constant_[pass] += bytes * (again + 1);
      read_[pass].emplace_back(i > 0 ? keep[i - 1] : keep.back(), -bytes);
      if (again > 0) read_[pass].emplace_back(during[i], -again * bytes);
    }
  }

  void add_writes(const Timeline& line, double bytes, const std::vector<int>& keep,
                  std::size_t pass) {
    const int stored = program_.add_variable(0);
    written_[pass].emplace_back(stored, bytes);
    if (line.always_stored) program_.at_least({{stored, 1}}, 1);
    for (const int interval : keep) program_.at_least({{stored, 1}, {interval, 1}}, 1);
  }

  void add_edges(Direction direction) {
    const int variable = program_.add_variable(0);
    edges_[static_cast<std::size_t>(direction)] = variable;
    const std::int64_t chunks = problem_.edges().chunk_count();
    const double bytes =
        scaled(static_cast<double>(problem_.memory().edge_piece(direction, chunks)));
    for (auto& terms : memory_) terms.emplace_back(variable, bytes);
  }

  // The memory of uses, and what is read of the edges.
  void add_pass(int index) {
    const auto at = static_cast<std::size_t>(index);
    const PassDraft& pass = problem_.draft().passes[at];
    for (const UseDraft& use : pass.uses) {
      const double bytes = scaled(
          static_cast<double>(problem_.memory().use(index, use, 0, problem_.ring(index)).bytes));
      if (use.tensor < 0) used_[at] += bytes;
      if (use.tensor < 0 || bytes == 0) continue;
      const auto& accesses = problem_.timelines()[static_cast<std::size_t>(use.tensor)].accesses;
      int access = 0;
      while (accesses[static_cast<std::size_t>(access)].pass != index) ++access;
      const int variable =
          during_[static_cast<std::size_t>(use.tensor)][static_cast<std::size_t>(access)];
      const bool held = accesses[static_cast<std::size_t>(access)].holds;
      if (held) program_.fix(variable);
      if (!held) add_use(at, bytes, variable, {use.tensor, access});
    }
    if (!pass.edges) return;
    const StageShape& stage = problem_.builder().stages()[static_cast<std::size_t>(pass.stage)];
    const Direction direction = stage.edge_file;
    const int side = static_cast<int>(direction);
    const int variable = edges_[static_cast<std::size_t>(side)];
    const double ring = scaled(
        static_cast<double>(problem_.memory().edge_ring(index, 0, problem_.ring(index)).bytes));
    if (ring > 0) add_use(at, ring, variable, {-1, side});
    const std::int64_t first = problem_.first_chunk(direction);
    const double bytes = scaled(static_cast<double>(
        pass.groups * problem_.edges().sweep_bytes(direction, pass.part_blocks, first)));
    constant_[at] += bytes;
    read_[at].emplace_back(variable, -bytes);
  }

  void add_use(std::size_t pass, double bytes, int variable, const Held& held) {
    if (whole_ != nullptr && whole_->contains(held)) {
      program_.fix(variable);
      return;
    }
    used_[pass] += bytes;
    if (whole_ == nullptr) memory_[pass].emplace_back(variable, -bytes);
  }

  const PlanProblem& problem_;
  const std::set<Held>* whole_;
  LinearProgram program_;
  std::vector<std::vector<int>> keep_, during_;  // variables by timeline
  std::array<int, 2> edges_ = {};
  // By pass, in MiB: what is kept, what uses take besides, what moves, and what moves if nothing is
  // kept.
  std::vector<std::vector<LinearProgram::Term>> memory_, read_, written_;
  std::vector<double> used_, constant_;
  std::vector<double> values_;
};

}  // namespace

std::optional<double> least_bytes(const PlanProblem& problem) {
  ResidencyLp lp(problem, nullptr);
  const double constant = lp.minimise_bytes();
  if (!lp.solve()) return std::nullopt;
  return std::max(0.0, (constant + lp.cost()) * (1 << 20));
}

double least_seconds(const PlanProblem& problem, const std::vector<double>& compute_seconds,
                     const TransferRates& rates) {
  ResidencyLp lp(problem, nullptr);
  lp.minimise_seconds(compute_seconds, rates);
  return lp.solve() ? lp.cost() : 0;
}

std::optional<double> likely_bytes(const PlanProblem& problem) {
  ResidencyLp relaxed(problem, nullptr);
  relaxed.minimise_bytes();
  if (!relaxed.solve()) return std::nullopt;
  for (const std::set<Held>& whole : {relaxed.held_whole(), std::set<Held>()}) {
    ResidencyLp lp(problem, &whole);
    const double constant = lp.minimise_bytes();
    if (lp.solve()) return std::max(0.0, (constant + lp.cost()) * (1 << 20));
  }
  return std::nullopt;
}

Kept choose_by_lp(const PlanProblem& problem) {
  constexpr int kRounds = 4;
  Kept best = problem.nothing();
  std::int64_t best_bytes = problem.bytes(best);
  ResidencyLp relaxed(problem, nullptr);
  relaxed.minimise_bytes();
  std::vector<std::set<Held>> starts{{}};
  if (relaxed.solve()) starts.push_back(relaxed.held_whole());
  for (std::set<Held> whole : starts) {
    for (int round = 0; round < kRounds; ++round) {
      ResidencyLp lp(problem, &whole);
      lp.minimise_bytes();
      if (!lp.solve()) break;
      Kept residency = lp.residency();
      trim(problem, residency);
      fill_memory(problem, residency);
      const std::int64_t bytes = problem.bytes(residency);
      if (bytes < best_bytes) {
        best = std::move(residency);
        best_bytes = bytes;
      }
      std::set<Held> more = lp.held_whole();
      more.insert(whole.begin(), whole.end());
      if (more == whole) break;
      whole = std::move(more);
    }
  }
  return best;
}

}  // namespace ooc
