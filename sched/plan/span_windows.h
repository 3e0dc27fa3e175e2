#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "storage/base/types.h"
#include "storage/format/edge_file.h"

namespace ooc {

// Spans whose tiles a group of blocks takes at once, by their places in the order in which they are
// taken; they lie beside each other in the graph, too.
struct SpanWindow {
  std::int64_t panel = 0;
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t first_span = 0, end_span = 0;
  std::int64_t new_span = 0;  // the first whose chunk no other group of the panel took before
  std::int64_t old_span = 0;  // no group takes those before this one again
};

// In which order the blocks of a destination range take its spans: round after round, each group of
// blocks a window of `most` spans after its last one. In the first round windows grow from group
// to group, so that later on each one's lies a little further than that of the group before: spans
// are done with, and others are needed, one after the other, and reads don't wait for whole
// windows. At most `most` spans lie between the first that some group hasn't taken and the end of
// the window at hand. In the last round groups come to the last span, one after the other: their
// rows may go on while others are folded. Groups that take all spans at once need no rounds.
class SpanWindows {
 public:
  // Groups are panels, or ranges of panels of so many blocks. `order`: of spans; empty: the
  // graph's.
  SpanWindows(const EdgeLayout& edges, std::int64_t group_blocks, std::int64_t most,
              std::vector<std::int64_t> order = {})
      : panel_blocks_(edges.panel_blocks),
        group_blocks_(group_blocks),
        spans_(edges.span_count()),
        most_(most),
        order_(std::move(order)) {}

  // The span at a place of the order.
  std::int64_t span_at(std::int64_t place) const {
    return order_.empty() ? place : order_[static_cast<std::size_t>(place)];
  }

  // Of blocks [first, end).
  std::int64_t group_count(std::int64_t first, std::int64_t end) const {
    std::int64_t count = 0;
    for (; first < end; first = group_end(first, end)) ++count;
    return count;
  }
  // How much further than the last group's a window lies at most, with so many groups.
  static std::int64_t step(std::int64_t most, std::int64_t groups) {
    return ceil_div(most, groups);
  }

  // Calls visit(window) for those of the blocks [first, end) in order, while it returns true;
  // returns whether it did to the end.
  template <class Visit>
  bool for_each(std::int64_t first, std::int64_t end, Visit&& visit) const {
    const std::int64_t groups = group_count(first, end), first_panel = first / panel_blocks_;
    std::vector<std::int64_t> taken(  // by panel, by some group
        static_cast<std::size_t>(ceil_div(end, panel_blocks_) - first_panel));
    const std::int64_t last = most_ < spans_ ? ceil_div(spans_ - step(most_, groups), most_) : 0;
    for (std::int64_t round = 0; round <= last; ++round) {
      std::int64_t block = first;
      for (std::int64_t group = 0; group < groups; ++group) {
        SpanWindow window{block / panel_blocks_, block, group_end(block, end)};
        const std::int64_t ahead = ceil_div(most_ * (group + 1), groups);
        window.first_span = round == 0 ? 0 : std::min(ahead + (round - 1) * most_, before_last());
        window.end_span = round == last ? spans_ : std::min(ahead + round * most_, before_last());
        block = window.end_block;
        if (window.first_span == window.end_span) continue;
        std::int64_t& of_panel = taken[static_cast<std::size_t>(window.panel - first_panel)];
        window.new_span = std::max(of_panel, window.first_span);
        window.old_span = window.first_span;
        of_panel = std::max(of_panel, window.end_span);
        if (!visit_in_order(window, visit)) return false;
      }
    }
    return true;
  }

 private:
  // One after the other what lies beside each other in the graph.
  template <class Visit>
  bool visit_in_order(const SpanWindow& all, Visit& visit) const {
    SpanWindow window = all;
    for (window.end_span = all.first_span; window.first_span < all.end_span;
         window.first_span = window.end_span) {
      do {
        ++window.end_span;
      } while (window.end_span < all.end_span &&
               span_at(window.end_span) == span_at(window.end_span - 1) + 1);
      window.new_span = std::clamp(all.new_span, window.first_span, window.end_span);
      if (!visit(std::as_const(window))) return false;
    }
    return true;
  }
  // No group gets further in the rounds before the last one, of which half a window is left to
  // each.
  std::int64_t before_last() const { return spans_ - ceil_div(most_, 2); }
  std::int64_t group_end(std::int64_t block, std::int64_t end) const {
    const std::int64_t panel = block / panel_blocks_ * panel_blocks_;
    const std::int64_t range = (block - panel) / group_blocks_;
    return std::min({panel + (range + 1) * group_blocks_, panel + panel_blocks_, end});
  }

  std::int64_t panel_blocks_, group_blocks_, spans_, most_;
  std::vector<std::int64_t> order_;  // by place
};

}  // namespace ooc
