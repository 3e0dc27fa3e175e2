#include "storage/import/ids/unknown_ids.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ooc {

std::string unknown_ids(std::span<const std::string> ids, const std::string& source) {
  const bool one = ids.size() == 1;
  return fmt::format("vertex id{} {} {} {}", one ? "" : "s", fmt::join(ids, ", "),
                     one ? "is" : "are", source.empty() ? "in no edge" : "not in " + source);
}

std::string_view unknown_ids_remedy(const std::string& source) {
  return source.empty() ? "correct it" : "list every vertex there";
}

}  // namespace ooc
