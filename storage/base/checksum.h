// XXH3-64, the one checksum of ooc's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ooc {

std::uint64_t checksum64(std::span<const std::byte> data);

// The same over data that arrives in pieces.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;
  void update(std::span<const std::byte> data);
  std::uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ooc
