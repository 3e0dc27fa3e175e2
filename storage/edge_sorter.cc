#include "storage/edge_sorter.h"

#include <algorithm>

namespace ooc {

EdgeSorter::EdgeSorter(FileSystem& files, const std::string& scratch, const EdgeKeys& keys,
                       const EdgeData& data)
    : keys_(keys),
      in_(files, scratch + ".in", data.bytes()),
      out_(files, scratch + ".out", data.bytes()) {}

void EdgeSorter::add(std::uint64_t number, std::span<const Edge> edges,
                     std::span<const std::byte> data) {
  Records records;
  records.keys.resize(edges.size());
  records.data.assign(data.begin(), data.end());
  std::transform(edges.begin(), edges.end(), records.keys.begin(),
                 [&](const Edge& edge) { return keys_.key_of(edge); });
  in_.add(number, records);
  records.data.assign(data.begin(), data.end());
  std::transform(edges.begin(), edges.end(), records.keys.begin(), [&](const Edge& edge) {
    return keys_.key_of({edge.destination, edge.source});
  });
  out_.add(number, records);
}

void EdgeSorter::finish() {
  in_.finish();
  out_.finish();
}

std::int64_t sort_memory(std::size_t data_bytes) {
  constexpr std::int64_t kKeyBytes = 8, kPlaceBytes = 16;
  const auto data = static_cast<std::int64_t>(data_bytes);
  return data == 0 ? kKeyBytes : kKeyBytes + kPlaceBytes + 2 * data;  // data before and after
}

}  // namespace ooc
