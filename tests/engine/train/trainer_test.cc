#include "engine/train/trainer.h"

#include <tbb/task_arena.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <thread>

#include "engine/model/parts/words.h"
#include "kernels/device/cpu_backend.h"
#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"
#include "tests/engine/train/dense_gcn.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::MemoryFileSystem;
using test::TinyDataset;

namespace {

TinyDataset graph_of(std::int64_t vertices = 300) {
  TinyDataset spec;
  spec.vertices = vertices;
  spec.feature_cols = 40;
  spec.classes = 3;
  spec.edges = test::random_edges(vertices, 8 * vertices, 21);
  return spec;
}

RunConfig small_config() {
  RunConfig config;
  config.model.hidden = 40;
  config.model.input_dropout = 0.3;
  config.weight_decay = 5e-4;
  config.epochs = 20;
  return config;
}

struct Curve {
  std::vector<double> losses;
  std::vector<double> valid_losses;
  std::int64_t bytes_read = 0;
  std::int64_t planned_bytes = 0;
};

Curve curve_of(Trainer& trainer) {
  Curve curve;
  curve.planned_bytes = trainer.plan().bytes_read();
  while (trainer.state().epoch < trainer.config().epochs) {
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    curve.losses.push_back(record.loss);
    curve.valid_losses.push_back(record.valid_loss);
    curve.bytes_read = record.counters.bytes_read;
  }
  return curve;
}

Curve train(const TinyDataset& spec, const RunConfig& config, std::int64_t span_group = 0) {
  MemoryFileSystem files;
  const Dataset dataset = test::write_tiny_dataset(files, spec);
  test::MemoryBlockIo io(files);
  const auto backend = make_cpu_backend();
  TrainerOptions options;
  options.budget.plan.span_group = span_group;
  Trainer trainer(*backend, io, dataset, config, options);
  return curve_of(trainer);
}

void check_close(const Curve& a, const Curve& b, double relative) {
  REQUIRE(a.losses.size() == b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    INFO("epoch " << i + 1);
    CHECK(a.losses[i] == Approx(b.losses[i]).epsilon(relative));
    CHECK(a.valid_losses[i] == Approx(b.valid_losses[i]).epsilon(relative));
  }
}

}  // namespace

TEST_CASE("trainer: the untrained model's losses are those of a dense GCN in double") {
  // Directed, with parallel edges and self loops, in a permuted order.
  TinyDataset spec = graph_of(70);
  spec.permute = true;
  spec.edges.push_back({3, 3});
  spec.edges.push_back({3, 3});
  RunConfig config = small_config();
  config.model.layers = 3;
  config.model.dropout = config.model.input_dropout = 0;
  config.lr = 0;  // the evaluation after the step sees the same parameters
  MemoryFileSystem files;
  const Dataset dataset = test::write_tiny_dataset(files, spec);
  const auto backend = make_cpu_backend();
  test::MemoryBlockIo io(files);
  Trainer trainer(*backend, io, dataset, config);
  const EpochRecord record = trainer.run_epoch(nullptr).value();

  std::vector<test::Dense> weights;
  std::vector<std::vector<double>> biases;
  for (const ParameterValues& p : trainer.state().parameters) {
    const auto* values = reinterpret_cast<const float*>(p.value.data());
    test::Dense dense(p.rows, p.cols);
    std::copy(values, values + p.rows * p.cols, dense.values.begin());
    if (p.name.ends_with(".weight")) weights.push_back(dense);
    if (p.name.ends_with(".bias")) biases.push_back(dense.values);
  }
  test::Dense features(spec.vertices, spec.feature_cols);
  for (std::int64_t v = 0; v < spec.vertices; ++v) {
    for (std::int64_t c = 0; c < spec.feature_cols; ++c) {
      features.at(v, c) = test::tiny_feature(spec, v, c);
    }
  }
  const test::Dense logits = test::dense_gcn(test::normalised_adjacency(spec.edges, spec.vertices),
                                             features, weights, biases);
  const auto label = [&](std::int64_t v) { return (v * 7 + v / 5) % spec.classes; };
  const auto in_train = [](std::int64_t v) { return v % 5 == 0 || v % 5 == 2; };
  const auto in_valid = [](std::int64_t v) { return v % 5 == 1; };
  CHECK(record.loss == Approx(test::dense_cross_entropy(logits, in_train, label)).epsilon(1e-5));
  CHECK(record.valid_loss ==
        Approx(test::dense_cross_entropy(logits, in_valid, label)).epsilon(1e-5));
}

