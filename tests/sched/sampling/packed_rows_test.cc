#include "sched/sampling/packed_rows.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "storage/stores/dataset_tensor.h"
#include "tests/sched/sampling/packed_rows_world.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

// Keeps what is written, by offset.
class WritesKept final : public BlockIo {
 public:
  explicit WritesKept(BlockIo& base) : base_(base) {}
  std::map<std::uint64_t, std::vector<std::byte>> writes;

  std::string_view name() const override { return base_.name(); }
  std::unique_ptr<BlockFile> open(const std::string& path) override { return base_.open(path); }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override {
    return base_.create_temporary(directory, bytes);
  }
  void submit(BlockRequest request) override {
    if (request.kind == BlockRequest::Kind::kWrite) {
      const std::lock_guard lock(mutex_);
      writes[request.offset].assign(request.data, request.data + request.bytes);
    }
    base_.submit(std::move(request));
  }

 private:
  BlockIo& base_;
  std::mutex mutex_;
};

std::int64_t distinct_vertices(const World& world) {
  std::vector<bool> asked(kVertices);
  for (const auto& batch : world.vertices) {
    for (const std::int64_t vertex : batch) asked[static_cast<std::size_t>(vertex)] = true;
  }
  return std::count(asked.begin(), asked.end(), true);
}

TEST_CASE("batches get their rows, whatever is hot, one superbatch after the other") {
  const World first;
  const auto record = static_cast<std::int64_t>(first.record_bytes());
  const std::int64_t asked = distinct_vertices(first) * record;
  for (const std::int64_t bytes : {std::int64_t{0}, asked / 3, asked, kVertices * record}) {
    World own;
    World later(17, 9, own);  // asks for other vertices of the same rows
    HotRows& hot = own.hot(bytes);
    std::int64_t read = 0;
    for (const World* const world : {&own, &later, &own}) {
      Driver driver(2);
      PackedRows rows(own.io, own.files, world->requests(), own.inputs, hot, own.options());
      REQUIRE(rows.count(driver));
      REQUIRE(rows.counts().hot_rows * record <= bytes);
      REQUIRE((rows.counts().hot_rows > 0) == (bytes > 0));
      const PackedBytes planned = rows.planned_bytes();
      REQUIRE(rows.pack(driver));
      if (world == &own) REQUIRE(rows.has_cold() == (bytes < asked));
      REQUIRE((planned.cold_written > 0) == rows.has_cold());
      world->check_all(rows);
      const PackedBytes moved = rows.moved_bytes();
      REQUIRE(moved.inputs_read == planned.inputs_read);
      REQUIRE(moved.cold_written == planned.cold_written);
      REQUIRE(moved.cold_read == planned.cold_read);
      read = moved.inputs_read;
    }
    // Where all who are asked for fit, the third time has them from the first.
    CHECK((read == 0) == (bytes >= asked));
  }
}

TEST_CASE("hot are those whom most batches ask for, as many as fit") {
  const World world;
  std::vector<std::int64_t> askers(kVertices), histogram(world.batch_rows.size() + 1);
  for (const auto& batch : world.vertices) {
    for (const std::int64_t vertex : batch) ++askers[static_cast<std::size_t>(vertex)];
  }
  for (const std::int64_t count : askers) ++histogram[static_cast<std::size_t>(count)];
  const auto record = static_cast<std::int64_t>(world.record_bytes());
  for (const std::int64_t room : {0, 1, 20, 100, 300, 700, 1400, 5000}) {
    World own;
    HotRows& hot = own.hot(room * record + record - 1);
    Driver driver(3);
    PackedRows rows(own.io, own.files, own.requests(), own.inputs, hot, own.options());
    REQUIRE(rows.count(driver));
    // Whoever has more askers than some hot one is hot.
    std::int64_t chosen = 0, least = std::ssize(histogram), most_cold = -1;
    for (std::int64_t vertex = 0; vertex < kVertices; ++vertex) {
      const std::int64_t count = askers[static_cast<std::size_t>(vertex)];
      if (hot.is_hot(vertex)) {
        CHECK(hot.index(vertex) == chosen++);
        least = std::min(least, count);
      } else {
        most_cold = std::max(most_cold, count);
      }
    }
    CHECK(most_cold <= std::max<std::int64_t>(least, 0));
    CHECK(chosen <= std::min(room, kVertices));
    // A stretch of those at the limit may be left out, and what comes after it.
    if (most_cold > 0 && room > 0)
      CHECK(chosen + histogram[static_cast<std::size_t>(most_cold)] > room);
    if (most_cold <= 0) CHECK(chosen == std::min(room, kVertices));
    for (std::size_t batch = 0; batch < own.vertices.size(); ++batch) {
      const auto cold = std::count_if(own.vertices[batch].begin(), own.vertices[batch].end(),
                                      [&](std::int64_t vertex) { return !hot.is_hot(vertex); });
      CHECK(rows.counts().cold_rows[batch] == cold);
    }
  }
}

