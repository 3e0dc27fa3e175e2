// Batches that are sampled into a file: what programs compute on them is what they compute on
// batches that a loader samples, whatever memory and workers there were.
#include "engine/batches/sample_batches.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "engine/batches/batch_memory.h"
#include "engine/batches/batch_programs.h"
#include "engine/batches/stored_batch.h"
#include "engine/batches/stored_batch_reader.h"
#include "engine/minibatch/batch_counts.h"
#include "storage/base/errors.h"
#include "storage/batches/batches_verify.h"
#include "tests/engine/minibatch/batch_world.h"
#include "tests/support/edit_dataset.h"

namespace ooc {
namespace {

using Catch::Matchers::Contains;
using test::BatchWorld;
using test::TinyDataset;

using Bits = std::vector<std::byte>;

constexpr const char* kPath = "/x.batches";
const std::vector<Split> kAllSplits{Split::kTrain, Split::kValid, Split::kTest};

SampleOptions sample_options(const RunConfig& config) {
  SampleOptions options;
  options.output = kPath;
  options.sampling = config.sampling;
  options.splits = kAllSplits;
  options.seed = config.seed;
  return options;
}

BatchesManifest sample(BatchWorld& world, const SampleOptions& options,
                       const Control& control = {}) {
  return sample_batches(world.io, world.files, world.dataset, options, control);
}

BatchFile open(BatchWorld& world) {
  return BatchFile::open(world.files, kPath, VerifyPolicy::kFirst);
}

// A training program with fresh parameters, and how its batches are loaded.
class Training {
 public:
  Training(BatchWorld& world, const RunConfig& config, DType real)
      : world_(world),
        config_(config),
        programs_(config, facts_of(world.dataset), real),
        executor_(*world.backend, programs_.training.program()),
        parameters_(*world.backend, real, programs_.training.model().parameters) {
    REQUIRE(programs_.precompute.empty());
    parameters_.initialise(5);
    for (const ModelParameter& parameter : programs_.training.model().parameters) {
      const ValueId value = programs_.training.value(parameter.tensor);
      if (value >= 0) executor_.bind_parameter(value, parameters_.data(parameter.name));
    }
    options_.hops = training_hops(config.sampling);
    options_.batch_size = config.sampling.batch_size;
    options_.batch_dependency = config.sampling.batch_dependency;
    options_.scratch = "/";
    options_.memory = unlimited_memory();
    describe_inputs(programs_.training, options_);
  }

  // Of each batch that a loader samples for an epoch: loss and gradients.
  std::vector<Bits> sampled(std::int64_t epoch) {
    const GraphInputs inputs(world_.io, world_.dataset);
    BatchLoader loader(world_.io, world_.files, world_.dataset, inputs, options_);
    const std::vector<std::uint32_t> names = vertex_names(world_.dataset);
    loader.begin(epoch_batches(vertices_of(world_.dataset, Split::kTrain, names),
                               options_.batch_size, config_.seed, epoch, names));
    std::vector<Bits> bits;
    while (loader.next(nullptr)) bits.push_back(bits_of(loader.batch()));
    return bits;
  }

  // Of stored batches, in this order.
  std::vector<Bits> stored(const BatchFile& file, BlockIo& io,
                           const std::vector<std::int64_t>& order) {
    StoredBatchReader reader(io, file);
    StoredBatch stored(options_, file.layout());
    LoadedBatch loaded(options_, file.layout().data());
    reader.begin(order);
    std::vector<Bits> bits;
    while (reader.next()) {
      loaded.set(stored.open(reader.batch()));
      bits.push_back(bits_of(loaded));
    }
    return bits;
  }

 private:
  Bits bits_of(const LoadedBatch& batch) {
    executor_.run(batch.graph(), batch.inputs(), {1, 1}, count_labels(config_, batch, parameters_));
    Bits bits;
    test::add_bits(bits, executor_, programs_.training);
    return bits;
  }

