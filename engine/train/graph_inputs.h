// What programs read of a dataset, by input name: its vertex tensors, and what is computed once a
// run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/dataset/dataset.h"
#include "storage/io/block_file.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

class GraphInputs {
 public:
  // Both outlive it.
  GraphInputs(BlockIo& io, const Dataset& dataset);

  const std::map<std::string, TensorStore*>& stores() const { return stores_; }
  bool contains(const std::string& name) const { return stores_.contains(name); }
  const TensorStore& store(const std::string& name) const { return *stores_.at(name); }
  // One more, by a name not there yet.
  void add(const std::string& name, std::unique_ptr<TensorStore> store);

 private:
  std::map<std::string, TensorStore*> stores_;
  std::vector<std::unique_ptr<TensorStore>> owned_;
};

}  // namespace ooc
