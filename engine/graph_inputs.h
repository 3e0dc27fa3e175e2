// What a program reads of a dataset, by input name: its vertex tensors in place, and the row
// factors computed from its degrees (engine/model.h).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "sched/block_source.h"
#include "storage/dataset.h"

namespace ooc {

class GraphInputs {
 public:
  // `real`: the type of the row factors. The dataset outlives it.
  GraphInputs(const Dataset& dataset, DType real);

  const std::map<std::string, const BlockSource*>& sources() const { return sources_; }
  // Of the inputs that aren't read in place.
  std::int64_t memory_bytes() const;

 private:
  void add(const std::string& name, std::unique_ptr<BlockSource> source);
  template <class T>
  void add_factors(const Dataset& dataset);

  std::map<std::string, const BlockSource*> sources_;
  std::vector<std::unique_ptr<BlockSource>> owned_;
};

}  // namespace ooc
