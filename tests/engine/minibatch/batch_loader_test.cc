// Whatever memory a loader has, and however many workers: a batch's loss and gradients are the same
// to the last bit.
#include "engine/batches/batch_loader.h"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <catch2/catch.hpp>

#include "engine/batches/batch_programs.h"
#include "engine/minibatch/batch_counts.h"
#include "engine/train/training_plan.h"
#include "storage/base/errors.h"
#include "tests/engine/minibatch/batch_world.h"

namespace ooc {
namespace {

using test::BatchWorld;
using test::TinyDataset;

using Bits = std::vector<std::byte>;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kMuch = 1 << 30;  // as a limit
constexpr BatchMemory kAmple{kMuch, 8 * kMiB, kMiB, kMiB, kMiB};
constexpr std::int64_t kSomeRows = 20'000;  // of 160 bytes and more

struct Memory {
  const char* name;
  BatchMemory memory;
};
const Memory kMemories[] = {
    {"no row hot", {0, 8 * kMiB, kMiB, kMiB, kMiB}},
    {"some rows hot", {kSomeRows, 8 * kMiB, kMiB, kMiB, kMiB}},
    {"lists in files", {kMuch, 0, kMiB, kMiB, kMiB}},
    {"lists in files in part", {kMuch, 100'000, kMiB, kMiB, kMiB}},
    {"small ranges", {kMuch, 8 * kMiB, 0, 0, kMiB}},
    {"nothing", {0, 0, 0, 0, 0}},
};

// A run of a training program over all batches of an epoch, with fresh parameters.
class Loading {
 public:
  Loading(BatchWorld& world, const RunConfig& config, const BatchMemory& memory,
          std::int64_t workers, const BatchLimits& limits = {}, bool are_alike = true,
          std::function<void(double)> on_wait = {})
      : world_(world),
        config_(config),
        programs_(config, facts_of(world_.dataset), DType::kF32),
        inputs_(world_.io, world_.dataset),
        executor_(*world_.backend, programs_.training.program()),
        parameters_(*world_.backend, DType::kF32, programs_.training.model().parameters) {
    REQUIRE(programs_.precompute.empty());
    parameters_.initialise(5);
    for (const ModelParameter& parameter : programs_.training.model().parameters) {
      const ValueId value = programs_.training.value(parameter.tensor);
      if (value >= 0) executor_.bind_parameter(value, parameters_.data(parameter.name));
    }
    BatchLoaderOptions options;
    options.hops = training_hops(config.sampling);
    options.batch_size = config.sampling.batch_size;
    options.scratch = "/";
    options.workers = workers;
    options.memory = memory;
    options.limits = limits;
    options.are_alike = are_alike;
    options.on_wait = std::move(on_wait);
    describe_inputs(programs_.training, options);
    loader_.emplace(world_.io, world_.files, world_.dataset, inputs_, std::move(options));
  }

  BatchLoader& loader() { return *loader_; }

  SeedBatches seeds(std::uint64_t key) const {
    const std::vector<std::uint32_t> names = vertex_names(world_.dataset);
    std::vector<std::uint32_t> seeds = vertices_of(world_.dataset, Split::kTrain, names);
    shuffle_seeds(seeds, key, names);
    return {std::move(seeds), config_.sampling.batch_size, key};
  }
  void begin(std::uint64_t key) { loader_->begin(seeds(key)); }

  // Of the current batch.
  Bits bits() {
    const LoadedBatch& batch = loader_->batch();
    const auto step = static_cast<std::uint64_t>(loader_->index() + 1);
    executor_.run(batch.graph(), batch.inputs(), {1, step},
                  count_labels(config_, batch, parameters_));
    Bits bits;
    test::add_bits(bits, batch.level_rows().data(),
                   batch.level_rows().size() * sizeof batch.level_rows()[0]);
    test::add_bits(bits, executor_, programs_.training);
    return bits;
  }

  std::vector<Bits> epoch(std::uint64_t key) {
    std::vector<Bits> batches;
    begin(key);
    while (loader_->next(nullptr)) batches.push_back(bits());
    return batches;
  }

 private:
  BatchWorld& world_;
  RunConfig config_;
  BatchPrograms programs_;
  GraphInputs inputs_;
  BatchExecutor executor_;
  ParameterStore parameters_;
  std::optional<BatchLoader> loader_;
};

std::vector<Bits> batches_of(BatchWorld& world, const RunConfig& config, const BatchMemory& memory,
                             int workers) {
  const tbb::global_control as_many(tbb::global_control::max_allowed_parallelism, 4);
  tbb::task_arena arena(workers);
  return arena.execute([&] { return Loading(world, config, memory, workers).epoch(9); });
}

TEST_CASE("batch_loader: batches are the same in any memory, by any number of workers") {
  for (const bool permute : {false, true}) {
    TinyDataset spec = test::batch_graph(false, 900);
    spec.permute = permute;
    spec.edge_feature_cols = permute ? 3 : 0;
    RunConfig config = test::batch_config(permute ? "gat" : "gcn", {4, 3}, 60);
    config.sampling.replace = permute;
    BatchWorld world(spec);
    const std::vector<Bits> expected = batches_of(world, config, kAmple, 1);
    REQUIRE(expected.size() == 6);
    for (std::size_t i = 1; i < expected.size(); ++i) CHECK(expected[i] != expected[0]);
    int workers = 3;
    for (const Memory& at : kMemories) {
      INFO(config.model.model << ", " << at.name << ", by " << workers);
      const bool equal = batches_of(world, config, at.memory, workers) == expected;
      CHECK(equal);
      workers = 4 - workers;
    }
  }
}

TEST_CASE("batch_loader: less memory moves more bytes, and takes them where they are said") {
  BatchWorld world(test::batch_graph(false, 1200));
  const RunConfig config = test::batch_config("gcn", {4, 3}, 60);
  const auto bytes_of = [&](const BatchMemory& memory) {
    Loading loading(world, config, memory, 2);
    loading.epoch(3);
    const LoadedBytes bytes = loading.loader().take_bytes();
    const LoadedBytes after = loading.loader().take_bytes();
    CHECK(after.read == 0);
    CHECK(after.written == 0);
    return bytes;
  };
  const LoadedBytes ample = bytes_of(kAmple);
  CHECK(ample.read > 0);
  CHECK(ample.written == 0);
  const LoadedBytes in_file = bytes_of(kMemories[0].memory);
  const LoadedBytes some_in_file = bytes_of(kMemories[1].memory);
  CHECK(some_in_file.written > 0);
  CHECK(in_file.written > some_in_file.written);
  CHECK(in_file.read - ample.read >= in_file.written);
  CHECK(bytes_of(kMemories[2].memory).written > 0);
}

TEST_CASE("batch_loader: a batch for which no memory was planned is refused, and nothing else") {
  BatchWorld world(test::batch_graph(false, 900));
  const RunConfig config = test::batch_config("gcn", {4, 3}, 60);
  std::vector<std::int64_t> most(3);
  Loading any(world, config, kAmple, 2);
  any.begin(7);
  while (any.loader().next(nullptr)) {
    const auto rows = any.loader().batch().level_rows();
    for (std::size_t i = 0; i < rows.size(); ++i) most[i] = std::max(most[i], rows[i]);
  }
  CHECK(Loading(world, config, kAmple, 2, {most, kMuch}).epoch(7).size() == 6);
  for (const std::size_t level : {1, 2}) {
    BatchLimits limits{most, 3 * kMiB};
    --limits.level_rows[level];
    Loading loading(world, config, kAmple, 2, limits);
    loading.begin(7);
    try {
      loading.loader().next(nullptr);
      FAIL("there is memory");
    } catch (const BudgetError& error) {
      const std::string what = error.what();
      INFO(what);
      CHECK(what.find(fmt::format(
                "in {} hops, far more than their degrees let expect: there is memory for {}", level,
                most[level] - 1)) != std::string::npos);
      CHECK(what.find("give 3 MiB, in which any batch has room") != std::string::npos);
    }
  }
}

TEST_CASE("batch_loader: who waits for batches is told how far they are") {
  BatchWorld world(test::batch_graph(false, 1200));
  world.io.faults.write_takes = std::chrono::milliseconds(10);
  const RunConfig config = test::batch_config("gcn", {4, 3}, 60);
  std::vector<double> shares;
  Loading loading(world, config, kMemories[0].memory, 2, {}, true,
                  [&](double share) { shares.push_back(share); });
  loading.begin(1);
  REQUIRE(loading.loader().next(nullptr));
  CHECK(shares.front() == 0);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares.back() >= 0.5);
  CHECK(shares.back() <= 1);
}

TEST_CASE("batch_loader: hot rows are chosen by as many batches as go together, and stay") {
  BatchWorld world(test::batch_graph(false, 900));
  const RunConfig config = test::batch_config("gcn", {4, 3}, 60);
  const auto hot_rows = [](BatchLoader& loader) {
    while (loader.next(nullptr)) {
    }
    const std::vector<SuperbatchFigures> figures = loader.take_superbatches();
    REQUIRE(figures.size() == 1);
    CHECK(figures[0].moved.read <= figures[0].planned().read);
    return std::pair{figures[0].hot_rows, figures[0].input_bytes};
  };
  Loading loading(world, config, kAmple, 2);
  BatchLoader& loader = loading.loader();
  loader.begin(loading.seeds(1), 4);  // the last two
  CHECK(hot_rows(loader).first == 0);
  loading.begin(2);
  const auto [hot, read] = hot_rows(loader);
  CHECK(hot > 0);
  CHECK(read > 0);
  loader.begin(loading.seeds(3), 4);
  CHECK(hot_rows(loader).first > 0);
  loading.begin(4);
  CHECK(hot_rows(loader).second == 0);

  Loading unlike(world, config, kAmple, 2, {}, false);
  for (const std::uint64_t key : {1, 2}) {
    unlike.begin(key);
    const auto [own, chosen_anew] = hot_rows(unlike.loader());
    CHECK(own > 0);
    CHECK(chosen_anew > 0);
  }
}

TEST_CASE("batch_loader: one that is begun anew has nothing of what was begun before") {
  for (const Memory& at : kMemories) {
    INFO(at.name);
    BatchWorld world(test::batch_graph(false));
    const RunConfig config = test::batch_config("sage");
    Loading whole(world, config, at.memory, 2);
    const std::vector<Bits> first = whole.epoch(1), second = whole.epoch(2);
    REQUIRE(first.size() == 9);
    CHECK(first != second);
    Loading broken(world, config, at.memory, 2);
    for (const std::size_t batches : {0, 1, 4, 9}) {
      broken.begin(1);
      for (std::size_t i = 0; i < batches; ++i) {
        REQUIRE(broken.loader().next(nullptr));
        if (i % 2 == 0) CHECK(broken.bits() == first[i]);
      }
      std::atomic<bool> stop{true};
      REQUIRE_FALSE(broken.loader().next(&stop));
    }
    CHECK(broken.epoch(2) == second);
    CHECK(broken.epoch(1) == first);
  }
}

TEST_CASE("batch_loader: what was announced is taken where it is begun, and dropped where not") {
  BatchWorld world(test::batch_graph(false));
  const RunConfig config = test::batch_config("gat");
  for (const Memory& at : {kMemories[0], kMemories[5]}) {
    INFO(at.name);
    Loading plain(world, config, at.memory, 2), loading(world, config, at.memory, 2);
    const std::vector<Bits> first = plain.epoch(1), second = plain.epoch(2);
    loading.loader().announce(loading.seeds(1));
    CHECK(loading.epoch(1) == first);
    loading.loader().announce(loading.seeds(1));
    CHECK(loading.epoch(2) == second);
    loading.begin(1);
    loading.loader().announce(loading.seeds(2));
    REQUIRE(loading.loader().next(nullptr));
    CHECK(loading.bits() == first[0]);
    REQUIRE(loading.loader().next(nullptr));
    loading.begin(1);
    loading.loader().announce(loading.seeds(2));
    for (const Bits& bits : first) {
      REQUIRE(loading.loader().next(nullptr));
      CHECK(loading.bits() == bits);
    }
    std::atomic<bool> stop{true};
    CHECK_FALSE(loading.loader().next(nullptr));
    loading.begin(2);
    CHECK_FALSE(loading.loader().next(&stop));
    CHECK(loading.epoch(2) == second);
    loading.loader().announce(loading.seeds(1));  // given up in the end
  }
}

TEST_CASE("batch_loader: stopped at any read, and begun anew, it gives the same batches") {
  for (const std::size_t at : {1, 5}) {
    BatchWorld world(test::batch_graph(false));
    const RunConfig config = test::batch_config("sage");
    Loading loading(world, config, kMemories[at].memory, 2);
    world.io.reads = 0;
    const std::vector<Bits> expected = loading.epoch(4);
    const std::int64_t reads = world.io.reads;
    REQUIRE(reads > 20);
    for (std::int64_t read = 1; read <= reads; read += 1 + reads / 10) {
      INFO(kMemories[at].name << ", stopped at read " << read << " of " << reads);
      std::atomic<bool> stop{false};
      world.io.reads = 0;
      world.io.stop = &stop;
      world.io.stop_at_read = read;
      loading.begin(4);
      std::size_t batches = 0;
      while (loading.loader().next(&stop)) ++batches;
      REQUIRE(stop);
      REQUIRE(batches < expected.size());
      world.io.stop = nullptr;
      REQUIRE(loading.epoch(4) == expected);
    }
  }
}

TEST_CASE("batch_loader: errors of storage come through, and the next epoch is as it were") {
  for (const std::size_t at : {1, 5}) {
    BatchWorld world(test::batch_graph(false));
    const RunConfig config = test::batch_config("sage");
    Loading loading(world, config, kMemories[at].memory, 2);
    world.io.reads = world.io.writes = 0;
    const std::vector<Bits> expected = loading.epoch(4);
    const std::int64_t reads = world.io.reads, writes = world.io.writes;
    REQUIRE(writes > 0);
    for (std::int64_t fault = 1; fault <= reads + writes; fault += 1 + (reads + writes) / 8) {
      INFO(kMemories[at].name << ", fault " << fault << ", reads " << reads);
      world.io.reads = world.io.writes = 0;
      world.io.faults.first_failing_read = fault <= reads ? fault : 0;
      world.io.faults.first_failing_write = fault <= reads ? 0 : fault - reads;
      REQUIRE_THROWS_AS(loading.epoch(4), IoError);
      world.io.faults = {};
      REQUIRE(loading.epoch(4) == expected);
    }
  }
}

TEST_CASE("batch_loader: hops beyond what the graph has are empty") {
  TinyDataset spec = test::batch_graph(false);
  spec.edges = {{1, 0}, {2, 1}, {0, 2}, {5, 5}};  // most vertices have no in-edge
  RunConfig config = test::batch_config("gcn", {3, 2, 5, -1, 1}, 200);
  config.model.layers = 5;
  BatchWorld few(spec);
  const std::vector<Bits> one = batches_of(few, config, kAmple, 1);
  REQUIRE(one.size() == 1);
  CHECK(batches_of(few, config, {}, 3) == one);
  spec.edges = {};
  BatchWorld none(spec);
  CHECK(batches_of(none, config, kAmple, 2).size() == 1);
}

}  // namespace
}  // namespace ooc
