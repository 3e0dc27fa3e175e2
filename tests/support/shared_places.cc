#include "tests/support/shared_places.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace ooc::test {
namespace {

const TensorUse* only_use(const Pass& pass, int tensor) {
  const TensorUse* found = nullptr;
  for (const TensorUse& use : pass.uses) {
    if (use.tensor != tensor) continue;
    if (found != nullptr) return nullptr;
    found = &use;
  }
  return found;
}

// Whether the pass is the last one that needs the rows of the first range, and makes those of the
// next one in the same place, each after the last step that reads it.
bool takes_place(const Plan& plan, const Pass& pass, int index, const ResidentRange& first,
                 const ResidentRange& next) {
  if (first.last_pass != index || next.first_pass != index) return false;
  if (first.memory.offset != next.memory.offset || first.memory.bytes != next.memory.bytes) {
    return false;
  }
  const TensorUse *from = only_use(pass, first.tensor), *to = only_use(pass, next.tensor);
  if (to == nullptr || to->role != UseRole::kOutput) return false;
  const PlannedTensor& old = plan.tensors[static_cast<std::size_t>(first.tensor)];
  const PlannedTensor& made = plan.tensors[static_cast<std::size_t>(next.tensor)];
  INFO(made.name << " lies where " << old.name << " does, from block " << next.first_block << " to "
                 << next.end_block);
  REQUIRE_FALSE(old.input);
  REQUIRE(first.first_block == next.first_block);
  REQUIRE(first.end_block == next.end_block);
  REQUIRE(old.layout.cols == made.layout.cols);
  REQUIRE(old.layout.block_rows == made.layout.block_rows);
  REQUIRE(old.io_chunk_blocks == made.io_chunk_blocks);
  REQUIRE(old.dtype == made.dtype);
  REQUIRE(pass.dst_ranges == 1);
  REQUIRE(from != nullptr);
  REQUIRE((from->role == UseRole::kRows || from->role == UseRole::kAccumulator));
  bool made_some = false;
  for (const RowStep& step : pass.steps) {
    made_some |= std::count(step.outputs.begin(), step.outputs.end(), to->value) > 0;
    if (made_some) REQUIRE(std::count(step.inputs.begin(), step.inputs.end(), from->value) == 0);
  }
  return made_some;
}

}  // namespace

std::set<const ResidentRange*> in_place_of_others(const Plan& plan, int index, const Pass& pass) {
  std::set<const ResidentRange*> found;
  for (const ResidentRange& next : plan.devices[0].ranges) {
    const auto first = std::find_if(plan.devices[0].ranges.begin(), plan.devices[0].ranges.end(),
                                    [&](const ResidentRange& range) {
                                      return range.tensor != next.tensor &&
                                             takes_place(plan, pass, index, range, next);
                                    });
    if (first != plan.devices[0].ranges.end()) found.insert(&next);
  }
  return found;
}

}  // namespace ooc::test
