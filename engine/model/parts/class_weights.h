// How much a class counts in the loss, against its frequency.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model/parts/task.h"
#include "storage/dataset/dataset.h"

namespace ooc {

// The weight of each class of single labels, as torch.nn.CrossEntropyLoss's: the loss is divided by
// the weights of the labels in it. Of multi-label and binary ones the weight of an entry that is 1,
// one a logit, as the pos_weight of torch.nn.BCEWithLogitsLoss.
struct ClassWeights {
  enum class Kind { kNone, kBalanced, kGiven };
  Kind kind = Kind::kNone;
  std::vector<double> given;

  bool weigh() const { return kind != Kind::kNone; }
  bool operator==(const ClassWeights&) const = default;
};
inline const ClassWeights kBalancedWeights{ClassWeights::Kind::kBalanced, {}};

// "none", "balanced" or "1,0.5,2"; parsing gives nothing for other texts. Weights are finite and
// not negative.
std::string to_text(const ClassWeights& weights);
std::optional<ClassWeights> parse_class_weights(const std::string& text);

// UsageError where there are weights of values, or another number of weights than logits.
void check_class_weights(const ClassWeights& weights, Task task, std::int64_t classes);

// What a model's loss multiplies by, one a logit. Balanced: training vertices / (classes that occur
// among them * those of the class), 0 for others; of 0 and 1, zeros / ones among the labels of the
// training vertices, 1 where there is one kind alone. Those of single labels are scaled so that
// their sum over the training vertices is the number of these. UsageError where that sum is 0.
std::vector<double> class_weights_of(const Dataset& dataset, const ClassWeights& weights,
                                     Task task);
// The same, of so many labels of the training vertices, class by class or column by column: those
// that aren't of it, and those that are. `where` names them in errors.
std::vector<double> class_weights_of(std::span<const std::array<std::int64_t, 2>> labels,
                                     const ClassWeights& weights, Task task,
                                     const std::string& where);

}  // namespace ooc
