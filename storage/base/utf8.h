// Text that people wrote.
#pragma once

#include <string_view>

namespace ooc {

// Whether `text` is UTF-8 (no surrogates, nothing longer than needed) without control characters.
bool is_plain_utf8(std::string_view text);

}  // namespace ooc
