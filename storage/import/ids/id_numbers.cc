#include "storage/import/ids/id_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"
#include "storage/base/utf8.h"
#include "storage/import/ids/unknown_ids.h"

namespace ooc {

std::string quoted_id(std::string_view id) { return fmt::format("'{}'", shortened(id)); }

bool IdNumbers::is_id(std::string_view id) {
  return !id.empty() && id.size() <= std::size_t{kMaxIdBytes} && is_plain_utf8(id);
}

void IdNumbers::refuse(std::string_view id, const std::string& place) {
  if (id.empty()) throw DataError("an empty id", place, "every vertex needs a name");
  if (id.size() > std::size_t{kMaxIdBytes}) {
    throw DataError(fmt::format("an id of {} bytes", id.size()), place,
                    fmt::format("at most {} are possible", kMaxIdBytes));
  }
  throw DataError("an id that is no UTF-8, or has control characters", place,
                  "convert the file, or correct it");
}

void IdNumbers::note_unknown(std::string_view id, std::string place) {
  if (unknown_.empty()) unknown_at_ = std::move(place);
  std::string quoted = quoted_id(id);
  const bool again = std::find(unknown_.begin(), unknown_.end(), quoted) != unknown_.end();
  if (!again && unknown_.size() < kMostUnknownNamed) unknown_.push_back(std::move(quoted));
}

void IdNumbers::check_unknown(std::string_view hint) const {
  if (unknown_.empty()) return;
  throw DataError(unknown_ids(unknown_, ids_.source()), unknown_at_,
                  fmt::format("{}{}", unknown_ids_remedy(ids_.source()), hint));
}

}  // namespace ooc
