#include "engine/sampling/fanouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <sstream>
#include <utility>

namespace ooc {
namespace {

constexpr const char* kExact = "exact";

}  // namespace

std::optional<Fanouts> parse_fanouts(const std::string& text) {
  constexpr std::int64_t kMost = 1 << 20;
  Fanouts fanouts;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    std::int64_t number = 0;
    const char* const end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, number);
    const bool is_fanout = number == -1 || (number > 0 && number <= kMost);
    if (error != std::errc() || at != end || !is_fanout) return std::nullopt;
    fanouts.hops.push_back(number);
  }
  if (fanouts.empty() || text.ends_with(',')) return std::nullopt;
  return fanouts;
}

std::string to_text(const Fanouts& fanouts) {
  return fmt::format("{}", fmt::join(fanouts.hops, ","));
}

std::optional<EvalFanouts> parse_eval_fanouts(const std::string& text) {
  if (text == kExact) return EvalFanouts{{}, true};
  std::optional<Fanouts> fanouts = parse_fanouts(text);
  if (!fanouts) return std::nullopt;
  return EvalFanouts{std::move(*fanouts), false};
}

std::string to_text(const EvalFanouts& fanouts) {
  return fanouts.exact ? kExact : to_text(static_cast<const Fanouts&>(fanouts));
}

}  // namespace ooc
