#include "engine/train/graph_inputs.h"

#include <utility>

#include "storage/stores/dataset_tensor.h"

namespace ooc {

GraphInputs::GraphInputs(BlockIo& io, const Dataset& dataset) {
  for (const char* name : {"features", "labels", "splits", "ids", "degrees"}) {
    const VertexTensorFile* file = dataset.tensor(name);
    if (file != nullptr) add(name, std::make_unique<DatasetTensor>(io, *file));
  }
}

void GraphInputs::add(const std::string& name, std::unique_ptr<TensorStore> store) {
  stores_[name] = store.get();
  owned_.push_back(std::move(store));
}

}  // namespace ooc
