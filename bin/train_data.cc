#include "bin/train_data.h"

#include <fmt/format.h>

#include "engine/minibatch/stored_batches.h"
#include "engine/train/config_words.h"
#include "storage/base/errors.h"

namespace ooc {

TrainData::TrainData(const std::string& path, VerifyPolicy verify) {
  FileSystem& files = posix_file_system();
  if (is_batches(files, path)) {
    batches_.emplace(BatchFile::open(files, path, verify));
  } else {
    dataset_.emplace(Dataset::open(files, path, verify));
  }
}

void TrainData::set_sampling(RunConfig& config) const {
  if (!batches_) return;
  const SamplingConfig stored = sampling_of(batches_->manifest());
  if (config.sampling != SamplingConfig{} && config.sampling != stored) {
    std::string options =
        fmt::format("--fanouts {} --batch-size {}", to_text(stored.fanouts), stored.batch_size);
    if (stored.replace) options += " --replace";
    if (stored.sampler != Sampler::kNeighbor) {
      options += fmt::format(" --sampler {} --batch-dependency {}",
                             word_of(kSamplers, stored.sampler), stored.batch_dependency);
    }
    if (stored.weighted) options += " --weighted";
    throw UsageError(fmt::format("the batches were sampled with {}", options), batches_->path(),
                     "leave options of sampling out, or sample others");
  }
  config.sampling = stored;
}

std::unique_ptr<BatchTrainer> TrainData::batch_trainer(Backend& backend, BlockIo& io,
                                                       const RunConfig& config,
                                                       const BatchTrainerOptions& options) const {
  if (batches_) return std::make_unique<BatchTrainer>(backend, io, *batches_, config, options);
  return std::make_unique<BatchTrainer>(backend, io, posix_file_system(), *dataset_, config,
                                        options);
}

}  // namespace ooc
