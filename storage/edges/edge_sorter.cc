#include "storage/edges/edge_sorter.h"

namespace ooc {

EdgeSorter::EdgeSorter(FileSystem& files, const std::string& scratch, const EdgeKeys& keys,
                       const EdgeData& data)
    : keys_(keys),
      in_(files, scratch + ".in", data.bytes()),
      out_(files, scratch + ".out", data.bytes()) {}

void EdgeSorter::sort(std::uint64_t number, std::span<const Edge> edges,
                      std::span<const std::byte> data, Block& block) const {
  block.number = number;
  for (Records* const records : {&block.in, &block.out}) {
    records->keys.resize(edges.size());
    records->data.assign(data.begin(), data.end());
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto [source, destination] = edges[i];
    block.in.keys[i] = keys_.key_of({source, destination});
    block.out.keys[i] = keys_.key_of({destination, source});
  }
  sort_records(block.in, in_.data_bytes());
  sort_records(block.out, out_.data_bytes());
}

void EdgeSorter::write(const Block& block) {
  in_.write(block.number, block.in);
  out_.write(block.number, block.out);
}

void EdgeSorter::add(std::uint64_t number, std::span<const Edge> edges,
                     std::span<const std::byte> data) {
  Block block;
  sort(number, edges, data, block);
  write(block);
}

void EdgeSorter::finish() {
  in_.finish();
  out_.finish();
}

std::int64_t sort_memory(std::size_t data_bytes) {
  constexpr std::int64_t kPlaceBytes = 16;
  return data_bytes == 0 ? 0 : kPlaceBytes + static_cast<std::int64_t>(data_bytes);
}

}  // namespace ooc
