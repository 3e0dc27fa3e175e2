#include "bin/train_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "engine/model/parts/words.h"

namespace ooc {
namespace {

std::vector<double> percents_of(std::vector<double> shares) {
  for (double& share : shares) share *= 100;
  return shares;
}

}  // namespace

RunProgress::RunProgress(const cli::Command& command, const RunConfig& config)
    : config_(config), progress_(cli::Progress::standard_output(command.quiet())) {}

void RunProgress::show_batch(std::int64_t epoch, std::int64_t done, std::int64_t batches) {
  batches_ = batches;
  show(fmt::format("epoch {}{}", epoch, note_.empty() ? "" : ", before it " + note_),
       (epoch - 1) * batches + done);
}

void RunProgress::show_preparing(double share) {
  show(fmt::format("preparing batches, {:.0f} %{}", 100 * share,
                   note_.empty() ? "" : ", before it " + note_),
       done_);
}

void RunProgress::show_epoch(const EpochRecord& record) {
  bytes_ += record.counters.bytes_read - record.counters.zeros_read;
  bytes_ += record.counters.bytes_written - record.counters.zeros_written;
  note_ = fmt::format("loss {:.4f}", record.loss);
  for (std::size_t i = 0; i < record.scores.size(); ++i) {
    note_ += fmt::format("{} {} {:.4f}", i == 0 ? ", valid" : ",",
                         word_of(kMetrics, config_.metrics[i]), record.scores[i].valid);
  }
  if (!record.devices_busy.empty()) {
    note_ +=
        fmt::format(", devices busy {:.0f} %", fmt::join(percents_of(record.devices_busy), " "));
  }
  if (batches_ == 0) show(note_, record.epoch);
}

void RunProgress::show(const std::string& note, std::int64_t done) {
  done_ = done;
  const std::int64_t steps = config_.epochs * std::max<std::int64_t>(batches_, 1);
  progress_.update({"training", batches_ == 0 ? "epochs" : "batches", static_cast<double>(done),
                    static_cast<double>(steps), bytes_, note});
}

}  // namespace ooc