TEST_CASE("trainer: losses don't depend on the block size or the vertex order") {
  const RunConfig config = small_config();
  TinyDataset spec = graph_of();
  spec.block_rows = 16384;
  const Curve whole = train(spec, config);
  CHECK(whole.losses.back() < 0.9 * whole.losses.front());
  for (const std::int64_t block_rows : {16, 64, 256}) {
    spec.block_rows = block_rows;
    INFO(block_rows << " rows a block");
    check_close(train(spec, config), whole, 1e-5);
  }
  spec.permute = true;
  check_close(train(spec, config), whole, 1e-5);
}

TEST_CASE(
    "trainer: blocks of several row groups give the losses of small blocks, with every norm") {
  TinyDataset spec = graph_of(5000);
  spec.feature_cols = 9;
  RunConfig config = small_config();
  config.epochs = 6;
  for (const Norm norm : {Norm::kNone, Norm::kBatch, Norm::kLayer}) {
    config.model.norm = norm;
    INFO("norm " << word_of(kNorms, norm));
    spec.block_rows = 16384;  // row groups of 2,048, 2,048 and 904
    spec.permute = false;
    const Curve whole = train(spec, config);
    spec.block_rows = 256;
    check_close(train(spec, config), whole, 1e-5);
    spec.permute = true;
    check_close(train(spec, config), whole, 1e-5);
  }
}

TEST_CASE("trainer: losses are bit-equal for any number of threads and any grouping of spans") {
  RunConfig config = small_config();
  config.epochs = 5;
  config.model.norm = Norm::kBatch;
  TinyDataset spec = graph_of(1500);
  spec.block_rows = 128;
  spec.edges = test::random_edges(1500, 90000, 4);  // dense enough for several spans
  const Curve reference = train(spec, config);
  {
    tbb::task_arena threads(7);
    threads.execute([&] { CHECK(train(spec, config).losses == reference.losses); });
  }
  for (const std::int64_t group : {1, 2, 5}) {
    INFO(group << " spans at once");
    const Curve grouped = train(spec, config, group);
    CHECK(grouped.losses == reference.losses);
    CHECK(grouped.valid_losses == reference.valid_losses);
  }
}

TEST_CASE("trainer: a plan that was made before is taken as it is") {
  test::TinyTraining training(graph_of());
  TrainerOptions options;
  options.plan = plan_training(training.dataset(), small_config(), {});
  RunConfig config = small_config();
  config.seed = 7;
  const Curve own = curve_of(training.start(config));
  Trainer& planned = training.start(config, options);
  CHECK(&planned.plan() == options.plan.get());
  CHECK(curve_of(planned).losses == own.losses);
}

TEST_CASE("trainer: the bytes an epoch reads are the plan's") {
  RunConfig config = small_config();
  config.epochs = 2;
  config.cache_policy = Strategy::kNone;
  for (const bool symmetric : {false, true}) {
    TinyDataset spec = graph_of();
    if (symmetric) spec.edges = test::with_reverse(spec.edges);
    const Curve curve = train(spec, config);
    CHECK(curve.bytes_read > 0);
    CHECK(curve.bytes_read == curve.planned_bytes);
  }
}

TEST_CASE("trainer: the bytes of a model with loops are the plan's for any grouping of spans") {
  RunConfig config = small_config();
  config.epochs = 2;
  config.model.model = "gat";
  config.model.hidden = 8;
  config.model.heads = 2;
  TinyDataset spec = graph_of();
  spec.span_rows = 64;
  spec.panel_blocks = 5;
  const Curve whole = train(spec, config);
  CHECK(whole.bytes_read == whole.planned_bytes);
  for (const std::int64_t group : {1, 2, 5}) {
    INFO(group << " spans at once");
    const Curve curve = train(spec, config, group);
    CHECK(curve.bytes_read == curve.planned_bytes);
    CHECK(curve.bytes_read == whole.bytes_read);
    CHECK(curve.losses == whole.losses);
    CHECK(curve.valid_losses == whole.valid_losses);
  }
}

