// A guess at what a mistyped word was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ooc {

// The candidate with the fewest edits to `text`; empty if none is close enough to be a slip.
std::string closest(std::string_view text, const std::vector<std::string>& candidates);

// Whether somebody who writes `text` means `word`: letters of either case, _ for -.
bool is_word(std::string_view text, std::string_view word);

}  // namespace ooc
