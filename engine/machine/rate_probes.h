// What machine_rates.h measures, one by one.
#pragma once

#include <memory>

#include "engine/machine/machine_rates.h"

namespace ooc {

// A temporary file, and threads with data of their own: as many as there are workers, fewer where
// there is little memory.
class RateProbes {
 public:
  // IoError where the file can't be written.
  RateProbes(BlockIo& io, const RateOptions& options);
  ~RateProbes();

  // Whether a file could be made; otherwise rates of storage stay as they are.
  bool has_storage() const;

  // Sets each rate, measured for `seconds`, about. Storage: the file written, read, and both at
  // once, in large requests of which many are under way, from and into buffers as an executor has
  // them, while threads go through memory, which computing and transfers share: one for each
  // worker, as far as there is memory for that. Edges: bytes as plans count them (passes/stages.h:
  // gather_bytes) of a small graph whose rows no cache holds. Rows: operators on row groups such as
  // stand after a propagation, and the packing of rows that no cache holds. Of edges and rows the
  // processors' time counts, not the clock's, so that other programs hardly change the rates.
  // IoError where the file can't be written or read.
  void measure(double seconds, MachineRates& rates);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ooc
