#include "sched/plan/residency/dp.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sched/plan/io_chunks.h"

namespace ooc {
namespace {

constexpr int kExactPasses = 16;
constexpr std::size_t kMaxSets = 4096;
constexpr std::int64_t kMaxSteps = 400'000;  // of all searches together
// Of one pass in one search, where exact and elsewhere: states and the sets of each.
constexpr std::int64_t kExactSteps = 1 << 18, kLeastSteps = 256, kSetsOfState = 8;
constexpr std::size_t kMaxTensors = 64;

using Mask = std::uint64_t;  // of timelines

Mask bit(int tensor) { return Mask{1} << tensor; }

// What one pass does with one tensor.
struct Touch {
  int tensor = 0;
  std::int64_t slot_counts = 0;  // memory where it isn't held
  std::int64_t first = 0;        // bytes of the first sweep, and of the others
  std::int64_t reread = 0;
  bool writes = false;
};

struct Step {
  std::vector<Touch> touches;
  std::int64_t fixed = 0;      // memory of uses without a tensor, and scratch
  Mask touched = 0, must = 0;  // must: held whatever happens
  Mask read = 0;               // here, and made before
  Mask live = 0;               // needed after this pass, so worth holding
};

struct State {
  Mask cached = 0, stored = 0;
  auto operator<=>(const State&) const = default;
};
struct Reached {
  std::int64_t cost = 0;
  Mask held = 0;  // during the pass that led here
  State from;
};
using Layer = std::map<State, Reached>;

class DpSearch {
 public:
  explicit DpSearch(const PlanProblem& problem) : problem_(problem) {
    const std::size_t count = std::min(problem.timelines().size(), kMaxTensors);
    exact_ = count == problem.timelines().size() && problem.draft().pass_count() <= kExactPasses;
    for (std::size_t t = 0; t < count; ++t) {
      const Timeline& line = problem.timelines()[t];
      const PlannedTensor& tensor = tensor_of(problem, line);
      sizes_.push_back(
          rows_bytes(tensor, line.first_block, line.end_block, 0, tensor.layout.slice_count()));
      payloads_.push_back(payload_bytes(tensor, line.first_block, line.end_block));
      if (line.cyclic) inputs_ |= bit(static_cast<int>(t));
    }
    const int passes = problem.draft().pass_count();
    for (int pass = 0; pass < passes; ++pass) add_step(pass);
    if (passes <= kExactPasses) return;
    most_steps_ = std::max(kLeastSteps, kMaxSteps / 4 / passes);
    most_states_ = static_cast<std::size_t>(most_steps_ / kSetsOfState);
  }

  ResidentSet run(std::string& remark) {
    const std::int64_t chunks = problem_.edges().chunk_count();
    const std::array<std::int64_t, 2> none = problem_.empty_residency().edge_chunks;
    for (int edges = 0; edges < 4; ++edges) {
      set_edges((edges & 1) != 0 ? chunks : none[0], (edges & 2) != 0 ? chunks : none[1]);
      search_from_each();
    }
    if (!exact_) {
      remark = fmt::format(
          "dp: more than {} operators or {} sets of tensors, so this is the best that was found",
          kExactPasses, kMaxSets);
    }
    return best_;
  }

 private:
  void add_step(int pass) {
    Step& step = steps_.emplace_back();
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      const Timeline& line = problem_.timelines()[t];
      const auto tensor = static_cast<int>(t);
      if (line.accesses.empty()) continue;
      const bool made = line.accesses.front().pass <= pass;
      const bool needed = line.accesses.back().pass > pass || line.tail_pass >= pass;
      if (line.cyclic || (made && needed)) step.live |= bit(tensor);
      for (const Access& access : line.accesses) {
        if (access.pass != pass) continue;
        step.touched |= bit(tensor);
        if (access.pins) step.must |= bit(tensor);
        if (!access.writes) step.read |= bit(tensor);
        step.touches.push_back({tensor, 0, payloads_[t],
                                std::max<std::int64_t>(access.sweeps - 1, 0) * payloads_[t],
                                access.writes});
      }
    }
    const PassDraft& draft = problem_.draft().passes[static_cast<std::size_t>(pass)];
    step.fixed += problem_.memory().worker_scratch(pass);
    for (const UseDraft& use : draft.uses) {
      const std::int64_t bytes =
          problem_.memory().use(pass, use, 0, problem_.slot_counts(pass)).bytes;
      const auto found =
          std::find_if(step.touches.begin(), step.touches.end(),
                       [&](const Touch& touch) { return touch.tensor == use.tensor; });
      const bool fixed = found == step.touches.end() || problem_.memory().streams_apart(use);
      (fixed ? step.fixed : found->slot_counts) += bytes;
    }
  }

