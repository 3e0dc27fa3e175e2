#include "sched/plan/liveness/in_place.h"

#include <algorithm>
#include <numeric>

namespace ooc {
namespace {

bool same_units(const PlannedTensor& a, const PlannedTensor& b) {
  return a.kept.all() && b.kept.all() && a.layout.cols == b.layout.cols &&
         a.layout.block_rows == b.layout.block_rows && a.dtype == b.dtype &&
         a.unit_blocks == b.unit_blocks;
}

bool used_once(const PassDraft& pass, int tensor) {
  return std::count_if(pass.uses.begin(), pass.uses.end(),
                       [&](const UseDraft& use) { return use.tensor == tensor; }) == 1;
}

// Whether no step reads one value behind the first step that writes the other, nor in it.
bool read_before(const std::vector<RowStep>& steps, ValueId read, ValueId written) {
  const auto has = [](const std::vector<ValueId>& list, ValueId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  const auto first = std::find_if(steps.begin(), steps.end(),
                                  [&](const RowStep& step) { return has(step.outputs, written); });
  return first != steps.end() && std::none_of(first, steps.end(), [&](const RowStep& step) {
           return has(step.inputs, read);
         });
}

class ReuseSearch {
 public:
  ReuseSearch(const PassBuilder& builder, const Draft& draft, std::vector<Timeline>& timelines)
      : builder_(builder), draft_(draft), timelines_(timelines) {}

  std::vector<Reuse> run() {
    for (int pass = 0; pass < draft_.pass_count(); ++pass) {
      const PassDraft& at = draft_.passes[static_cast<std::size_t>(pass)];
      if (!at.rows || at.parts > 1) continue;
      for (const UseDraft& use : at.uses) {
        if (use.role == UseRole::kOutput) add(pass, at, use);
      }
    }
    align();
    return std::move(found_);
  }

 private:
  const PlannedTensor& tensor(int index) const {
    return draft_.tensors[static_cast<std::size_t>(index)];
  }

  void add(int index, const PassDraft& pass, const UseDraft& to) {
    const StageShape& stage = builder_.stages()[static_cast<std::size_t>(pass.stage)];
    for (const UseDraft& from : pass.uses) {
      const bool rows = from.role == UseRole::kRows || from.role == UseRole::kAccumulator;
      if (!rows || from.tensor < 0 || !ends(from.tensor, index)) continue;
      if (!same_units(tensor(from.tensor), tensor(to.tensor))) continue;
      if (!used_once(pass, from.tensor) || !used_once(pass, to.tensor)) continue;
      if (!read_before(stage.pass.steps, from.value, to.value)) continue;
      const bool taken = std::any_of(found_.begin(), found_.end(),
                                     [&](const Reuse& reuse) { return reuse.from == from.tensor; });
      if (taken) continue;
      found_.push_back({index, from.tensor, to.tensor});
      return;
    }
  }

  // Whether passes made it, and nobody wants it, or a copy of it, behind this one.
  bool ends(int tensor, int pass) const {
    const Timeline& line = timelines_[static_cast<std::size_t>(tensor)];
    return !line.cyclic && !line.always_stored && line.tail_pass < 0 &&
           line.accesses.back().pass == pass;
  }

  void align() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Reuse& reuse : found_) {
        std::int64_t& from = timelines_[static_cast<std::size_t>(reuse.from)].quantum;
        std::int64_t& to = timelines_[static_cast<std::size_t>(reuse.to)].quantum;
        changed = changed || from != to;
        from = to = std::lcm(from, to);
      }
    }
  }

  const PassBuilder& builder_;
  const Draft& draft_;
  std::vector<Timeline>& timelines_;
  std::vector<Reuse> found_;
};

}  // namespace

std::vector<Reuse> find_reuses(const PassBuilder& builder, const Draft& draft,
                               std::vector<Timeline>& timelines) {
  return ReuseSearch(builder, draft, timelines).run();
}

std::int64_t shared_blocks(const Reuse& reuse, const Kept& residency) {
  return std::min(residency.tensors[static_cast<std::size_t>(reuse.from)].during.back(),
                  residency.tensors[static_cast<std::size_t>(reuse.to)].during.front());
}

std::vector<Bundle> make_bundles(const std::vector<Reuse>& reuses,
                                 const std::vector<Piece>& pieces) {
  const auto follows = [&](const Piece& first, const Piece& next) {
    return first.first_block == next.first_block && first.end_block == next.end_block &&
           std::any_of(reuses.begin(), reuses.end(), [&](const Reuse& reuse) {
             return reuse.from == first.tensor && reuse.to == next.tensor &&
                    reuse.pass == first.last_pass && reuse.pass == next.first_pass;
           });
  };
  std::vector<Bundle> bundles;
  for (const Piece& piece : pieces) {
    const bool later = std::any_of(pieces.begin(), pieces.end(),
                                   [&](const Piece& before) { return follows(before, piece); });
    if (later) continue;
    Bundle& bundle = bundles.emplace_back();
    bundle.pieces.push_back(piece);
    for (auto next = pieces.begin(); next != pieces.end();) {
      next = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& candidate) {
        return follows(bundle.pieces.back(), candidate);
      });
      if (next != pieces.end()) bundle.pieces.push_back(*next);
    }
  }
  return bundles;
}

}  // namespace ooc
