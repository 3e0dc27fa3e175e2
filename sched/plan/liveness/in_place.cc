#include "sched/plan/liveness/in_place.h"

#include <algorithm>
#include <numeric>

namespace ooc {
namespace {

bool same_io_chunks(const PlannedTensor& a, const PlannedTensor& b) {
  return a.kept.all() && b.kept.all() && a.layout.cols == b.layout.cols &&
         a.layout.block_rows == b.layout.block_rows && a.dtype == b.dtype &&
         a.io_chunk_blocks == b.io_chunk_blocks;
}

bool used_once(const PassDraft& pass, int tensor) {
  return std::count_if(pass.uses.begin(), pass.uses.end(),
                       [&](const UseDraft& use) { return use.tensor == tensor; }) == 1;
}

// Whether no step reads one value after the first step that writes the other, nor in it.
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

class AliasSearch {
 public:
  AliasSearch(const PassBuilder& builder, const Draft& draft, std::vector<Timeline>& timelines)
      : builder_(builder), draft_(draft), timelines_(timelines) {}

  std::vector<InPlaceAlias> run() {
    for (int pass = 0; pass < draft_.pass_count(); ++pass) {
      const PassDraft& at = draft_.passes[static_cast<std::size_t>(pass)];
      if (!at.rows || at.dst_ranges > 1) continue;
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
      if (!same_io_chunks(tensor(from.tensor), tensor(to.tensor))) continue;
      if (!used_once(pass, from.tensor) || !used_once(pass, to.tensor)) continue;
      if (!read_before(stage.pass.steps, from.value, to.value)) continue;
      const bool taken = std::any_of(found_.begin(), found_.end(), [&](const InPlaceAlias& alias) {
        return alias.from == from.tensor;
      });
      if (taken) continue;
      found_.push_back({index, from.tensor, to.tensor});
      return;
    }
  }

  // Whether passes made it, and nobody wants it, or a copy of it, after this one.
  bool ends(int tensor, int pass) const {
    const Timeline& line = timelines_[static_cast<std::size_t>(tensor)];
    return !line.cyclic && !line.always_stored && !line.leaves && line.tail_pass < 0 &&
           line.accesses.back().pass == pass;
  }

  void align() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const InPlaceAlias& alias : found_) {
        std::int64_t& from = timelines_[static_cast<std::size_t>(alias.from)].quantum;
        std::int64_t& to = timelines_[static_cast<std::size_t>(alias.to)].quantum;
        changed = changed || from != to;
        from = to = std::lcm(from, to);
      }
    }
  }

  const PassBuilder& builder_;
  const Draft& draft_;
  std::vector<Timeline>& timelines_;
  std::vector<InPlaceAlias> found_;
};

}  // namespace

std::vector<InPlaceAlias> find_in_place_aliases(const PassBuilder& builder, const Draft& draft,
                                                std::vector<Timeline>& timelines) {
  return AliasSearch(builder, draft, timelines).run();
}

std::int64_t shared_blocks(const InPlaceAlias& alias, const ResidentSet& residency) {
  return std::min(residency.tensors[static_cast<std::size_t>(alias.from)].during.back(),
                  residency.tensors[static_cast<std::size_t>(alias.to)].during.front());
}

std::vector<Bundle> make_bundles(const std::vector<InPlaceAlias>& aliases,
                                 const std::vector<ResidentRange>& ranges) {
  const auto follows = [&](const ResidentRange& first, const ResidentRange& next) {
    return first.first_block == next.first_block && first.end_block == next.end_block &&
           std::any_of(aliases.begin(), aliases.end(), [&](const InPlaceAlias& alias) {
             return alias.from == first.tensor && alias.to == next.tensor &&
                    alias.pass == first.last_pass && alias.pass == next.first_pass;
           });
  };
  std::vector<Bundle> bundles;
  for (const ResidentRange& range : ranges) {
    const bool later = std::any_of(ranges.begin(), ranges.end(), [&](const ResidentRange& before) {
      return follows(before, range);
    });
    if (later) continue;
    Bundle& bundle = bundles.emplace_back();
    bundle.ranges.push_back(range);
    for (auto next = ranges.begin(); next != ranges.end();) {
      next = std::find_if(ranges.begin(), ranges.end(), [&](const ResidentRange& candidate) {
        return follows(bundle.ranges.back(), candidate);
      });
      if (next != ranges.end()) bundle.ranges.push_back(*next);
    }
  }
  return bundles;
}

}  // namespace ooc
