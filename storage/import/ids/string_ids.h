// Ids that are strings: the distinct ones of an input, in memory. Their dense ids follow their
// ascending order, byte by byte. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "storage/base/types.h"
#include "storage/format/manifest.h"

namespace ooc {

// First add(), then finish(), then the rest.
class StringIds {
 public:
  // `source` is the file that lists them, for messages; empty where the edges do.
  explicit StringIds(std::int64_t memory_bytes, std::string source = {});

  // 1 to kMaxIdBytes bytes, any number of times. Where the ids don't fit the memory, they are let
  // go, and how many there are is estimated from a sample.
  void add(std::string_view id);
  void finish();
  bool finished() const { return finished_; }

  // Whether all of them fit.
  bool complete() const { return !sample_; }
  // What all of them take, more than was given where they don't fit; and how many they are.
  std::int64_t memory_bytes() const;
  std::int64_t count() const;

  std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }
  std::int64_t text_bytes() const { return text_bytes_; }  // of all ids together
  // Empty where no vertex has this id.
  std::optional<VertexId> find(std::string_view id) const;
  std::string_view operator[](VertexId id) const;
  const std::string& source() const { return source_; }
  // How often the two ids that came first were added.
  std::int64_t first_uses() const { return first_uses_; }
  std::int64_t uses_of_first() const { return uses_of_first_; }

 private:
  struct Slot {
    std::uint32_t fingerprint;
    std::uint32_t number;
  };
  struct Sample;

  static std::int64_t memory_for(double ids, double text_bytes);
  std::string_view text(std::uint32_t number) const;
  std::string_view numbered(std::uint32_t number) const;
  std::size_t slot_of(std::string_view id, std::uint64_t hash) const;
  void append(std::string_view id);
  void grow();
  void start_sample();

  std::int64_t memory_bytes_;
  std::string source_;
  // Lengths (u16) and bytes; an id lies in one block.
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_end_ = 0;         // of the last block
  std::deque<std::uint64_t> places_;  // by number in the order of appearance
  std::vector<Slot> slots_;           // open addressing, a power of two
  std::vector<std::uint32_t> order_;  // finished: the number of each dense id, which slots hold
  std::int64_t text_bytes_ = 0;
  std::int64_t first_uses_ = 0;
  std::int64_t uses_of_first_ = 0;
  bool finished_ = false;
  std::shared_ptr<Sample> sample_;
};

}  // namespace ooc
