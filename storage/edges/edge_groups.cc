#include "storage/edges/edge_groups.h"

namespace ooc {
namespace {

float float_at(const std::byte* at) {
  float value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

void put_float(float value, std::byte* at) { std::memcpy(at, &value, sizeof(value)); }

// Calls visit(offset) for the weight and every feature of a record.
template <class Visit>
void for_each_float(const EdgeData& data, Visit&& visit) {
  if (data.weights) visit(std::size_t{0});
  for (std::size_t i = 0; i < static_cast<std::size_t>(data.feature_cols); ++i) {
    visit(data.feature_offset() + i * sizeof(float));
  }
}

}  // namespace

void EdgeGroups::transform_given(EdgeGroup& group) {
  const bool loop = group.edge.source == group.edge.destination;
  EdgeCopies& in = group.stored_in;
  EdgeCopies& out = group.stored_out;
  if (transforms_.coalesce != Coalesce::kKeep) {
    in = coalesce(in, merged_in_);
    out = coalesce(out, merged_out_);
  }
  if (loop && transforms_.self_loops == SelfLoops::kDrop) in = out = {};
  if (!loop && transforms_.undirected) {
    if (in.count == 0) in = {1, out.data};
    if (out.count == 0) out = {1, in.data};
  }
  if (loop && in.count == 0 && transforms_.self_loops == SelfLoops::kAddRemaining) {
    loop_.assign(bytes_, std::byte{0});
    for_each_float(data_, [&](std::size_t offset) { put_float(1.0f, loop_.data() + offset); });
    in = out = {1, loop_.data()};
  }
  group.symmetric =
      in.count == out.count &&
      (bytes_ == 0 || in.count == 0 || std::memcmp(in.data, out.data, in.count * bytes_) == 0);
}

// One record for each type, in the order in which the types come.
EdgeCopies EdgeGroups::coalesce(const EdgeCopies& copies, std::vector<std::byte>& merged) const {
  if (copies.count <= 1) return copies;
  if (bytes_ == 0) return {1, nullptr};
  merged.clear();
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < copies.count; ++i) {
    const std::byte* const record = copies.data + i * bytes_;
    std::size_t place = 0;
    const auto same_type = [&] {
      return !data_.types || std::memcmp(merged.data() + place * bytes_ + data_.type_offset(),
                                         record + data_.type_offset(), sizeof(std::uint16_t)) == 0;
    };
    while (place < counts.size() && !same_type()) ++place;
    if (place == counts.size()) {
      counts.push_back(1);
      merged.insert(merged.end(), record, record + bytes_);
    } else {
      ++counts[place];
      merge(record, merged.data() + place * bytes_);
    }
  }
  if (transforms_.coalesce == Coalesce::kMean) {
    for (std::size_t place = 0; place < counts.size(); ++place) {
      divide(merged.data() + place * bytes_, counts[place]);
    }
  }
  return {counts.size(), merged.data()};
}

void EdgeGroups::merge(const std::byte* from, std::byte* into) const {
  if (transforms_.coalesce == Coalesce::kFirst) return;
  for_each_float(data_, [&](std::size_t offset) {
    const float a = float_at(into + offset), b = float_at(from + offset);
    put_float(transforms_.coalesce == Coalesce::kMax ? std::max(a, b) : a + b, into + offset);
  });
}

void EdgeGroups::divide(std::byte* record, std::size_t count) const {
  for_each_float(data_, [&](std::size_t offset) {
    put_float(float_at(record + offset) / static_cast<float>(count), record + offset);
  });
}

}  // namespace ooc
