// Batches of a dataset, one after the other, as a BatchExecutor takes them: made many at once
// (engine/minibatch/prepared_batches.h), assembled when their turn comes, while the rows of the
// next one are on their way and the next many are made.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>

#include "engine/minibatch/batch_options.h"
#include "engine/minibatch/loaded_batch.h"
#include "engine/minibatch/prepared_batches.h"
#include "engine/minibatch/seeds.h"
#include "engine/train/graph_inputs.h"
#include "storage/dataset/dataset.h"

namespace ooc {

// One thread drives it; another one, of its own, makes batches ahead.
class BatchLoader {
 public:
  // All of it outlives this.
  BatchLoader(BlockIo& io, FileSystem& files, const Dataset& dataset, const GraphInputs& inputs,
              BatchLoaderOptions options);
  ~BatchLoader();  // gives up what is being made

  // Begins with these seeds' batches; what was begun before is dropped. What batches choose follows
  // from their keys and from names alone.
  void begin(SeedBatches seeds);
  // What will be begun next is made as soon as the last of these batches are.
  void announce(SeedBatches seeds);
  std::int64_t batches() const { return seeds_.count(); }
  // Makes the next batch the current one. False: there is none, or `stop` was set. DataError,
  // IoError and BudgetError pass through.
  bool next(const std::atomic<bool>* stop);
  std::int64_t index() const { return next_ - 1; }
  const LoadedBatch& batch() const { return batch_; }

  LoadedBytes take_bytes();  // since the last time, of what was begun

 private:
  struct Making {
    SeedBatches seeds;
    std::int64_t first = 0;
    std::future<std::unique_ptr<PreparedBatches>> batches;
  };

  void make(SeedBatches seeds, std::int64_t first);
  void make_ahead();
  void give_up();
  bool take(const std::atomic<bool>* stop);
  void release();

  BatchLoaderOptions options_;
  LoadedBatch batch_;
  SuperbatchMaker maker_;
  SeedBatches seeds_;
  std::optional<SeedBatches> announced_;
  std::int64_t next_ = 0;  // batch
  std::unique_ptr<PreparedBatches> current_;
  std::optional<ComingRows> coming_[2];
  std::atomic<bool> gives_up_{false};
  std::optional<Making> making_;
  LoadedBytes released_, taken_;
};

}  // namespace ooc