TEST_CASE("trainer: every variant learns the labels of its training vertices") {
  for (const Norm norm : {Norm::kNone, Norm::kBatch, Norm::kLayer}) {
    for (const bool extras : {false, true}) {
      RunConfig config;
      config.model.layers = 3;
      config.model.hidden = 33;
      config.model.norm = norm;
      config.model.residual = extras;
      config.model.linear_head = extras;
      config.epochs = 60;
      TinyDataset spec = graph_of(100);
      spec.edges = test::random_edges(100, 150, 2);
      const Curve curve = train(spec, config);
      INFO("norm " << word_of(kNorms, norm) << ", residual and head " << extras);
      CHECK(curve.losses.back() < 0.5 * curve.losses.front());
    }
  }
}

TEST_CASE("trainer: an epoch stopped anywhere is dropped whole") {
  RunConfig config = small_config();
  config.model.norm = Norm::kBatch;
  config.epochs = 1000;
  TinyDataset spec = graph_of(1500);
  spec.block_rows = 64;  // many chunks to stop at
  MemoryFileSystem files;
  const Dataset dataset = test::write_tiny_dataset(files, spec);
  const auto backend = make_cpu_backend();
  test::MemoryBlockIo io(files);
  Trainer undisturbed(*backend, io, dataset, config), disturbed(*backend, io, dataset, config);
  const auto begin = std::chrono::steady_clock::now();
  undisturbed.run_epoch(nullptr);
  const auto epoch_time = std::chrono::steady_clock::now() - begin;
  disturbed.run_epoch(nullptr);
  int dropped = 0;
  for (int i = 0; i < 40; ++i) {  // at all places of an epoch, its evaluation too
    std::atomic<bool> stop{false};
    std::thread stopper([&] {
      std::this_thread::sleep_for(epoch_time * i / 40);
      stop = true;
    });
    const std::int64_t before = disturbed.state().epoch;
    std::optional<EpochRecord> record = disturbed.run_epoch(&stop);
    stopper.join();
    if (!record) {
      ++dropped;
      CHECK(disturbed.state().epoch == before);
      record = disturbed.run_epoch(nullptr);
    }
    const EpochRecord expected = undisturbed.run_epoch(nullptr).value();
    REQUIRE(record->loss == expected.loss);
    REQUIRE(record->valid_loss == expected.valid_loss);
  }
  CHECK(dropped > 0);  // the first ones at the least: stopped at once
}

TEST_CASE("trainer: running statistics move a tenth of the way to the batch's") {
  TinyDataset spec = graph_of(70);
  RunConfig config = small_config();
  config.model.norm = Norm::kBatch;
  config.model.dropout = config.model.input_dropout = 0;
  config.lr = 0;
  MemoryFileSystem files;
  const Dataset dataset = test::write_tiny_dataset(files, spec);
  const auto backend = make_cpu_backend();
  test::MemoryBlockIo io(files);
  Trainer trainer(*backend, io, dataset, config);
  const auto values_of = [&](const std::string& name) {
    for (const ParameterValues& p : trainer.state().parameters) {
      if (p.name != name) continue;
      test::Dense dense(p.rows, p.cols);
      const auto* values = reinterpret_cast<const float*>(p.value.data());
      std::copy(values, values + p.rows * p.cols, dense.values.begin());
      return dense;
    }
    FAIL("no parameter " << name);
    return test::Dense(0, 0);
  };
  test::Dense features(spec.vertices, spec.feature_cols);
  for (std::int64_t v = 0; v < spec.vertices; ++v) {
    for (std::int64_t c = 0; c < spec.feature_cols; ++c) {
      features.at(v, c) = test::tiny_feature(spec, v, c);
    }
  }
  const test::Dense hidden = test::multiply(
      test::multiply(test::normalised_adjacency(spec.edges, spec.vertices), features),
      values_of("layer1.weight"));
  double keep = 1;  // of the initial values, mean 0 and variance 1
  for (int epoch = 1; epoch <= 2; ++epoch) {
    trainer.run_epoch(nullptr);
    keep *= 0.9;
    for (std::int64_t c = 0; c < hidden.cols; c += 7) {
      double mean = 0, squares = 0;
      for (std::int64_t v = 0; v < hidden.rows; ++v) {
        mean += hidden.at(v, c) / static_cast<double>(hidden.rows);
      }
      for (std::int64_t v = 0; v < hidden.rows; ++v) {
        squares += std::pow(hidden.at(v, c) - mean, 2);
      }
      const double variance = squares / static_cast<double>(hidden.rows - 1);
      CHECK(values_of("layer1.norm.mean").at(0, c) ==
            Approx((1 - keep) * mean).epsilon(1e-4).margin(1e-6));
      CHECK(values_of("layer1.norm.variance").at(0, c) ==
            Approx(keep + (1 - keep) * variance).epsilon(1e-4));
    }
  }
}

