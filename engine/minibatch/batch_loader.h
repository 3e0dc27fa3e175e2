// Batches of a dataset, one after the other, as a BatchExecutor takes them: sampled and packed many
// at once (sched/sampling/superbatch.h, packed_rows.h), assembled when their turn comes while the
// rows of the next one are on their way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/minibatch/batch_options.h"
#include "engine/minibatch/loaded_batch.h"
#include "engine/minibatch/seeds.h"
#include "engine/train/graph_inputs.h"
#include "kernels/device/host_buffer.h"
#include "sched/batch/batch_executor.h"
#include "sched/sampling/packed_rows.h"
#include "sched/sampling/superbatch.h"
#include "storage/dataset/dataset.h"

namespace ooc {

// One thread drives it.
class BatchLoader {
 public:
  // All of it outlives this.
  BatchLoader(BlockIo& io, FileSystem& files, const Dataset& dataset, const GraphInputs& inputs,
              BatchLoaderOptions options);
  ~BatchLoader();

  // Begins with these seeds' batches; what was begun before is dropped. What batches choose follows
  // from their keys and from names alone.
  void begin(SeedBatches seeds);
  std::int64_t batches() const { return seeds_.count(); }
  // Makes the next batch the current one. False: there is none, and memory for batches is free
  // again; or `stop` was set. DataError, IoError and BudgetError pass through.
  bool next(const std::atomic<bool>* stop,
            const std::function<void(double share)>& on_sampling = nullptr);
  std::int64_t index() const { return next_ - 1; }
  const LoadedBatch& batch() const { return batch_; }

  struct Bytes {
    std::int64_t read = 0, written = 0;
  };
  Bytes take_bytes();  // since the last time, from and to storage

 private:
  SuperbatchShape shape() const;
  bool prepare(std::int64_t first, const std::atomic<bool>* stop,
               const std::function<void(double share)>& on_sampling);
  SuperbatchOptions superbatch_options() const;
  bool sample(std::int64_t first, std::int64_t end,
              const std::function<void(double share)>& on_sampling);
  bool pack();
  void release_rows();

  BlockIo& io_;
  FileSystem& files_;
  const Dataset& dataset_;
  BatchLoaderOptions options_;
  std::vector<std::uint32_t> names_, degrees_;
  HostBuffer edge_slots_;
  EdgeStore edges_;
  Driver driver_;
  LoadedBatch batch_;
  SeedBatches seeds_;
  std::int64_t next_ = 0, first_ = 0, end_ = 0;  // batches: to come; of the superbatch
  std::optional<Superbatch> superbatch_;
  std::vector<std::int64_t> batch_rows_;  // by batch of the superbatch
  std::optional<PackedRows> rows_;
  std::optional<ComingRows> coming_[2];
  Bytes bytes_, taken_;
};

}  // namespace ooc