TEST_CASE("what nobody asks for isn't read") {
  World world(3);
  // Through the io that counts.
  std::int64_t chunks = 0, bytes = 0;
  RowInput& input = world.inputs[0];
  auto& tensor = *world.tensors[0];
  input.store = &tensor.store(world.io);
  const std::int64_t rows_of = input.store->io_chunk_blocks() * kBlockRows;
  const TensorLayout& layout = input.store->layout();
  for (std::int64_t first = 0; first < kVertices; first += rows_of) {
    const bool asked = std::any_of(
        world.vertices.begin(), world.vertices.end(), [&](const std::vector<std::int64_t>& batch) {
          return std::any_of(batch.begin(), batch.end(), [&](std::int64_t vertex) {
            return vertex >= first && vertex < first + rows_of;
          });
        });
    if (!asked) continue;
    for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
      ++chunks;
      bytes += std::min(rows_of, kVertices - first) * layout.slice_stride(slice) * 4;
    }
  }
  Driver driver(2);
  PackedRows rows(world.memory, world.files, world.requests(), {input},
                  world.hot(kPlenty, RowRecord({input}).bytes()), world.options());
  REQUIRE(rows.count(driver));
  world.io.reads = 0;
  REQUIRE(rows.pack(driver));
  CHECK(world.io.reads == chunks);
  CHECK(chunks < ceil_div(kVertices, rows_of) * layout.slice_count());
  CHECK(rows.moved_bytes().inputs_read == bytes);
}

TEST_CASE("packed rows don't depend on the workers") {
  std::map<std::uint64_t, std::vector<std::byte>> first;
  for (const std::int64_t workers : {1, 3}) {
    World world(12, 5);
    world.io.faults.write_takes = std::chrono::microseconds(workers == 3 ? 300 : 0);
    WritesKept io(world.io);
    Driver driver(workers);
    PackedRows rows(io, world.files, world.requests(), world.inputs, world.hot(50000),
                    world.options());
    REQUIRE(rows.count(driver));
    REQUIRE(rows.pack(driver));
    world.check_all(rows);
    if (workers == 1) first = io.writes;
    REQUIRE(io.writes == first);
    REQUIRE(first.size() > world.batch_rows.size());
  }
}

TEST_CASE("rows of a mapping are used where they lie") {
  World world(4);
  std::vector<std::unique_ptr<MappedTensor>> mapped;
  for (RowInput& input : world.inputs) {
    mapped.push_back(std::make_unique<MappedTensor>(*input.store));
    input.store = mapped.back().get();
  }
  Driver driver(2);
  PackedRows rows(world.io, world.files, world.requests(), world.inputs, world.hot(20000),
                  world.options());
  REQUIRE((rows.count(driver) && rows.pack(driver)));
  world.check_all(rows);
  for (const auto& tensor : mapped) CHECK(tensor->released > 0);
}

