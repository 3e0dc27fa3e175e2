// What a long import, generation or check answers to while it runs.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

#include "storage/base/errors.h"

namespace ooc {

// Called with the phase's name and how much of it is done, in the phase's own unit.
using Progress = std::function<void(std::string_view phase, double done, double total)>;

// Passed down by reference; everything that loops over rows or edges calls step() at least every
// few ten thousand of them, from one thread at a time.
struct Control {
  Progress progress;                        // may be empty
  const std::atomic<bool>* stop = nullptr;  // may be null; set from a signal handler

  // Throws Interrupted once `stop` is set.
  void check() const {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
      throw Interrupted("interrupted", "", "nothing was written; run the command again");
    }
  }

  void step(std::string_view phase, double done, double total) const {
    check();
    if (progress) progress(phase, done, total);
  }
};

}  // namespace ooc
