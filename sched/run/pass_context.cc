#include "sched/run/pass_context.h"

#include "storage/base/errors.h"

namespace ooc {

std::byte* SectionState::matrix(ValueId id) const {
  if (value(id).kind != ValueKind::kParameter) return reductions.at(id)->result();
  std::byte* parameter = parameters[static_cast<std::size_t>(id)];
  OOC_CHECK(parameter != nullptr);
  return parameter;
}

}  // namespace ooc
