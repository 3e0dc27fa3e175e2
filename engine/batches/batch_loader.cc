#include "engine/batches/batch_loader.h"

#include <chrono>
#include <utility>

#include "engine/machine/elapsed.h"

namespace ooc {

BatchLoader::BatchLoader(BlockIo& io, FileSystem& files, const Dataset& dataset,
                         const GraphInputs& inputs, BatchLoaderOptions options)
    : options_(std::move(options)),
      sampled_(options_, inputs),
      batch_(options_, dataset.manifest().edges.data),
      maker_(io, files, dataset, options_, sampled_.packed()) {}

BatchLoader::~BatchLoader() { give_up(); }

void BatchLoader::begin(SeedBatches seeds, std::int64_t first) {
  release();
  seeds_ = std::move(seeds);
  announced_.reset();
  next_ = first;
  if (making_ && !(making_->first == first && making_->seeds.same(seeds_))) give_up();
}

void BatchLoader::announce(SeedBatches seeds) {
  announced_ = std::move(seeds);
  make_ahead();
}

void BatchLoader::make(SeedBatches seeds, std::int64_t first) {
  making_.emplace(std::move(seeds), first);
  making_->batches = std::async(
      std::launch::async, [this, first] { return maker_.make(making_->seeds, first, gives_up_); });
}

// What comes after the batches at hand, if it is known and nothing is being made.
void BatchLoader::make_ahead() {
  if (making_) return;
  if (current_ && current_->end < seeds_.count()) return make(seeds_, current_->end);
  if ((!current_ && next_ < seeds_.count()) || !announced_) return;
  make(*std::exchange(announced_, std::nullopt), 0);
}

void BatchLoader::give_up() {
  if (!making_) return;
  gives_up_ = true;
  making_->batches.wait();
  making_.reset();
  gives_up_ = false;
}

void BatchLoader::release() {
  coming_.reset();
  if (!current_) return;
  const LoadedBytes bytes = current_->bytes();
  released_.read += bytes.read;
  released_.written += bytes.written;
  figures_.moved = bytes;
  superbatches_.push_back(figures_);
  current_.reset();
}

void BatchLoader::rest() {
  release();
  sampled_.release();
  batch_.release();
}

bool BatchLoader::next(const std::atomic<bool>* stop) {
  if (next_ == batches()) {
    release();
    return false;
  }
  if ((!current_ || next_ == current_->end) && !take(stop)) return false;
  if (stop != nullptr && *stop) return false;
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t batch = next_++ - current_->first;
  const BatchContent& content =
      sampled_.assemble(*current_->sampled, *current_->rows, *coming_, batch);
  if (batch + 1 < current_->count()) current_->rows->read(batch + 1, *coming_);
  batch_.set(content);
  seconds_.assembling += seconds_since(begin);
  return true;
}

// Waits for those that begin with the next batch. False: stopped.
bool BatchLoader::take(const std::atomic<bool>* stop) {
  using std::chrono_literals::operator""ms;
  const auto begin = std::chrono::steady_clock::now();
  release();
  if (!making_) make(seeds_, next_);
  do {
    if (options_.on_wait) options_.on_wait(maker_.share_done());
    if (stop == nullptr || !*stop) continue;
    give_up();
    return false;
  } while (making_->batches.wait_for(20ms) != std::future_status::ready);
  Making made = std::move(*making_);
  making_.reset();
  current_ = made.batches.get();
  if (!current_) return false;
  seconds_.waiting += seconds_since(begin);
  seconds_.sampling += current_->sampling_seconds;
  seconds_.packing += current_->packing_seconds;
  figures_ = current_->figures();
  coming_.emplace();
  current_->rows->read(0, *coming_);
  make_ahead();
  return true;
}

LoadedBytes BatchLoader::take_bytes() {
  LoadedBytes all = released_;
  if (current_) {
    all.read += current_->bytes().read;
    all.written += current_->bytes().written;
  }
  const LoadedBytes since{all.read - taken_.read, all.written - taken_.written};
  taken_ = all;
  return since;
}

}  // namespace ooc
