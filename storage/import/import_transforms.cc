#include "storage/import/import_transforms.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "storage/base/json_text.h"

namespace ooc {
namespace {

template <class Enum, std::size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

}  // namespace

std::string describe_transforms(const ImportOptions& options) {
  nlohmann::ordered_json transforms = {
      {"undirected", options.edges.undirected},
      {"self_loops", name_of(kSelfLoopsNames, options.edges.self_loops)},
      {"coalesce", name_of(kCoalesceNames, options.edges.coalesce)},
      {"feature_norm", options.scaling
                           ? options.scaling->norm
                           : std::string(name_of(kFeatureNormNames, options.feature_norm))},
  };
  if (options.label_kind != LabelChoice::kAuto) {
    transforms["label_kind"] = name_of(kLabelChoiceNames, options.label_kind);
  }
  if (options.split_index) transforms["split_index"] = *options.split_index;
  if (const auto& shares = options.split_shares) {
    transforms["split"] = fmt::format("{}/{}/{}", shares->train, shares->valid, shares->test);
    transforms["split_seed"] = options.split_seed;
  }
  const auto& computed = options.computed_features;
  if (computed) transforms["features"] = computed->name;
  if (options.order == VertexOrder::kRandom || (computed && computed->random_cols > 0)) {
    transforms["seed"] = options.seed;
  }
  return json_text(transforms);
}

}  // namespace ooc
