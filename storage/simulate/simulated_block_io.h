// Storage that isn't there: requests take the time that its rates say, by a simulated clock, and
// move nothing.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "storage/base/shared_link.h"
#include "storage/io/block_file.h"
#include "storage/simulate/simulated_clock.h"

namespace ooc {

// Bytes a second: of reads, of writes, and of both together.
struct StorageRates {
  double read = 0, write = 0, both = 0;
};

// Its completions are events of the clock, which outlives it.
class SimulatedBlockIo final : public BlockIo {
 public:
  SimulatedBlockIo(SimulatedClock& clock, const StorageRates& rates);

  std::string_view name() const override { return "simulated"; }
  bool moves_data() const override { return false; }
  // Any path: a file of no bytes, of which some are asked for nevertheless.
  std::unique_ptr<BlockFile> open(const std::string& path) override;
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override;
  void submit(BlockRequest request) override;

 private:
  SimulatedClock& clock_;
  LinkPath reads_, writes_;
};

}  // namespace ooc
