#include "sched/plan/plan.h"

#include <algorithm>

#include "storage/io/block_file.h"

namespace ooc {

bool is_alive(const ResidentRange& range, int pass) {
  return range.first_pass <= range.last_pass ? range.first_pass <= pass && pass <= range.last_pass
                                             : range.first_pass <= pass || pass <= range.last_pass;
}

int pass_count(const Plan& plan) {
  std::size_t count = 0;
  for (const Section& section : plan.sections) count += section.passes.size();
  return static_cast<int>(count);
}

std::int64_t partial_bytes(const Value& sum) {
  constexpr std::int64_t kAlignment = 64;
  return round_up(sum.rows * sum.cols * static_cast<std::int64_t>(dtype_bytes(sum.dtype)),
                  kAlignment);
}

std::int64_t worker_scratch_bytes(const Pass& pass) {
  const std::int64_t bytes = std::max(pass.scratch_bytes, pass.edge_scratch_bytes);
  return static_cast<std::int64_t>(io_aligned(static_cast<std::uint64_t>(bytes)));
}

// A device folds one window after the other.
std::int64_t scratch_bytes(const Pass& pass, std::int64_t workers) {
  if (pass.lanes == 0) return workers * worker_scratch_bytes(pass);
  Pass rows = pass;
  rows.edge_scratch_bytes = 0;
  return std::max(pass.lanes * worker_scratch_bytes(rows), worker_scratch_bytes(pass));
}

}  // namespace ooc
