// Training in whatever memory there is: the same losses to the last bit, and the bytes of the plan.
#include <tbb/task_arena.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/infer/inference.h"
#include "engine/train/config_words.h"
#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"
#include "tests/support/cases.h"
#include "tests/support/device_memory.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::MemoryFileSystem;
using test::TinyDataset;
using test::TinyTraining;

namespace {

RunConfig config_of(const std::string& model) {
  RunConfig config;
  config.model.model = model;
  config.model.hidden = 24;
  if (model == "gat") config.model.heads = 2;
  config.epochs = 3;
  return config;
}

struct Curve {
  std::vector<double> losses;
  std::vector<double> scores;    // of every split
  std::int64_t moved_bytes = 0;  // planned, an epoch
};

// Some rows of a tensor are kept, the others computed again.
bool keeps_partly(const Trainer& trainer) {
  const std::vector<PlannedTensor>& tensors = trainer.plan().epoch_plan().tensors;
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const PlannedTensor& tensor) { return !tensor.kept.all(); });
}

// Also checks that every epoch but the first moves the plan's bytes.
Curve train(TinyTraining& training, const RunConfig& config, const PlanOptions& plan = {}) {
  Trainer& trainer = training.start(config, plan);
  Curve curve;
  curve.moved_bytes = trainer.plan().bytes_read() + trainer.plan().bytes_written();
  while (trainer.state().epoch < config.epochs) {
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    curve.losses.push_back(record.loss);
    curve.losses.push_back(record.valid_loss);
    curve.scores.push_back(record.scores.front().valid);
    INFO("epoch " << record.epoch);
    if (record.epoch > 1) {
      CHECK(record.counters.bytes_read == trainer.plan().bytes_read());
      CHECK(record.counters.bytes_written == trainer.plan().bytes_written());
    }
  }
  return curve;
}

void check_same(const Curve& curve, const Curve& expected) {
  CHECK(curve.losses == expected.losses);
  CHECK(curve.scores == expected.scores);
}

// Every budget down to the least that a plan is made for.
void check_budgets(TinyTraining& training, RunConfig config, test::Cases& cases) {
  const Curve expected = train(training, config);
  REQUIRE(std::isfinite(expected.losses.back()));
  for (const auto& [word, strategy] : kStrategies) {
    config.cache_policy = strategy;
    std::int64_t runs = 0, most = 0;
    for (std::int64_t budget = 6 << 20; runs < 20; budget = budget * 2 / 3, ++runs) {
      if (runs >= 2 && !cases.next()) continue;
      PlanOptions options;
      options.memory_bytes = budget;
      INFO(config.model.model << ", --cache-policy " << word << ", " << budget << " bytes");
      try {
        const Curve curve = train(training, config, options);
        check_same(curve, expected);
        most = std::max(most, curve.moved_bytes);
      } catch (const BudgetError&) {
        break;
      }
    }
    CHECK(runs >= 2);
    CHECK(runs < 20);
    if (cases.runs_all()) CHECK(most > expected.moved_bytes);
  }
}

// The most that a plan has in memory of a dataset's rows and edges, pass by pass.
std::int64_t most_of(const Plan& plan) {
  if (plan.devices.empty()) return 0;  // nothing is precomputed
  const auto is_input = [&](int tensor) {
    return tensor >= 0 && plan.tensors[static_cast<std::size_t>(tensor)].input;
  };
  std::int64_t edges = 0, most = 0;
  for (const EdgeRange& range : plan.devices[0].edge_ranges) edges += range.memory.bytes;
  for (const Section& section : plan.sections) {
    int index = section.first_pass;
    for (const Pass& pass : section.passes) {
      std::int64_t bytes = edges + test::memory_of(plan, pass).edges.bytes;
      for (const TensorUse& use : pass.uses)
        bytes += is_input(use.tensor) ? test::memory_of(plan, pass, use).bytes : 0;
      for (const ResidentRange& range : plan.devices[0].ranges) {
        if (is_input(range.tensor) && is_alive(range, index)) bytes += range.memory.bytes;
      }
      most = std::max(most, bytes);
      ++index;
    }
  }
  return most;
}

std::int64_t most_of_dataset(const TrainingPlan& plan) {
  return std::max(most_of(plan.epoch_plan()), most_of(plan.precompute_plan()));
}

}  // namespace

TEST_CASE("out of core: models train the same in any budget, by any policy") {
  TinyTraining training;
  test::Cases cases(8);
  for (const char* model : {"gcn", "sage", "gat", "ggcn", "ggnn"}) {
    check_budgets(training, config_of(model), cases);
  }
}

