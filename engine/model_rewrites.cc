#include "engine/model_rewrites.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/model_program.h"
#include "engine/stages.h"
#include "sched/executor.h"

namespace ooc {
namespace {

std::vector<TensorId> roots_of(const Model& model) {
  std::vector<TensorId> roots;
  for (const BatchStatistics& statistics : model.batch_statistics) {
    if (statistics.sums >= 0) roots.push_back(statistics.sums);
  }
  for (const TensorId id : {model.embedding, model.logits, model.loss}) {
    if (id >= 0) roots.push_back(id);
  }
  return roots;
}

// Results are made by an operation, also where they are an input as it is.
void make_results(Model& model) {
  for (TensorId* id : {&model.embedding, &model.logits}) {
    if (*id >= 0 && model.graph.tensor(*id).producer < 0) *id = model.graph.apply("copy", {*id});
  }
}

template <class T>
void copy_rows(const Executor& executor, ValueId value, MemorySource<T>& to) {
  const TensorLayout& layout = to.layout();
  for (std::int64_t block = 0; block < layout.block_count(); ++block) {
    for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
      const auto elements = layout.rows_of(block) * layout.slice_stride(slice);
      T* rows = &to.at(block * layout.block_rows, slice * kSliceWidth);
      std::memcpy(rows, executor.output_chunk(value, block, slice),
                  static_cast<std::size_t>(elements) * sizeof(T));
    }
  }
}

}  // namespace

Model rewritten(Model model, Rewritten graph) {
  for (ModelParameter& parameter : model.parameters) parameter.tensor = graph.at(parameter.tensor);
  for (BatchStatistics& statistics : model.batch_statistics) {
    statistics.sums = graph.at(statistics.sums);
  }
  for (TensorId* id : {&model.embedding, &model.logits, &model.loss}) *id = graph.at(*id);
  model.graph = std::move(graph.graph);
  return model;
}

Model rewrite_model(Model model, const Rewrites& rewrites, Precomputed& precomputed,
                    const RewriteObserver& observer) {
  const auto apply = [&](Rewritten graph) {
    model = rewritten(std::move(model), std::move(graph));
  };
  const auto did = [&](const char* name) {
    if (observer) observer(name, model);
  };
  if (rewrites.motion) {
    apply(move_operators(model.graph));
    did("motion");
  }
  if (rewrites.common) {
    apply(merge_common(model.graph));
    did("common");
  }
  if (rewrites.order) {
    apply(order_matmuls(model.graph, roots_of(model), rewrites.hoisting));
    if (rewrites.common) apply(merge_common(model.graph));
    did("order");
  }
  if (rewrites.hoisting) {
    precomputed.graph = std::make_shared<const TensorGraph>(model.graph);
    apply(hoist_constants(model.graph, precomputed.tensors));
    did("hoisting");
  }
  if (rewrites.dead) {
    apply(drop_dead(model.graph, roots_of(model)));
    did("dead");
  }
  make_results(model);
  return model;
}

std::int64_t arena_bytes_once(const Precomputed& precomputed, const GraphCounts& counts) {
  if (precomputed.tensors.empty()) return 0;
  std::vector<TensorId> roots;
  for (const Hoisted& hoisted : precomputed.tensors) roots.push_back(hoisted.tensor);
  return make_plan(make_stages(*precomputed.graph, "once", roots).program, counts).arena_bytes;
}

bool compute_once(const Precomputed& precomputed, Backend& backend, const Dataset& dataset,
                  GraphInputs& inputs, const std::atomic<bool>* stop) {
  std::vector<TensorId> roots;
  std::vector<const Hoisted*> missing;
  for (const Hoisted& hoisted : precomputed.tensors) {
    if (inputs.sources().contains(hoisted.input)) continue;
    missing.push_back(&hoisted);
    roots.push_back(hoisted.tensor);
  }
  if (missing.empty()) return true;
  const StagedGraph staged = make_stages(*precomputed.graph, "once", roots);
  const Plan plan = make_plan(staged.program, counts_of(dataset));
  Arena arena = backend.allocate(static_cast<std::size_t>(plan.arena_bytes));
  Executor executor(backend, dataset, staged.program, plan, std::move(arena), inputs.sources());
  if (!executor.run({}, stop)) return false;
  const DType real = precomputed.graph->real();
  for (const Hoisted* hoisted : missing) {
    const ValueId value = staged.value(hoisted->tensor);
    const TensorLayout layout = executor.layout(value);
    const auto add = [&]<class T>(std::unique_ptr<MemorySource<T>> source) {
      copy_rows(executor, value, *source);
      inputs.add(hoisted->input, std::move(source));
    };
    if (real == DType::kF64) {
      add(std::make_unique<MemorySource<double>>(layout));
    } else {
      add(std::make_unique<MemorySource<float>>(layout));
    }
  }
  return true;
}

}  // namespace ooc