  // Edges stay for good or not at all.
  void set_edges(std::int64_t in, std::int64_t out) {
    edge_chunks_ = {in, out};
    ResidentSet edges = problem_.empty_residency();
    edges.edge_chunks = edge_chunks_;
    const std::vector<Traffic> traffic = problem_.traffic(edges);
    const std::vector<Traffic> all = problem_.traffic(problem_.empty_residency());
    edge_saving_ = 0;
    capacity_.clear();
    for (int p = 0; p < problem_.draft().pass_count(); ++p) {
      const auto at = static_cast<std::size_t>(p);
      const PassDraft& pass = problem_.draft().passes[at];
      edge_saving_ += all[at].read() - traffic[at].read();
      std::int64_t memory = problem_.memory().edge_range(Direction::kIn, in) +
                            problem_.memory().edge_range(Direction::kOut, out) + steps_[at].fixed;
      if (pass.edges) {
        const StageShape& stage = problem_.builder().stages()[static_cast<std::size_t>(pass.stage)];
        const auto side = static_cast<std::size_t>(stage.edge_file);
        memory += problem_.memory()
                      .edge_slot_memory(p, edge_chunks_[side], problem_.slot_counts(p))
                      .bytes;
      }
      capacity_.push_back(problem_.arena().bytes - memory);
    }
  }

  // From an empty memory first, then from each set that an epoch leaves behind.
  void search_from_each() {
    std::set<Mask> seen{0};
    std::vector<Mask> starts{0};
    std::int64_t steps = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (steps > kMaxSteps / 4) {
        exact_ = false;
        return;
      }
      for (const Mask end : search(starts[i], steps)) {
        if (seen.insert(end).second) starts.push_back(end);
      }
    }
  }

  // Inputs that may be cached at the end, the cheapest first.
  std::vector<Mask> search(Mask start, std::int64_t& steps) {
    std::vector<Layer> layers(1);
    layers[0][{start, 0}] = {};
    for (std::size_t p = 0; p < steps_.size(); ++p) {
      problem_.builder().check_stop();
      Layer next;
      const auto states = static_cast<std::int64_t>(layers.back().size());  // none: nothing fits
      const std::int64_t most =
          std::max(most_steps_ / std::max<std::int64_t>(states, 1), kSetsOfState);
      for (const auto& [state, reached] : layers.back()) {
        for (const Mask held : maximal_sets(p, state.cached, most)) {
          ++steps;
          take(p, state, reached.cost, held, next);
        }
      }
      narrow(next);
      layers.push_back(std::move(next));
    }
    std::vector<std::pair<std::int64_t, Mask>> ends;
    const State* best = nullptr;
    for (const auto& [state, reached] : layers.back()) {
      ends.emplace_back(reached.cost, state.cached & inputs_);
      if ((state.cached & start) != start) continue;
      if (best == nullptr || reached.cost < layers.back().at(*best).cost) best = &state;
    }
    if (best != nullptr && layers.back().at(*best).cost - edge_saving_ < best_cost_) {
      best_cost_ = layers.back().at(*best).cost - edge_saving_;
      best_ = follow(layers, *best);
    }
    std::sort(ends.begin(), ends.end());
    std::vector<Mask> masks;
    for (const auto& [cost, mask] : ends) masks.push_back(mask);
    return masks;
  }

