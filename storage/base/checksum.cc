#include "storage/base/checksum.h"

#include <xxhash.h>

namespace ooc {

std::uint64_t checksum64(std::span<const std::byte> data) {
  return XXH3_64bits(data.data(), data.size());
}

struct Checksum::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(state_->xxh); }
Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::update(std::span<const std::byte> data) {
  XXH3_64bits_update(state_->xxh, data.data(), data.size());
}

std::uint64_t Checksum::digest() const { return XXH3_64bits_digest(state_->xxh); }

}  // namespace ooc
