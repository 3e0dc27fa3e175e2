#include "storage/base/closest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ooc {
namespace {

// Levenshtein's distance, with two neighbours swapped as one edit (Damerau).
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), above = row, before;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);  // of a's first i - 2 letters, and i - 1
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({substitute, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string closest(std::string_view text, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t fewest = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edits(text, candidate);
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

bool is_word(std::string_view text, std::string_view word) {
  const auto plain = [](char c) {
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [&](char a, char b) { return plain(a) == plain(b); });
}

}  // namespace ooc