TEST_CASE("out of core: three layers with input dropout and norms train the same in any budget") {
  TinyTraining training;
  RunConfig config = config_of("gcn");
  config.model.layers = 3;
  config.model.input_dropout = 0.3;
  config.model.norm = Norm::kBatch;
  config.model.residual = true;
  test::Cases cases(8);
  check_budgets(training, config, cases);
}

TEST_CASE("out of core: a mapped dataset trains the same in any budget, used where it lies") {
  test::Cases cases(3);
  for (const char* model : {"gcn", "sage", "gat"}) {
    TinyTraining training;
    RunConfig config = config_of(model);
    if (config.model.model == "gcn") config.model.input_dropout = 0.3;  // features at the edges
    const Curve expected = train(training, config);
    test::PoisonedMapBlockIo& mapped = training.map();
    for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp}) {
      config.cache_policy = strategy;
      for (const std::int64_t budget : {6 << 20, 2 << 20, 900 << 10}) {
        if (!cases.next()) continue;
        INFO(model << ", " << word_of(kStrategies, strategy) << ", " << budget << " bytes");
        PlanOptions options;
        options.memory_bytes = budget;
        mapped.in_place = 0;
        mapped.copied = 0;
        mapped.most_bytes = mapped.there_bytes.load();
        const std::int64_t before = mapped.there_bytes;
        check_same(train(training, config, options), expected);
        CHECK(mapped.in_place > 0);
        // Self loops are read into memory of their own.
        CHECK(mapped.copied <= training.dataset().manifest().edges.block_count());
        CHECK(mapped.most_bytes - before <= most_of_dataset(training.trainer().plan()));
      }
    }
  }
}

TEST_CASE("out of core: splits, spans and workers change nothing but the bytes") {
  TinyTraining training;
  test::Cases cases(8);
  for (const char* model : {"gcn", "ggcn"}) {
    RunConfig config = config_of(model);
    config.cache_policy = Strategy::kNone;
    config.model.input_dropout = 0.3;
    const Curve expected = train(training, config);
    for (const int workers : {1, 3}) {
      tbb::task_arena arena(workers);
      for (const std::int64_t dst_range_blocks : {0, 4}) {
        for (const std::int64_t slices : {0, 1}) {
          for (const std::int64_t span_group : {0, 1, 2}) {
            if (!cases.next()) continue;
            const std::int64_t dst_ranges_at_once = 1 + (workers + slices + span_group) % 2;
            INFO(model << ", workers " << workers << ", parts of " << dst_range_blocks << ", "
                       << dst_ranges_at_once << " at once, slices " << slices << ", spans "
                       << span_group);
            PlanOptions options;
            options.dst_range_blocks = dst_range_blocks;
            options.slices_at_once = slices;
            options.span_group = span_group;
            options.dst_ranges_at_once = dst_ranges_at_once;
            arena.execute([&] { check_same(train(training, config, options), expected); });
          }
        }
      }
    }
  }
}

// With products that take about as long as reading and writing what they make.
TEST_CASE("out of core: what is kept in part and computed again in part gives the same") {
  TinyDataset spec = test::graph_of_three_spans();
  spec.vertices = 6000;
  spec.edges = test::random_edges(spec.vertices, 9000, 21);
  TinyTraining training(spec);
  struct Case {
    const char* model;
    std::int64_t layers, bytes;
  };
  for (const auto& [model, layers, bytes] :
       {Case{"gcn", 2, 2250 << 10}, {"gcn", 3, 4000 << 10}, {"sage", 2, 2500 << 10}}) {
    INFO(model << ", layers " << layers);
    RunConfig config = config_of(model);
    config.model.hidden = 40;
    config.model.layers = layers;
    PlanOptions options;
    options.memory_bytes = bytes;
    bool partly = false;
    for (double rate = 5e9; !partly && rate < 1e12; rate *= 1.35) {
      options.rates.multiply_adds = options.rates.row_sums = rate;
      partly = keeps_partly(training.start(config, options));
    }
    CHECK(partly);
    check_same(train(training, config, options), train(training, config));
  }
}

TEST_CASE("out of core: metrics that read logits give the same in any budget, and count bytes") {
  TinyDataset spec = test::graph_of_three_spans();
  spec.multi_label = true;
  spec.classes = 5;
  TinyTraining training(spec);
  test::Cases cases(8);
  for (const Metric metric : {Metric::kMicroF1, Metric::kRocAuc}) {
    RunConfig config = config_of("sage");
    config.model.task = Task::kMultiLabel;
    config.metrics = {metric};
    check_budgets(training, config, cases);
  }
}

