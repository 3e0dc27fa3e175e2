#include "storage/format/feature_scaling.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "storage/base/json_text.h"

namespace ooc {
namespace {

constexpr std::string_view kStandard = "standard";

}  // namespace

bool FeatureScaling::fits(const FeatureScaling& other) const {
  if (norm.empty() || other.norm.empty()) return true;
  if (norm != other.norm) return false;
  return norm != kStandard || (mean == other.mean && factor == other.factor);
}

std::string describe(const FeatureScaling& scaling) {
  if (scaling.norm != kStandard || scaling.mean.empty()) return scaling.norm;
  return fmt::format("{}, in column 0 less {:.6g}, times {:.6g}", scaling.norm, scaling.mean[0],
                     scaling.factor[0]);
}

nlohmann::ordered_json to_json(const FeatureScaling& scaling) {
  nlohmann::ordered_json json = {{"norm", scaling.norm}, {"missing", scaling.missing}};
  if (!scaling.mean.empty()) json["mean"] = scaling.mean;
  if (!scaling.factor.empty()) json["factor"] = scaling.factor;
  return json;
}

FeatureScaling feature_scaling_from_json(const nlohmann::ordered_json& json) {
  using Column = std::vector<double>;
  return {json.at("norm"), json.at("missing"), json.value("mean", Column()),
          json.value("factor", Column())};
}

std::string to_text(const FeatureScaling& scaling) { return json_text(to_json(scaling)); }

FeatureScaling feature_scaling_from_text(std::string_view text) {
  return feature_scaling_from_json(nlohmann::ordered_json::parse(text));
}

}  // namespace ooc
