// What a program reads of a dataset, by input name: its vertex tensors in place, and what is
// computed once a run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sched/block_source.h"
#include "storage/dataset.h"

namespace ooc {

class GraphInputs {
 public:
  // The dataset outlives it.
  explicit GraphInputs(const Dataset& dataset);

  const std::map<std::string, const BlockSource*>& sources() const { return sources_; }
  // One more, by a name not there yet.
  void add(const std::string& name, std::unique_ptr<BlockSource> source);
  // Of the inputs that aren't read in place.
  std::int64_t memory_bytes() const;

 private:
  std::map<std::string, const BlockSource*> sources_;
  std::vector<std::unique_ptr<BlockSource>> owned_;
};

}  // namespace ooc
