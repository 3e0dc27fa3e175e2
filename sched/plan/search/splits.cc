#include "sched/plan/search/splits.h"

#include <algorithm>
#include <limits>

#include "sched/plan/residency/lp.h"

namespace ooc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Bytes that one more destination range must save: it also costs time.
constexpr double kDstRangeCost = 64 << 10;

// Groups of slices from all of them down to one.
std::vector<std::int64_t> slice_choices(const PassBuilder& builder, const StageShape& stage) {
  const std::int64_t forced = builder.options().slices_at_once;
  if (forced > 0) return {std::min(forced, stage.slices)};
  std::vector<std::int64_t> choices;
  for (std::int64_t slices = stage.slices; slices > 0; slices /= 2) choices.push_back(slices);
  return choices;
}

// Blocks of a destination range, from all of them down to one.
std::vector<std::int64_t> dst_range_choices(const PassBuilder& builder) {
  const std::int64_t forced = builder.options().dst_range_blocks;
  if (forced > 0) return {forced};
  const std::int64_t blocks = builder.share().own.count();
  std::vector<std::int64_t> choices;
  for (std::int64_t dst_ranges = 1; dst_ranges < blocks;
       dst_ranges = std::max(dst_ranges + 1, dst_ranges * 5 / 4)) {
    choices.push_back(ceil_div(blocks, dst_ranges));
  }
  choices.push_back(1);
  return choices;
}

class SplitSearch {
 public:
  SplitSearch(const PassBuilder& builder, const EdgeTable& edges, bool kept, Zeros zeros)
      : builder_(builder),
        edges_(edges),
        kept_(kept),
        zeros_(zeros),
        splits_(smallest_splits(builder)) {}

  std::optional<std::vector<PassSplit>> run() {
    if (builder_.options().memory_bytes == 0) {
      const PlanOptions& options = builder_.options();
      splits_.assign(splits_.size(), {options.dst_range_blocks, options.slices_at_once});
      return splits_;
    }
    for (std::size_t stage = 0; stage < splits_.size(); ++stage) find_choices(stage);
    for (const std::vector<Choice>& choices : choices_) {
      if (choices.empty()) return std::nullopt;
    }
    for (std::size_t stage = 0; stage < splits_.size(); ++stage) {
      splits_[stage] = choices_[stage].front().split;
    }
    if (cost(splits_) == kNever) return std::nullopt;
    descend();
    return splits_;
  }

 private:
  struct Choice {
    PassSplit split;
    double bytes = 0;  // where nothing is kept
    bool operator==(const Choice&) const = default;
  };

