// Which of its in-edges a vertex takes, as ordinals in the order of their sources' names. A draw is
// a function of who asks alone: of neither threads nor what else is drawn.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/spec/random.h"

namespace ooc {

// Of a vertex, by its name, that asks for a batch: `batch_key` is random.
inline std::uint64_t asker_key(std::uint64_t batch_key, std::uint64_t vertex_name) {
  return mix64(batch_key ^ mix64(vertex_name));
}

// As many distinct numbers below `degree` as `ordinals` takes, at most `degree`; ascending. Every
// set is as likely as any other (Floyd's algorithm: Bentley and Floyd, CACM 30(9), 1987).
void draw_distinct(std::uint64_t asker, std::uint32_t degree, std::span<std::uint32_t> ordinals);
// Each by itself, so that numbers may come several times; ascending. `degree` is above 0.
void draw_repeated(std::uint64_t asker, std::uint32_t degree, std::span<std::uint32_t> ordinals);

}  // namespace ooc