  void narrow(Layer& layer) {
    if (layer.size() <= most_states_) return;
    exact_ = false;
    std::vector<std::pair<std::int64_t, const State*>> costs;
    for (const auto& [state, reached] : layer) costs.emplace_back(reached.cost, &state);
    const auto last = costs.begin() + static_cast<std::ptrdiff_t>(most_states_);
    std::nth_element(costs.begin(), last, costs.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : *a.second < *b.second;
    });
    Layer kept;
    for (auto it = costs.begin(); it != last; ++it) kept.insert(layer.extract(*it->second));
    layer = std::move(kept);
  }

  // Sets that fit beside the pass's work and to which nothing can be added: what has to go goes
  // when the memory is needed, never before. `most` at most, which hold what is needed soonest.
  std::vector<Mask> maximal_sets(std::size_t p, Mask cached, std::int64_t most) {
    const Step& step = steps_[p];
    std::int64_t room = capacity_[p];
    std::vector<std::pair<int, std::int64_t>> choices;  // tensor, memory
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      const Mask one = bit(static_cast<int>(t));
      if ((step.must & one) != 0) room -= sizes_[t];
      if ((step.must & one) != 0 || ((cached | step.touched) & one) == 0) continue;
      const auto touch =
          std::find_if(step.touches.begin(), step.touches.end(),
                       [&](const Touch& at) { return at.tensor == static_cast<int>(t); });
      const std::int64_t slot_counts = touch == step.touches.end() ? 0 : touch->slot_counts;
      room -= slot_counts;
      const bool saves = touch != step.touches.end() && (touch->reread > 0 || (cached & one) != 0);
      const bool worth = saves || (step.live & one) != 0;
      if (worth) choices.emplace_back(static_cast<int>(t), sizes_[t] - slot_counts);
    }
    std::stable_sort(choices.begin(), choices.end(), [&](const auto& a, const auto& b) {
      return next_use(a.first, p) < next_use(b.first, p);
    });
    std::vector<std::int64_t> rest(choices.size() + 1);  // memory of the choices from one on
    for (std::size_t i = choices.size(); i-- > 0;) {
      rest[i] = rest[i + 1] + std::max<std::int64_t>(choices[i].second, 0);
    }
    std::vector<Mask> sets;
    const auto limit = static_cast<std::size_t>(most);
    add_sets({choices, rest, sets, limit}, 0, room, step.must, std::int64_t{1} << 62);
    if (sets.size() >= limit) exact_ = false;
    return sets;
  }

  // Passes from p on until one touches the tensor, in this epoch or the next.
  std::size_t next_use(int tensor, std::size_t p) const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if ((steps_[(p + i) % steps_.size()].touched & bit(tensor)) != 0) return i;
    }
    return steps_.size();
  }

  struct Choices {
    const std::vector<std::pair<int, std::int64_t>>& of;
    const std::vector<std::int64_t>& rest;
    std::vector<Mask>& sets;
    std::size_t most;
  };

  // `smallest`: of what was left out.
  static void add_sets(const Choices& choices, std::size_t at, std::int64_t room, Mask held,
                       std::int64_t smallest) {
    if (choices.sets.size() >= choices.most) return;
    if (smallest <= room - choices.rest[at]) return;  // it could be added at the end
    if (at == choices.of.size()) {
      if (room >= 0) choices.sets.push_back(held);  // else what must be there doesn't fit
      return;
    }
    const auto& [tensor, bytes] = choices.of[at];
    if (bytes <= room) add_sets(choices, at + 1, room - bytes, held | bit(tensor), smallest);
    if (bytes > 0) add_sets(choices, at + 1, room, held, std::min(smallest, bytes));
  }

  void take(std::size_t p, const State& state, std::int64_t cost, Mask held, Layer& next) const {
    const Step& step = steps_[p];
    State to{held & step.live, state.stored};
    for (const Touch& touch : step.touches) {
      const Mask one = bit(touch.tensor);
      if (touch.writes) continue;
      if ((state.cached & held & one) == 0) cost += touch.first;
      if ((held & one) == 0) cost += touch.reread;
    }
    // Whatever is needed, here or later, and has left memory or never was there, is written once.
    const Mask gone = (step.read | step.live) & ~inputs_ & ~held & ~state.stored;
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      if ((gone & bit(static_cast<int>(t))) != 0) cost += payloads_[t];
    }
    to.stored = (to.stored | gone) & step.live;
    const auto [at, added] = next.try_emplace(to, Reached{cost, held, state});
    if (!added && cost < at->second.cost) at->second = {cost, held, state};
  }

  ResidentSet follow(const std::vector<Layer>& layers, State state) const {
    std::vector<Mask> held(steps_.size());
    for (std::size_t p = steps_.size(); p-- > 0;) {
      const Reached& reached = layers[p + 1].at(state);
      held[p] = reached.held;
      state = reached.from;
    }
    ResidentSet out = problem_.empty_residency();
    out.edge_chunks = edge_chunks_;
    const int passes = problem_.draft().pass_count();
    for (std::size_t t = 0; t < sizes_.size(); ++t) {
      const Timeline& line = problem_.timelines()[t];
      const auto is_held = [&](int pass) {
        return (held[static_cast<std::size_t>(pass)] & bit(static_cast<int>(t))) != 0;
      };
      for (std::size_t i = 0; i < line.accesses.size(); ++i) {
        if (is_held(line.accesses[i].pass)) out.tensors[t].during[i] = line.end_block;
      }
      for (int i = 0; i < line.interval_count(); ++i) {
        const std::vector<int> between = passes_between(line, i, passes);
        bool all = is_held(line.accesses[static_cast<std::size_t>(i)].pass) &&
                   std::all_of(between.begin(), between.end(), is_held);
        if (line.end_of(i) >= 0) {
          all = all && is_held(line.accesses[static_cast<std::size_t>(line.end_of(i))].pass);
        }
        if (all) out.tensors[t].keep[static_cast<std::size_t>(i)] = line.end_block;
      }
    }
    return out;
  }

  const PlanProblem& problem_;
  bool exact_ = true;
  std::vector<std::int64_t> sizes_, payloads_;  // by timeline
  Mask inputs_ = 0;
  std::vector<Step> steps_;  // by pass
  std::int64_t most_steps_ = kExactSteps;
  std::size_t most_states_ = kMaxSets;
  std::array<std::int64_t, 2> edge_chunks_ = {};
  std::vector<std::int64_t> capacity_;  // by pass: for tensors and slots
  std::int64_t edge_saving_ = 0;
  std::int64_t best_cost_ = std::int64_t{1} << 62;
  ResidentSet best_ = problem_.empty_residency();
};

}  // namespace

ResidentSet choose_by_dp(const PlanProblem& problem, std::string& remark) {
  return DpSearch(problem).run(remark);
}

}  // namespace ooc