  // Those whose working set fits; of each group of slices the largest destination ranges, and some
  // smaller ones that leave memory for what is kept. The cheapest one first.
  void find_choices(std::size_t stage) {
    constexpr int kSmaller = 3;
    std::vector<Choice>& choices = choices_.emplace_back();
    const StageShape& shape = builder_.stages()[stage];
    if (shape.pass.kind == PassKind::kRow) {
      add_choice(stage, {}, choices);
      return;
    }
    for (const std::int64_t slices : slice_choices(builder_, shape)) {
      int found = 0;
      std::int64_t last = 0;
      for (const std::int64_t dst_range : dst_range_choices(builder_)) {
        if (found == kSmaller) break;
        const std::int64_t blocks = add_choice(stage, {dst_range, slices}, choices, last);
        if (blocks > 0) ++found;
        if (blocks > 0) last = blocks;
      }
    }
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& a, const Choice& b) { return a.bytes < b.bytes; });
  }

  // The blocks of a destination range, which may be more than asked for; 0: it doesn't fit, or is
  // as the last.
  std::int64_t add_choice(std::size_t stage, PassSplit split, std::vector<Choice>& choices,
                          std::int64_t last = 0) {
    std::vector<PassSplit> splits = splits_;
    splits[stage] = split;
    const PlanProblem problem(builder_, edges_, splits);
    const std::vector<Traffic> traffic = problem.traffic(problem.empty_residency(), zeros_);
    Choice choice{split};
    std::int64_t blocks = 0;
    for (int p = 0; p < problem.draft().pass_count(); ++p) {
      const PassDraft& pass = problem.draft().passes[static_cast<std::size_t>(p)];
      if (pass.stage != static_cast<int>(stage)) continue;
      if (least_memory_of(problem, p) > problem.arena().bytes) return 0;
      if (blocks == 0) blocks = pass.dst_range_blocks;
      const Traffic& moved = traffic[static_cast<std::size_t>(p)];
      choice.bytes += static_cast<double>(moved.read() + moved.written) +
                      kDstRangeCost * static_cast<double>(pass.dst_ranges * pass.groups);
    }
    if (blocks == last) return 0;
    choices.push_back(choice);
    return blocks;
  }

  double cost(const std::vector<PassSplit>& splits) const {
    const PlanProblem problem(builder_, edges_, splits);
    if (!fits(problem, problem.empty_residency())) return kNever;
    double dst_ranges = 0;
    for (const PassDraft& pass : problem.draft().passes) {
      dst_ranges += static_cast<double>(pass.dst_ranges * pass.groups);
    }
    double bytes = 0;
    if (!kept_) {
      for (const Traffic& pass : problem.traffic(problem.empty_residency(), zeros_)) {
        bytes += static_cast<double>(pass.read() + pass.written);
      }
    } else {
      bytes = likely_bytes(problem, zeros_).value_or(kNever);
    }
    return bytes + kDstRangeCost * dst_ranges;
  }

  // Stages whose split is one decision: each by itself, or in a long program those that have the
  // same choices, as layers of a deep model do.
  std::vector<std::vector<std::size_t>> decisions() const {
    std::vector<std::vector<std::size_t>> all;
    for (std::size_t stage = 0; stage < splits_.size(); ++stage) {
      const auto alike = std::find_if(all.begin(), all.end(), [&](const auto& stages) {
        return splits_.size() > kLongProgram && choices_[stages.front()] == choices_[stage];
      });
      if (alike == all.end())
        all.push_back({stage});
      else
        alike->push_back(stage);
    }
    return all;
  }

  // A linear program takes as long as the square of its passes, or longer: so few of a long one.
  std::int64_t most_judged() const {
    constexpr std::int64_t kWork = 400'000, kLeast = 24;
    const auto stages = static_cast<std::int64_t>(splits_.size());
    return std::max(kLeast, kWork / (stages * stages * stages));
  }

  void descend() {
    double best = cost(splits_);
    std::int64_t judged = 0;
    for (const std::vector<std::size_t>& stages : decisions()) {
      for (const Choice& choice : choices_[stages.front()]) {
        if (splits_[stages.front()] == choice.split) continue;
        if (kept_ && ++judged > most_judged()) return;
        std::vector<PassSplit> other = splits_;
        for (const std::size_t stage : stages) other[stage] = choice.split;
        const double bytes = cost(other);
        if (bytes >= best) continue;
        best = bytes;
        splits_ = std::move(other);
      }
    }
  }

  const PassBuilder& builder_;
  const EdgeTable& edges_;
  bool kept_;
  Zeros zeros_;
  std::vector<PassSplit> splits_;
  std::vector<std::vector<Choice>> choices_;  // by stage
};

}  // namespace

std::vector<PassSplit> smallest_splits(const PassBuilder& builder) {
  std::vector<PassSplit> splits;
  for (const StageShape& stage : builder.stages()) {
    if (stage.pass.kind == PassKind::kRow) {
      splits.push_back({});
    } else {
      splits.push_back({dst_range_choices(builder).back(), slice_choices(builder, stage).back()});
    }
  }
  return splits;
}

std::optional<std::vector<PassSplit>> choose_splits(const PassBuilder& builder,
                                                    const EdgeTable& edges, bool kept,
                                                    Zeros zeros) {
  return SplitSearch(builder, edges, kept, zeros).run();
}

}  // namespace ooc
