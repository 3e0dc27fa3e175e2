#include "storage/base/checked_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "storage/base/checksum.h"
#include "storage/base/json_text.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

std::string checksum_of(const Json& json) {
  const std::string text = json_text(json);
  return checksum_text(checksum64(std::as_bytes(std::span(text))));
}

}  // namespace

std::string checksum_text(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::uint64_t checksum_of_text(const std::string& text) { return std::stoull(text, nullptr, 16); }

std::string checked_json_text(Json json) {
  json["checksum"] = checksum_of(json);
  return json_text(json, 2) + "\n";
}

bool is_canonical_json(const std::string& text) {
  return json_text(Json::parse(text), 2) + "\n" == text;
}

Json parse_shallow_json(const std::string& text) {
  constexpr int kMostLevels = 32;
  int deepest = 0;
  Json json = Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
    deepest = std::max(deepest, depth);
    return depth <= kMostLevels;
  });
  return deepest <= kMostLevels ? json : Json();
}

std::optional<std::string> take_checksum(Json& json) {
  auto checksum = json.at("checksum").get<std::string>();
  json.erase("checksum");
  if (checksum != checksum_of(json)) return std::nullopt;
  return checksum;
}

}  // namespace ooc
