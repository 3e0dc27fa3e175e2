#include "engine/graph_inputs.h"

#include <utility>

#include "sched/plan.h"

namespace ooc {

GraphInputs::GraphInputs(const Dataset& dataset) {
  for (const char* name : {"features", "labels", "splits", "ids", "degrees"}) {
    const VertexTensorFile* file = dataset.tensor(name);
    if (file != nullptr) add(name, std::make_unique<MappedSource>(*file));
  }
}

void GraphInputs::add(const std::string& name, std::unique_ptr<BlockSource> source) {
  sources_[name] = source.get();
  owned_.push_back(std::move(source));
}

std::int64_t GraphInputs::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [name, source] : sources_) {
    const TensorLayout& layout = source->layout();
    if (!source->in_storage()) bytes += resident_bytes(layout, source->dtype());
  }
  return bytes;
}

}  // namespace ooc