TEST_CASE("out of core: values and weighted ones give the same in any budget, and count bytes") {
  test::Cases cases(8);
  TinyDataset values = test::graph_of_three_spans();
  values.classes = values.targets = 3;
  TinyTraining regression(values);
  RunConfig config = config_of("gcn");
  config.model.task = Task::kRegression;
  config.model.loss = Loss::kHuber;
  config.metrics = {Metric::kRmse, Metric::kR2, Metric::kMae};
  check_budgets(regression, config, cases);
  TinyDataset bits = test::graph_of_three_spans();
  bits.multi_label = true;
  bits.classes = 5;
  TinyTraining many(bits);
  config.model.task = Task::kMultiLabel;
  config.model.loss = Loss::kCrossEntropy;
  config.model.class_weights = kBalancedWeights;
  config.metrics = {Metric::kMacroF1, Metric::kAveragePrecision};
  check_budgets(many, config, cases);
}

TEST_CASE("out of core: evaluating every other epoch changes no loss") {
  TinyTraining training;
  RunConfig config = config_of("gcn");
  config.epochs = 6;
  const auto losses = [&](std::int64_t eval_every, std::int64_t memory_bytes) {
    config.eval_every = eval_every;
    Trainer& trainer = training.start(config, PlanOptions{.memory_bytes = memory_bytes});
    std::vector<double> result;
    while (trainer.state().epoch < config.epochs) {
      result.push_back(trainer.run_epoch(nullptr).value().loss);
    }
    return result;
  };
  const std::vector<double> expected = losses(1, 0);
  for (const std::int64_t eval_every : {1, 2, 4}) {
    for (const std::int64_t memory_bytes : {0, 1 << 20, 600 << 10}) {
      INFO("every " << eval_every << ", " << memory_bytes << " bytes");
      CHECK(losses(eval_every, memory_bytes) == expected);
    }
  }
}

TEST_CASE("out of core: without room in the scratch directory nothing is begun") {
  TinyDataset spec = test::graph_of_three_spans();
  MemoryFileSystem files;
  const Dataset dataset = test::write_tiny_dataset(files, spec);
  const auto backend = make_cpu_backend();
  RunConfig config = config_of("gcn");
  config.cache_policy = Strategy::kNone;
  const auto run = [&](std::uint64_t room) {
    test::MemoryBlockIo io(files, {.disk_bytes = room});
    test::FaultyBlockIo counting(io);
    Trainer trainer(*backend, counting, dataset, config);
    if (room == std::numeric_limits<std::uint64_t>::max()) {
      CHECK(trainer.run_epoch(nullptr));
    } else {
      CHECK_THROWS_AS(trainer.run_epoch(nullptr), IoError);
      CHECK(counting.reads == 0);
      CHECK(counting.writes == 0);
      CHECK(trainer.state().epoch == 0);
    }
    REQUIRE(trainer.plan().precompute_plan().stored_bytes > 0);
    REQUIRE(trainer.plan().epoch_plan().stored_bytes > 0);
    return trainer.plan().precompute_plan().stored_bytes + trainer.plan().epoch_plan().stored_bytes;
  };
  const std::int64_t needed = run(std::numeric_limits<std::uint64_t>::max());
  // One page too few; room for what is computed once, but not for what the epochs store; none.
  for (const std::int64_t room : {needed - 4096, needed / 2, std::int64_t{0}}) {
    run(static_cast<std::uint64_t>(room));
  }
}

TEST_CASE("out of core: a budget of the process that is too small names one that works") {
  TinyTraining training;
  const RunConfig config = config_of("sage");
  TrainerOptions options;
  options.budget.host_bytes = 1 << 20;
  std::string message;
  try {
    training.start(config, options);
  } catch (const BudgetError& error) {
    message = error.what();
  }
  CHECK_THAT(message, Contains("--host-memory"));
}

TEST_CASE("out of core: inference gives the same in any budget, in the order of the input") {
  TinyDataset spec = test::graph_of_three_spans();
  spec.permute = true;
  TinyTraining training(spec);
  RunConfig config = config_of("sage");
  Trainer& trainer = training.start(config);
  trainer.run_epoch(nullptr);
  const Checkpoint checkpoint = trainer.checkpoint();
  const auto infer = [&](std::int64_t memory_bytes) {
    InferenceOptions options{.path = "/logits.npy", .force = true};
    options.budget.plan.memory_bytes = memory_bytes;
    options.budget.plan.strategy = Strategy::kDp;
    run_inference(training.files(), training.backend(), training.io(), training.dataset(),
                  checkpoint, options, nullptr);
    return read_file(training.files(), "/logits.npy");
  };
  const std::vector<std::byte> expected = infer(0);
  for (const std::int64_t memory_bytes : {1 << 20, 600 << 10}) {
    CHECK(infer(memory_bytes) == expected);
  }
}
