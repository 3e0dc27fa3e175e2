// Whose rows batches are made for, and in which order: the vertices of a split.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/dataset/dataset.h"

namespace ooc {

// Original ids by vertex, as sampling names vertices. Empty where that is the vertex itself: in a
// dataset of natural order.
std::vector<std::uint32_t> vertex_names(const Dataset& dataset);
// By vertex: its in-edges, loops among them.
std::vector<std::uint32_t> in_degrees(const Dataset& dataset);

// What sampling keeps of every vertex.
struct SampledVertices {
  explicit SampledVertices(const Dataset& dataset)
      : names(vertex_names(dataset)), degrees(in_degrees(dataset)) {}

  std::vector<std::uint32_t> names, degrees;
};

// Vertices of the split, in the order of their names.
std::vector<std::uint32_t> vertices_of(const Dataset& dataset, Split split,
                                       std::span<const std::uint32_t> names);
// What sampling is keyed by, apart from each other and from the streams of masks.
enum class SeedStream : std::uint64_t { kShuffle = 0x5eed, kTrain, kEvaluate, kTest, kOther };
std::uint64_t seed_key(SeedStream stream, std::int64_t seed, std::int64_t epoch);

// The same vertices in a random order, which follows from names and `key` alone.
void shuffle_seeds(std::span<std::uint32_t> seeds, std::uint64_t key,
                   std::span<const std::uint32_t> names);

// Those of a split that is judged, the same in every epoch: as seeds of the training they are
// independent, so that what batches reach is alike.
void shuffle_judged(std::span<std::uint32_t> seeds, Split split, std::int64_t seed,
                    std::span<const std::uint32_t> names);

// Seeds cut into batches, in their order. A batch's are in the order of the graph.
class SeedBatches {
 public:
  SeedBatches() = default;
  SeedBatches(std::vector<std::uint32_t> seeds, std::int64_t batch_size, std::uint64_t key);

  std::int64_t count() const { return ceil_div(std::ssize(seeds_), batch_size_); }
  std::span<const std::uint32_t> of(std::int64_t batch) const;
  // Whether they are the same batches.
  bool same(const SeedBatches& other) const {
    return key_ == other.key_ && batch_size_ == other.batch_size_ && seeds_ == other.seeds_;
  }
  // What a batch's choices follow from.
  std::uint64_t key(std::int64_t batch) const;

 private:
  std::vector<std::uint32_t> seeds_;
  std::int64_t batch_size_ = 1;
  std::uint64_t key_ = 0;
};

// The batches of an epoch of training: of these vertices, in an order of its own.
SeedBatches epoch_batches(std::vector<std::uint32_t> vertices, std::int64_t batch_size,
                          std::int64_t seed, std::int64_t epoch,
                          std::span<const std::uint32_t> names);

}  // namespace ooc