TEST_CASE("rows of a dataset are verified once") {
  World world(4);
  TinyDataset spec;
  spec.vertices = kVertices;
  spec.block_rows = kBlockRows;
  spec.feature_cols = 40;
  const Dataset dataset = write_tiny_dataset(world.files, spec);
  const VertexTensorFile& file = *dataset.tensor("features");
  for (const bool corrupt : {false, true}) {
    if (corrupt) {
      const std::uint64_t at = file.file().entry(2).offset;
      const auto to = world.files.update(file.file().path());
      to->write_at(at, std::vector<std::byte>(8, std::byte{0x5a}));
    }
    const Dataset opened = Dataset::open(world.files, "/tiny.ooc", VerifyPolicy::kFirst);
    const DatasetTensor store(world.io, *opened.tensor("features"));
    Driver driver(2);
    const RowInput input{"features", &store, DType::kF32};
    PackedRows rows(world.io, world.files, world.requests(), {input},
                    world.hot(kPlenty, RowRecord({input}).bytes()), world.options());
    REQUIRE(rows.count(driver));
    if (corrupt) {
      CHECK_THROWS_AS(rows.pack(driver), DataError);
      CHECK((driver.tasks() == 0 && driver.transfers() == 0));
    } else {
      CHECK(store.needs_decoding(0, 0));
      REQUIRE(rows.pack(driver));
      CHECK_FALSE(store.needs_decoding(0, 0));
    }
  }
}

TEST_CASE("packing stops where it is asked to, and hot rows are good for the next") {
  for (const std::int64_t at : {0, 1, 9}) {
    World world(6);
    world.inputs = {{"features", &world.tensors[0]->store(world.io), DType::kF32}};
    world.expect.resize(1);
    std::atomic<bool> stop = false;
    Driver driver(2);
    driver.stop_on(&stop);
    HotRows& hot = world.hot(90000);
    const auto make_rows = [&] {
      return std::make_unique<PackedRows>(world.io, world.files, world.requests(), world.inputs,
                                          hot, world.options());
    };
    auto rows = make_rows();
    stop = at == 0;
    const bool counted = rows->count(driver);
    CHECK(counted == (at > 0));
    if (counted) {
      world.io.reads = 0;
      world.io.stop = &stop;
      world.io.stop_at_read = at;
      CHECK_FALSE(rows->pack(driver));
      CHECK((driver.tasks() == 0 && driver.transfers() == 0));
      world.io.stop = nullptr;
    }
    stop = false;
    rows = make_rows();
    REQUIRE((rows->count(driver) && rows->pack(driver)));
    world.check_all(*rows);
  }
}

TEST_CASE("errors of storage pass through, and nothing is under way after them") {
  const auto fails = [](const std::function<void(World&)>& prepare, bool packs) {
    World world(6);
    world.inputs = {{"features", &world.tensors[0]->store(world.io), DType::kF32}};
    world.expect.resize(1);
    Driver driver(3);
    PackedRows rows(world.io, world.files, world.requests(), world.inputs, world.hot(9000),
                    world.options());
    REQUIRE(rows.count(driver));
    world.io.reads = world.io.writes = 0;
    if (!packs) {
      prepare(world);
      CHECK_THROWS_AS(rows.pack(driver), IoError);
      CHECK((driver.tasks() == 0 && driver.transfers() == 0));
      return;
    }
    REQUIRE(rows.pack(driver));
    world.io.reads = 0;
    prepare(world);
    ComingRows coming;
    rows.read(1, coming);
    CHECK_THROWS_AS(world.check(rows, coming, 1), IoError);
    world.io.faults = {};
    rows.read(1, coming);
    world.check(rows, coming, 1);
  };
  fails([](World& world) { world.io.faults.first_failing_read = 1; }, false);
  fails([](World& world) { world.io.faults.first_failing_read = 7; }, false);
  fails([](World& world) { world.io.faults.first_failing_write = 1; }, false);
  fails([](World& world) { world.io.faults.first_failing_write = 5; }, false);
  fails([](World& world) { world.io.faults.first_failing_read = 1; }, true);
}

}  // namespace
}  // namespace ooc::test
