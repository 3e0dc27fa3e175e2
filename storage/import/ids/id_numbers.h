// The numbers of ids that are strings, in the order that a table has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/base/types.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/ids/string_ids.h"

namespace ooc {

// "'alice'", shortened where it is long: for messages.
std::string quoted_id(std::string_view id);

// Of one table. While `ids` are not finished, they are added to it.
class IdNumbers {
 public:
  // `columns` says which words are no id.
  IdNumbers(StringIds& ids, const TextColumns& columns) : ids_(ids), columns_(columns) {}

  // The dense id, 0 while ids are not finished, -1 for a word that says that there is none. `place`
  // gives where the id lies. DataError for what is no id (ids/id_table.h).
  template <class Place>
  std::int64_t of(std::string_view id, Place&& place) {
    if (columns_.is_missing(id)) return -1;
    if (!is_id(id)) refuse(id, place());
    if (!ids_.finished()) {
      ids_.add(id);
      return 0;
    }
    const auto found = ids_.find(id);
    if (!found) note_unknown(id, unknown_.empty() ? place() : std::string());
    return found.value_or(0);
  }
  // Throws DataError for ids that no vertex has, and names a few: after a block of rows. `hint` is
  // added to what to do.
  void check_unknown(std::string_view hint = {}) const;
  bool has_unknown() const { return !unknown_.empty(); }

 private:
  static bool is_id(std::string_view id);
  [[noreturn]] static void refuse(std::string_view id, const std::string& place);
  void note_unknown(std::string_view id, std::string place);

  StringIds& ids_;
  TextColumns columns_;
  std::vector<std::string> unknown_;  // the first few
  std::string unknown_at_;
};

}  // namespace ooc