TEST_CASE("trainer: the best epoch is the first with the best valid accuracy") {
  RunConfig config = small_config();
  config.epochs = 30;
  config.eval_every = 4;
  MemoryFileSystem files;
  const Dataset dataset = test::write_tiny_dataset(files, graph_of());
  const auto backend = make_cpu_backend();
  test::MemoryBlockIo io(files);
  Trainer trainer(*backend, io, dataset, config);
  double best = -1;
  std::int64_t best_epoch = 0, since = 0;
  while (trainer.state().epoch < config.epochs) {
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    const bool due = record.epoch % 4 == 0 || record.epoch == 30;
    REQUIRE(!record.scores.empty() == due);
    if (!due) continue;
    ++since;
    if (record.scores.front().valid > best) {
      best = record.scores.front().valid;
      best_epoch = record.epoch;
      since = 0;
    }
    CHECK(trainer.state().best.epoch == best_epoch);
    CHECK(trainer.state().best.parameters.front().m.empty());
    CHECK(trainer.state().evaluations_since_best == since);
  }
}

TEST_CASE("trainer: what cannot be trained on says why") {
  MemoryFileSystem files;
  const auto backend = make_cpu_backend();
  std::vector<Edge> edges{{0, 1}};
  DatasetWriter writer(files, "/d", false, 2, 16);
  writer.write_edges(edges);
  writer.write_ids({});
  const std::vector<float> features(4);
  writer.features(2).append_rows(features.data(), 2);
  writer.finish_features();
  writer.write_labels(std::vector<std::int32_t>{0, 1}, 2);
  writer.commit();
  const Dataset dataset = Dataset::open(files, "/d", VerifyPolicy::kFirst);
  test::MemoryBlockIo io(files);
  CHECK_THROWS_WITH(Trainer(*backend, io, dataset, RunConfig{}),
                    Contains("dataset without splits, training needs a train split, /d"));
  RunConfig config;
  config.model.model = "gnc";
  const Dataset good = test::write_tiny_dataset(files, graph_of());
  CHECK_THROWS_WITH(Trainer(*backend, io, good, config),
                    Contains("did you mean gcn? --model takes"));
  config = RunConfig{};
  config.model.dropout = 1;
  CHECK_THROWS_AS(Trainer(*backend, io, good, config), UsageError);
  config = RunConfig{};
  config.model.hidden = 100000000000;
  CHECK_THROWS_WITH(Trainer(*backend, io, good, config),
                    Contains("wrong value for --hidden, 100000000000; give a whole number from"));
}

TEST_CASE("trainer: a loss that is not finite ends the run") {
  TinyDataset spec = graph_of();
  RunConfig config = small_config();
  config.lr = 1e30;
  CHECK_THROWS_AS(train(spec, config), RunError);
  config.epochs = 1;  // the step of the last epoch broke it: found by its evaluation
  config.lr = 1e38;
  CHECK_THROWS_WITH(train(spec, config), Contains("the loss after the step is"));
}
