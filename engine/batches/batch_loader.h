// Batches of a dataset, one after the other, as a BatchExecutor takes them: made many at once
// (engine/batches/prepared_batches.h), assembled when their turn comes, while the rows of the
// next one are on their way and the next many are made.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "engine/batches/batch_options.h"
#include "engine/batches/loaded_batch.h"
#include "engine/batches/prepared_batches.h"
#include "engine/batches/seeds.h"
#include "engine/train/graph_inputs.h"
#include "storage/dataset/dataset.h"

namespace ooc {

// What batches took. Making them goes on beside other work.
struct LoadedSeconds {
  double sampling = 0, packing = 0;
  double waiting = 0;     // until they were made, nothing else being done
  double assembling = 0;  // rows and tiles, the last reads included
};

// One thread drives it; another one, of its own, makes batches ahead.
class BatchLoader {
 public:
  // All of it outlives this.
  BatchLoader(BlockIo& io, FileSystem& files, const Dataset& dataset, const GraphInputs& inputs,
              BatchLoaderOptions options);
  ~BatchLoader();  // gives up what is being made

  // Begins with these seeds' batches, the first one of which is left; what was begun before is
  // dropped. What batches choose follows from their keys and from names alone.
  void begin(SeedBatches seeds, std::int64_t first = 0);
  // What will be begun next is made ahead; once has_all(), so that there is memory.
  void announce(SeedBatches seeds);
  std::int64_t batches() const { return seeds_.count(); }
  // Makes the next batch the current one. False: there is none, or `stop` was set. DataError,
  // IoError and BudgetError pass through.
  bool next(const std::atomic<bool>* stop);
  std::int64_t index() const { return next_ - 1; }
  std::int64_t done() const { return next_; }  // batches that were current or left out
  // Until it is begun anew: gives the memory of batches back, but for those that are made ahead.
  void rest();
  // Whether all batches that are left are made: others may be, beside these.
  bool has_all() const { return current_ && current_->end == seeds_.count(); }
  const LoadedBatch& batch() const { return batch_; }
  // For others who pack the same.
  const std::shared_ptr<HotRows>& hot_rows() const { return maker_.hot_rows(); }

  // Since the last time, of what was begun.
  LoadedBytes take_bytes();
  std::vector<SuperbatchFigures> take_superbatches() { return std::exchange(superbatches_, {}); }
  LoadedSeconds take_seconds() { return std::exchange(seconds_, {}); }

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
  SampledBatch sampled_;
  LoadedBatch batch_;
  SuperbatchMaker maker_;
  SeedBatches seeds_;
  std::optional<SeedBatches> announced_;
  std::int64_t next_ = 0;  // batch
  std::unique_ptr<PreparedBatches> current_;
  std::optional<ComingRows> coming_;  // of the next batch
  std::atomic<bool> gives_up_{false};
  std::optional<Making> making_;
  LoadedBytes released_, taken_;
  LoadedSeconds seconds_;
  SuperbatchFigures figures_;                    // of the current one
  std::vector<SuperbatchFigures> superbatches_;  // that are released
};

}  // namespace ooc
