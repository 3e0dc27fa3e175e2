// What import did to the numbers of features, kept so that another graph's are treated alike.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ooc {

struct FeatureScaling {
  std::string norm;                  // a word of --feature-norm; empty: not known
  std::string missing = "error";     // a word of --missing
  std::vector<double> mean, factor;  // by column, of the norm "standard"; the mean of missing ones

  // Whether features that both made compare with each other.
  bool fits(const FeatureScaling& other) const;
};

// "standard, in column 0 less 0.25, times 1.5", for messages.
std::string describe(const FeatureScaling& scaling);

nlohmann::ordered_json to_json(const FeatureScaling& scaling);
// Throws what nlohmann does where it isn't such JSON.
FeatureScaling feature_scaling_from_json(const nlohmann::ordered_json& json);
std::string to_text(const FeatureScaling& scaling);
FeatureScaling feature_scaling_from_text(std::string_view text);

}  // namespace ooc
