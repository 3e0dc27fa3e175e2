// What a program reads of a dataset, by input name: its vertex tensors in place, the row factors
// computed from its degrees (engine/model.h), and the labels of a binary task.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "sched/block_source.h"
#include "storage/dataset.h"

namespace ooc {

// Inputs computed from degrees besides those of engine/model.h, V x 1, real: 1 / (in-edges), self
// loops in the data included, and with the loops a set of edges adds; 0 where there are none.
inline constexpr const char* kInverseInDegree = "inverse_in_degree";
inline constexpr const char* kInverseInDegreeWithLoops = "inverse_in_degree_with_loops";

// Names of all inputs that are computed when a program starts, not read from files.
std::set<std::string> computed_inputs();

class GraphInputs {
 public:
  // `real`: the type of the computed inputs; those of `names` are made. The dataset outlives it.
  GraphInputs(const Dataset& dataset, DType real,
              const std::set<std::string>& names = computed_inputs());

  const std::map<std::string, const BlockSource*>& sources() const { return sources_; }
  // kBinaryLabels (engine/task.h), from the dataset's single labels of two classes.
  void add_binary_labels(const Dataset& dataset);
  // One more, by a name not there yet.
  void add(const std::string& name, std::unique_ptr<BlockSource> source);
  // Of the inputs that aren't read in place.
  std::int64_t memory_bytes() const;

 private:
  template <class T>
  void add_factors(const Dataset& dataset, const std::set<std::string>& names);

  std::map<std::string, const BlockSource*> sources_;
  std::vector<std::unique_ptr<BlockSource>> owned_;
};

}  // namespace ooc
