#include "sched/run/pass_run.h"

#include "sched/plan/io_chunks.h"

namespace ooc {

namespace {

// In a ring; empty: the graph's.
std::vector<std::int64_t> order_of_spans(const PassInfo& info) {
  const PassContext& context = info.context;
  if (context.ring == nullptr) return {};
  return ring_spans(context.ring->shape(), context.index, context.edges.span_count(),
                    ring_item_spans(context.edges, info.pass.uses, context.plan.tensors));
}

}  // namespace

PassRun::PassRun(PassContext& context, SectionState& section, std::size_t pass,
                 const StepSeed& state)
    : info_{context,
            section,
            section.passes[pass],
            *section.passes[pass].pass,
            context.device.passes[section.section->first_pass + pass],
            section.section->first_pass + static_cast<int>(pass),
            state},
      windows_(context.edges, info_.pass.group_blocks, info_.pass.span_group,
               order_of_spans(info_)),
      streams_(info_, windows_),
      loop_(
          info_, [this] { advance(); }, [this] { return rows_.may_step(); }),
      rows_(info_, streams_, loop_),
      edges_(info_, windows_, streams_, loop_, rows_) {}

PassRun::~PassRun() {
  if (done_) return;
  if (info_.context.ring != nullptr) info_.context.ring->give_up();
  info_.context.driver.drain();
}

bool PassRun::run() {
  PassContext& context = info_.context;
  context.residency.begin_pass(info_.index);
  std::int64_t count = 0, folded = 0;
  const bool all = for_each_dst_range(
      info_.pass, context.device.own, context.ring != nullptr,
      [&](std::int64_t first_slice, std::int64_t end_slice, std::int64_t first, std::int64_t end) {
        dst_range_ = std::make_shared<DstRange>();
        dst_range_->first_block = first;
        dst_range_->end_block = end;
        dst_range_->first_slice = first_slice;
        dst_range_->end_slice = end_slice;
        dst_range_->sweep = count++;
        if (first < end) dst_range_->number = folded++;
        return first < end ? run_dst_range() : skip_sweep();
      });
  if (!all) return false;
  auto lock = context.driver.lock();
  return done_ = wait_for_rows(lock, [this] { return is_done(); });
}

// Its rows are left to the row phase.
bool PassRun::run_dst_range() {
  auto lock = info_.context.driver.lock();
  if (info_.pass.kind == PassKind::kRow) {
    rows_.take_up(dst_range_);
    return true;
  }
  if (!wait_for_rows(lock, [this] { return edges_.may_begin(); })) return false;
  rows_.set_folds(true);
  lock.unlock();
  const bool folded = edges_.run(dst_range_);
  lock.lock();
  rows_.set_folds(false);
  return folded;
}

bool PassRun::skip_sweep() {
  const auto lock = info_.context.driver.lock();
  streams_.skip_sweep(dst_range_->sweep);
  return true;
}

bool PassRun::wait_for_rows(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) {
  while (!done()) {
    const bool steps = rows_.under_way() > 0;
    const WaitCause cause = steps ? rows_.waits_for() : WaitCause::kWrites;
    const auto ready = [&] {
      return done() || (rows_.under_way() == 0) == steps || (steps && rows_.waits_for() != cause);
    };
    if (!loop_.wait(lock, cause, ready)) return false;
  }
  return true;
}

// Each row that is leaving is one transfer, and no others may be under way.
bool PassRun::is_done() const {
  const PassContext& context = info_.context;
  const bool none_may_leave =
      &info_.bound == &info_.section.passes.back() || context.host != nullptr;
  const std::int64_t leaving = context.leaving.count();
  return rows_.under_way() == 0 && streams_.all_passed_on() && context.driver.tasks() == 0 &&
         context.driver.transfers() == leaving && (!none_may_leave || leaving == 0);
}

void PassRun::advance() {
  do {
    streams_.advance();
  } while (rows_.advance());
}

}  // namespace ooc