  BatchWorld& world_;
  RunConfig config_;
  BatchPrograms programs_;
  BatchExecutor executor_;
  ParameterStore parameters_;
  BatchLoaderOptions options_;
};

std::vector<std::int64_t> first_numbers(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

TEST_CASE("sample_batches: stored batches are those that a training samples, to the last bit") {
  struct Case {
    const char* model;
    bool carries, permutes, replace;
    Sampler sampler;
    DType real;
  };
  for (const Case& with : {Case{"gcn", false, false, false, Sampler::kNeighbor, DType::kF32},
                           Case{"sage", true, true, true, Sampler::kNeighbor, DType::kF32},
                           Case{"gat", true, true, false, Sampler::kLabor, DType::kF32},
                           Case{"ggcn", false, true, false, Sampler::kNeighbor, DType::kF64}}) {
    INFO(with.model);
    TinyDataset spec = test::batch_graph(with.carries);
    spec.permute = with.permutes;
    BatchWorld world(spec);
    RunConfig config = test::batch_config(with.model);
    config.seed = 3;
    config.model.edge_weights = EdgeWeights::kIgnore;
    config.sampling.replace = with.replace;
    config.sampling.sampler = with.sampler;
    if (with.sampler == Sampler::kLabor) config.sampling.batch_dependency = 2;
    SampleOptions options = sample_options(config);
    options.epochs = 2;
    const BatchesManifest manifest = sample(world, options);
    REQUIRE(manifest.sections.size() == 4);
    const BatchFile file = open(world);
    Training training(world, config, with.real);
    for (std::int64_t epoch = 1; epoch <= 2; ++epoch) {
      const std::vector<Bits> expected = training.sampled(epoch);
      REQUIRE(expected.size() == 9);
      CHECK(expected[0] != expected[1]);
      const bool equal =
          training.stored(file, world.io, first_numbers(9 * (epoch - 1), 9)) == expected;
      CHECK(equal);
    }
    CHECK(verify_batches(world.files, kPath).faults.empty());
  }
}

TEST_CASE("sample_batches: 16-bit features stay so in the file") {
  for (const DType real : {DType::kF32, DType::kF64}) {
    BatchWorld world(test::batch_graph(false));
    test::narrow_features<Half>(world.files, world.dataset.path(), false);
    world.dataset = Dataset::open(world.files, world.dataset.path(), VerifyPolicy::kFirst);
    const RunConfig config = test::batch_config("sage");
    sample(world, sample_options(config));
    const BatchFile file = open(world);
    CHECK(file.layout().tensors().front() == BatchTensor{"features", DType::kF16, 40, false});
    Training training(world, config, real);
    const bool equal = training.stored(file, world.io, first_numbers(0, 9)) == training.sampled(1);
    CHECK(equal);
  }
}

TEST_CASE("sample_batches: bytes depend on neither memory nor workers") {
  for (const bool permutes : {false, true}) {
    TinyDataset spec = test::batch_graph(true, 400);
    spec.permute = permutes;
    BatchWorld world(spec);
    SampleOptions options = sample_options(test::batch_config("gcn", {4, 3}, 30));
    const BatchesManifest first = sample(world, options);
    const auto bytes = read_file(world.files, join_path(kPath, kBatchesFile));
    options.force = true;
    options.memory_bytes = 1;
    std::int64_t least = 0;
    try {
      sample(world, options);
    } catch (const BudgetError& error) {
      CHECK_THAT(error.what(), Contains("a memory budget of 0 MiB is too small") &&
                                   Contains("--memory; give more"));
      least = error.least_bytes;
    }
    REQUIRE(least > 0);
    for (const int workers : {1, 3}) {
      const tbb::global_control as_many(tbb::global_control::max_allowed_parallelism, 4);
      tbb::task_arena arena(workers);
      const BatchesManifest again = arena.execute([&] {
        options.memory_bytes = 2 * least;
        return sample(world, options);
      });
      CHECK(again.checksum == first.checksum);
      CHECK(read_file(world.files, join_path(kPath, kBatchesFile)) == bytes);
    }
  }
}

TEST_CASE("sample_batches: seeds are those that are asked for, each once, with what is known") {
  TinyDataset spec = test::batch_graph(false);
  spec.permute = true;
  BatchWorld world(spec);
  SampleOptions options = sample_options(test::batch_config("gcn"));
  options.splits = {Split::kTest, Split::kTrain, Split::kNone};
  for (const bool some : {false, true}) {
    if (some) {
      options.only.emplace();
      for (std::uint32_t vertex = 0; vertex < 150; vertex += 4) options.only->push_back(vertex);
      options.force = true;
    }
    const BatchesManifest manifest = sample(world, options);
    const BatchFile file = open(world);
    REQUIRE(manifest.sections.size() == 3);
    std::int64_t batch = 0;
    for (std::size_t section = 0; section < 3; ++section) {
      const Split split = options.splits[section];
      CHECK(manifest.sections[section].split == split);
      std::set<std::int64_t> expected, found;
      for (std::int64_t row = 0; row < 150; ++row) {
        std::uint8_t of = 0;
        std::int64_t id = 0;
        world.dataset.tensor("splits")->read_rows(row, 1, &of);
        world.dataset.tensor("ids")->read_rows(row, 1, &id);
        if (of == static_cast<std::uint8_t>(split) && (!some || row % 4 == 0)) expected.insert(id);
      }
      for (std::int64_t i = 0; i < manifest.sections[section].batches; ++i, ++batch) {
        const BatchView view =
            file.view(batch, file.file().chunk(static_cast<std::uint64_t>(batch)));
        const auto at = [&](const char* name) {
          std::size_t tensor = 0;
          while (file.layout().tensors()[tensor].name != name) ++tensor;
          return view.rows[tensor];
        };
        const auto* const ids = reinterpret_cast<const std::int64_t*>(at("ids"));
        const auto* const labels = reinterpret_cast<const std::int32_t*>(at("labels"));
        for (std::int64_t row = 0; row < view.level_rows[0]; ++row) {
          CHECK(found.insert(ids[row]).second);
          CHECK(labels[row] == test::tiny_label(spec, ids[row]));
        }
        std::vector<float> features;
        for_each_element<float>(file.layout().tensors().front(), view.rows.front(),
                                view.level_rows.back(),
                                [&](std::int64_t, float value) { features.push_back(value); });
        CHECK(features[0] == test::tiny_feature(spec, ids[0], 0));
      }
      CHECK(found == expected);
      CHECK(manifest.sections[section].seeds == std::ssize(expected));
    }
    CHECK(batch == manifest.batches());
    std::int64_t labelled = 0;
    for (const LabelCounts& counts : manifest.train_labels) labelled += counts[1];
    CHECK(labelled == manifest.sections[1].seeds);
  }
}

TEST_CASE("sample_batches: what can't be done is refused before work, and leaves nothing") {
  BatchWorld world(test::batch_graph(false));
  const auto names = world.files.list("/");
  const auto refused = [&](auto&& change) {
    SampleOptions options = sample_options(test::batch_config("gcn"));
    change(options);
    const std::int64_t writes = world.io.writes;
    std::string what;
    try {
      sample(world, options);
    } catch (const Error& error) {
      what = error.what();
    }
    CHECK(world.io.writes == writes);
    CHECK(world.files.list("/") == names);
    return what;
  };
  CHECK_THAT(refused([](SampleOptions& options) { options.sampling.weighted = true; }),
             Contains("--weighted on a dataset without edge weights"));
  CHECK_THAT(refused([](SampleOptions& options) { options.only.emplace(); }),
             Contains("no vertex is a seed"));
  CHECK_THAT(refused([](SampleOptions& options) { options.memory_bytes = 1 << 20; }),
             Contains("the least that works is"));
  CHECK_THAT(refused([](SampleOptions& options) { options.disk_bytes = 1000; }),
             Contains("no space left for batches") && Contains(kPath));
}

TEST_CASE("sample_batches: stopped or broken anywhere, it leaves nothing") {
  BatchWorld world(test::batch_graph(false));
  const auto names = world.files.list("/");
  const SampleOptions options = sample_options(test::batch_config("gcn"));
  for (const double at : {0., 1., 12., 19.}) {
    std::atomic<bool> stop{false};
    const Control control{[&](std::string_view, double done, double) { stop = stop || done >= at; },
                          &stop};
    CHECK_THROWS_AS(sample(world, options, control), Interrupted);
    CHECK(world.files.list("/") == names);
  }
  world.io.reads = 0;
  sample(world, options);
  world.files.remove_all(kPath);
  const std::int64_t reads = world.io.reads;
  for (std::int64_t fault = 1; fault <= reads; fault += 1 + reads / 8) {
    world.io.reads = 0;
    world.io.faults.first_failing_read = fault;
    CHECK_THROWS_AS(sample(world, options), IoError);
    world.io.faults = {};
    CHECK(world.files.list("/") == names);
  }
}

TEST_CASE("stored_batch_reader: batches come in any order, and again after errors") {
  BatchWorld world(test::batch_graph(false));
  const RunConfig config = test::batch_config("sage");
  sample(world, sample_options(config));
  const BatchFile file = open(world);
  Training training(world, config, DType::kF32);
  const std::vector<Bits> bits = training.stored(file, world.io, first_numbers(0, 9));
  const std::vector<std::int64_t> order{4, 0, 8, 8, 1, 7};
  std::vector<Bits> expected;
  for (const std::int64_t batch : order) expected.push_back(bits[static_cast<std::size_t>(batch)]);
  const bool equal = training.stored(file, world.io, order) == expected;
  CHECK(equal);
  StoredBatchReader reader(world.io, file);
  CHECK_FALSE(reader.next());
  for (std::int64_t fault = 1; fault <= 4; ++fault) {
    reader.begin(order);
    REQUIRE(reader.next());
    world.io.reads = 0;
    world.io.faults.first_failing_read = fault;
    const auto read_all = [&] {
      while (reader.next()) CHECK(reader.batch().level_rows.front() <= 7);
    };
    CHECK_THROWS_AS(read_all(), IoError);
    world.io.faults = {};
  }
  reader.begin(order);
  std::int64_t batches = 0;
  while (reader.next()) CHECK(reader.index() == batches++);
  CHECK(batches == 6);
  CHECK(StoredBatchReader::buffer_bytes(file) < 1 << 20);
}

TEST_CASE("stored_batch_reader: from a mapping nothing is copied") {
  test::TemporaryDirectory directory;
  const std::string path = directory / "tiny.ooc";
  TinyDataset spec = test::batch_graph(true);
  const Dataset dataset = test::write_tiny_dataset(posix_file_system(), spec, path);
  const auto io = make_block_io();
  SampleOptions options = sample_options(test::batch_config("gcn"));
  options.output = directory / "x.batches";
  sample_batches(*io, posix_file_system(), dataset, options, {});
  const BatchFile file = BatchFile::open(posix_file_system(), options.output, VerifyPolicy::kFirst);
  const auto mapped = make_mapped_block_io(*io);
  StoredBatchReader direct(*io, file), in_place(*mapped, file);
  const std::vector<std::int64_t> order = first_numbers(0, file.batches());
  direct.begin(order);
  in_place.begin(order);
  while (direct.next()) {
    REQUIRE(in_place.next());
    CHECK(in_place.batch().level_rows == direct.batch().level_rows);
    CHECK(std::equal(in_place.batch().edges.begin(), in_place.batch().edges.end(),
                     direct.batch().edges.begin(), direct.batch().edges.end()));
  }
  CHECK_FALSE(in_place.next());
}

}  // namespace
}  // namespace ooc
