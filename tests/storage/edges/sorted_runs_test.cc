#include "storage/edges/sorted_runs.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "storage/base/errors.h"
#include "storage/format/edge_key.h"
#include "tests/support/fake_file_system.h"

using namespace ooc;

namespace {

struct Record {
  std::uint64_t key;
  std::uint64_t value;
  bool operator==(const Record&) const = default;
};

Records records_of(std::span<const Record> records, bool with_data) {
  Records out;
  for (const Record& record : records) {
    out.keys.push_back(record.key);
    if (!with_data) continue;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&record.value);
    out.data.insert(out.data.end(), bytes, bytes + sizeof(record.value));
  }
  return out;
}

std::vector<Record> list(const Records& records) {
  std::vector<Record> out;
  for (std::size_t i = 0; i < records.size(); ++i) {
    out.push_back({records.keys[i], 0});
    if (!records.data.empty()) {
      std::memcpy(&out.back().value, records.data.data() + i * sizeof(std::uint64_t),
                  sizeof(std::uint64_t));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("sorted_runs: any range holds what a stable sort puts there, however the runs were cut") {
  std::mt19937_64 random(1);
  for (const bool with_data : {false, true}) {
    for (const std::size_t run_size : {1u, 100u, 5000u, 20000u}) {
      const std::size_t count = run_size == 1 ? 50 : 20000;
      std::vector<Record> all(count);
      for (std::size_t i = 0; i < count; ++i) {
        all[i] = {random() % (count / 3), with_data ? i : 0};  // keys come again and again
      }
      test::MemoryFileSystem files;
      // Some runs stay in memory, or all, or none.
      const std::size_t memory = run_size == 100 ? 100000 : run_size == 5000 ? 1 << 24 : 0;
      SortedRuns runs(files, "/runs", with_data ? sizeof(std::uint64_t) : 0, memory);
      tbb::parallel_for(std::size_t{0}, (count + run_size - 1) / run_size, [&](std::size_t run) {
        const std::size_t begin = run * run_size;
        Records records =
            records_of(std::span(all).subspan(begin, std::min(run_size, count - begin)), with_data);
        sort_records(records, runs.data_bytes());
        runs.write(run, std::move(records));
      });
      runs.finish();
      CHECK(runs.size() == count);
      CHECK(files.exists("/runs") == (run_size != 5000));
      CHECK((runs.file_bytes() > 0) == (run_size != 5000));
      std::vector<Record> expected = all;
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Record& a, const Record& b) { return a.key < b.key; });
      for (int trial = 0; trial < 20; ++trial) {
        std::uint64_t first = random() % count, last = random() % count;
        if (trial == 0) first = 0, last = ~std::uint64_t{0};
        if (first > last) std::swap(first, last);
        std::vector<Record> wanted;
        for (const Record& record : expected) {
          if (record.key >= first && record.key <= last) wanted.push_back(record);
        }
        Records found;
        const std::uint64_t read_before = runs.read_bytes();
        runs.read(first, last, found);
        REQUIRE(list(found) == wanted);
        CHECK(runs.size_bound(first, last) >= wanted.size());
        CHECK(runs.read_bound(first, last) >= runs.read_bytes() - read_before);
      }
    }
  }
}

TEST_CASE("sorted_runs: the file is gone with its owner, and a failing write is reported") {
  test::MemoryFileSystem memory;
  test::FaultyFileSystem files(memory);
  {
    SortedRuns runs(files, "/runs", 0);
    Records records = records_of(std::vector<Record>{{3, 0}, {1, 0}}, false);
    sort_records(records, 0);
    runs.write(0, records);
    files.faults.first_failing_write = files.counts.writes + 1;
    CHECK_THROWS_AS(runs.write(1, records), IoError);
  }
  CHECK_FALSE(memory.exists("/runs"));
}

TEST_CASE("edge_key: keys order edges by span, destination, source, and give the edge back") {
  std::mt19937_64 random(2);
  for (const std::int64_t vertices :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{50}, std::int64_t{70000}, kMaxVertices}) {
    for (const std::int64_t span_rows : {1, 16, 65536}) {
      const EdgeKeys keys(vertices, span_rows);
      const auto draw = [&] {
        const auto any = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(vertices));
        return random() % 4 == 0 ? vertices - 1 : any;
      };
      for (int i = 0; i < 500; ++i) {
        const Edge a{draw(), draw()}, b{draw(), draw()};
        REQUIRE(keys.edge_of(keys.key_of(a)) == a);
        const auto order = [&](const Edge& e) {
          return std::tuple(e.source / span_rows, e.destination, e.source);
        };
        REQUIRE((keys.key_of(a) < keys.key_of(b)) == (order(a) < order(b)));
        REQUIRE(keys.destination_of(keys.key_of(a)) == a.destination);
        CHECK(keys.first_key(a.source / span_rows, a.destination) <= keys.key_of(a));
        CHECK(keys.last_key(a.source / span_rows, a.destination) >= keys.key_of(a));
      }
    }
  }
}
