#include "engine/model/saga/complaint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "storage/base/closest.h"
#include "storage/base/errors.h"

namespace ooc::saga {

std::string place_text(const std::string& source, const Place& place) {
  return fmt::format("{}:{}:{}", source, place.line, place.column);
}

void refuse(const std::string& source, const Place& place, const std::string& expected,
            const std::string& found, const std::string& remedy) {
  throw UsageError(
      fmt::format("{}: expected {}", place_text(source, place), expected),
      fmt::format("found {}", found),
      remedy.empty() ? "ooc-inspect --model gcn prints a program that is right" : remedy);
}

void refuse_name(const std::string& source, const Place& place, const std::string& expected,
                 const std::string& name, const std::vector<std::string>& known) {
  const std::string near = closest(name, known);
  refuse(source, place, expected, name,
         near.empty() ? fmt::format("known here: {}", fmt::join(known, ", "))
                      : fmt::format("did you mean {}?", near));
}

}  // namespace ooc::saga
