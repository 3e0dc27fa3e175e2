#include "engine/batches/seeds.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <utility>

#include "kernels/spec/random.h"

namespace ooc {
namespace {

constexpr std::int64_t kRowsAtOnce = 1 << 16;

// Calls visit(first vertex, rows), a stretch after the other.
template <class T, class Visit>
void for_each_rows(const VertexTensorFile& file, std::int64_t cols, Visit&& visit) {
  const std::int64_t vertices = file.layout().rows;
  std::vector<T> rows;
  for (std::int64_t first = 0; first < vertices; first += kRowsAtOnce) {
    const std::int64_t count = std::min(kRowsAtOnce, vertices - first);
    rows.resize(static_cast<std::size_t>(count * cols));
    file.read_rows(first, count, rows.data());
    visit(first, rows);
  }
}

}  // namespace

std::vector<std::uint32_t> vertex_names(const Dataset& dataset) {
  std::vector<std::uint32_t> names;
  if (dataset.manifest().order == "natural") return names;
  names.reserve(static_cast<std::size_t>(dataset.vertices()));
  for_each_rows<std::int64_t>(*dataset.tensor("ids"), 1,
                              [&](std::int64_t, const std::vector<std::int64_t>& ids) {
                                for (const std::int64_t id : ids) {
                                  names.push_back(static_cast<std::uint32_t>(id));
                                }
                              });
  return names;
}

std::vector<std::uint32_t> in_degrees(const Dataset& dataset) {
  std::vector<std::uint32_t> degrees;
  degrees.reserve(static_cast<std::size_t>(dataset.vertices()));
  for_each_rows<std::int32_t>(
      *dataset.tensor("degrees"), kDegreeColumns,
      [&](std::int64_t, const std::vector<std::int32_t>& rows) {
        for (std::size_t i = 0; i < rows.size(); i += kDegreeColumns) {
          degrees.push_back(static_cast<std::uint32_t>(rows[i + kInDegree] + rows[i + kSelfLoops]));
        }
      });
  return degrees;
}

std::vector<std::uint32_t> vertices_of(const Dataset& dataset, Split split,
                                       std::span<const std::uint32_t> names) {
  std::vector<std::uint32_t> vertices;
  for_each_rows<std::uint8_t>(
      *dataset.tensor("splits"), 1,
      [&](std::int64_t first, const std::vector<std::uint8_t>& splits) {
        for (std::size_t i = 0; i < splits.size(); ++i) {
          if (splits[i] != static_cast<std::uint8_t>(split)) continue;
          vertices.push_back(static_cast<std::uint32_t>(static_cast<std::size_t>(first) + i));
        }
      });
  if (!names.empty()) {
    std::sort(vertices.begin(), vertices.end(),
              [&](std::uint32_t a, std::uint32_t b) { return names[a] < names[b]; });
  }
  return vertices;
}

std::uint64_t seed_key(SeedStream stream, std::int64_t seed, std::int64_t epoch) {
  const std::uint64_t stream_key = mix64(static_cast<std::uint64_t>(stream));
  return mix64(epoch_key(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(epoch)) ^
               stream_key);
}

void shuffle_seeds(std::span<std::uint32_t> seeds, std::uint64_t key,
                   std::span<const std::uint32_t> names) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;  // names differ, so keys do
  order.reserve(seeds.size());
  for (const std::uint32_t vertex : seeds) {
    order.emplace_back(mix64(key ^ (names.empty() ? vertex : names[vertex])), vertex);
  }
  tbb::parallel_sort(order);
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = order[i].second;
}

void shuffle_judged(std::span<std::uint32_t> seeds, Split split, std::int64_t seed,
                    std::span<const std::uint32_t> names) {
  const SeedStream stream = split == Split::kValid ? SeedStream::kEvaluate : SeedStream::kTest;
  shuffle_seeds(seeds, seed_key(stream, seed, 0), names);
}

SeedBatches::SeedBatches(std::vector<std::uint32_t> seeds, std::int64_t batch_size,
                         std::uint64_t key)
    : seeds_(std::move(seeds)), batch_size_(batch_size), key_(key) {
  tbb::parallel_for(std::int64_t{0}, count(), [&](std::int64_t batch) {
    const auto begin = seeds_.begin() + batch * batch_size_;
    std::sort(begin, begin + std::ssize(of(batch)));
  });
}

std::span<const std::uint32_t> SeedBatches::of(std::int64_t batch) const {
  const std::int64_t first = batch * batch_size_;
  const std::int64_t count = std::min(batch_size_, std::ssize(seeds_) - first);
  return std::span(seeds_).subspan(static_cast<std::size_t>(first),
                                   static_cast<std::size_t>(count));
}

std::uint64_t SeedBatches::key(std::int64_t batch) const {
  return mix64(key_ ^ mix64(static_cast<std::uint64_t>(batch)));
}

SeedBatches epoch_batches(std::vector<std::uint32_t> vertices, std::int64_t batch_size,
                          std::int64_t seed, std::int64_t epoch,
                          std::span<const std::uint32_t> names) {
  shuffle_seeds(vertices, seed_key(SeedStream::kShuffle, seed, epoch), names);
  return {std::move(vertices), batch_size, seed_key(SeedStream::kTrain, seed, epoch)};
}

}  // namespace ooc
