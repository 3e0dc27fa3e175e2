// Rows without their zeros, bit by bit what they were. What passes make is often mostly zeros
// (ReLU, dropout, and the gradients after them), and storage is slower than packing.
#pragma once

#include <cstddef>
#include <span>

namespace ooc {

// Both work in place, on the fp32 elements of one unit, and take a 32nd of its bytes of a thread's
// own besides. Packed rows lie at the end:
//   [begin) a bit an element, whether it is another one than +0; up to a page that nobody reads;
//   the other ones, in order, up to the end.

// Packs, and returns where what is left begins, at a multiple of kIoAlignment; 0, and nothing has
// changed, where an eighth of the bytes or less would be left out, or the first rows look like it.
std::size_t pack_zeros(std::span<std::byte> rows);
// The rows that pack_zeros() left from `begin` on; false where it can't have left what is there.
bool unpack_zeros(std::span<std::byte> rows, std::size_t begin);

}  // namespace ooc
