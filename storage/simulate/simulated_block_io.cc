#include "storage/simulate/simulated_block_io.h"

#include <utility>

namespace ooc {
namespace {

class SimulatedFile final : public BlockFile {
 public:
  SimulatedFile(std::string path, std::uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {}
  const std::string& path() const override { return path_; }
  std::uint64_t size() const override { return bytes_; }
  bool direct() const override { return true; }

 private:
  const std::string path_;
  const std::uint64_t bytes_;
};

}  // namespace

SimulatedBlockIo::SimulatedBlockIo(SimulatedClock& clock, const StorageRates& rates)
    : clock_(clock) {
  const auto both = std::make_shared<SharedLink>(rates.both);
  reads_ = {std::make_shared<SharedLink>(rates.read), both};
  writes_ = {std::make_shared<SharedLink>(rates.write), both};
}

std::unique_ptr<BlockFile> SimulatedBlockIo::open(const std::string& path) {
  return std::make_unique<SimulatedFile>(path, 0);
}

std::unique_ptr<BlockFile> SimulatedBlockIo::create_temporary(const std::string& directory,
                                                              std::uint64_t bytes) {
  return std::make_unique<SimulatedFile>(directory, bytes);
}

void SimulatedBlockIo::submit(BlockRequest request) {
  const LinkPath& path = request.kind == BlockRequest::Kind::kRead ? reads_ : writes_;
  const RunClock::Time now = clock_.now();
  const RunClock::Time end = reserve(path, request.bytes, now);
  clock_.after(clock_.varied(end - now), [done = std::move(request.done)] { done(nullptr); });
}

}  // namespace ooc
