#include <catch2/catch.hpp>

#include "engine/infer/inference.h"
#include "engine/train/trainer.h"
#include "kernels/device/cpu_backend.h"
#include "storage/base/errors.h"
#include "tests/support/edit_dataset.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::MemoryFileSystem;

namespace {

constexpr const char* kPath = "/tiny.ooc";

test::TinyDataset graph(std::int64_t cols) {
  test::TinyDataset spec;
  spec.vertices = 300;
  spec.feature_cols = cols;
  spec.block_rows = 64;
  spec.edges = test::random_edges(spec.vertices, 6 * spec.vertices, 3);
  return spec;
}

struct Run {
  std::vector<double> losses;
  std::int64_t bytes_read = 0;
  std::int64_t planned_bytes = 0;
  std::int64_t scratch_bytes = 0;
  std::int64_t group_rows = 0;
  std::vector<std::byte> logits;
};

Run run(MemoryFileSystem& files, double input_dropout) {
  const Dataset dataset = Dataset::open(files, kPath, VerifyPolicy::kFirst);
  const auto backend = make_cpu_backend();
  RunConfig config;
  config.model.hidden = 24;
  config.model.input_dropout = input_dropout;
  config.epochs = 4;
  config.rewrites = "-hoisting";  // features are read in every epoch
  config.cache_policy = Strategy::kNone;
  test::MemoryBlockIo io(files);
  // Nothing takes time but bytes: what is computed again doesn't depend on the features' type.
  TrainerOptions options;
  MachineRates& rates = options.budget.plan.rates;
  rates.storage_read = rates.storage_write = rates.storage_both = 1e6;
  Trainer trainer(*backend, io, dataset, config, options);
  Run result;
  while (trainer.state().epoch < config.epochs) {
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    result.losses.push_back(record.loss);
    result.losses.push_back(record.valid_loss);
    result.bytes_read = record.counters.bytes_read;
  }
  const Plan& plan = trainer.plan().epoch_plan();
  result.planned_bytes = trainer.plan().bytes_read();
  for (const Pass& pass : plan.sections[0].passes) {
    result.scratch_bytes = std::max(result.scratch_bytes, worker_scratch_bytes(pass));
  }
  result.group_rows = plan.sections[0].passes.front().group_rows;
  run_inference(files, *backend, io, dataset, trainer.checkpoint(), {.path = "/logits.npy"},
                nullptr);
  result.logits = read_file(files, "/logits.npy");
  return result;
}

template <class T>
Run run_with(std::int64_t cols, bool round_only, double input_dropout) {
  MemoryFileSystem files;
  test::write_tiny_dataset(files, graph(cols));
  test::narrow_features<T>(files, kPath, round_only);
  return run(files, input_dropout);
}

}  // namespace

TEMPLATE_TEST_CASE("half features: training and inference are those of fp32 rounded before", "",
                   Half, BFloat16) {
  // Fewer columns than 8, a slice and a half, more than anything else of the model.
  for (const std::int64_t cols : {5, 50, 700}) {
    for (const double input_dropout : {0.0, 0.3}) {
      if (cols == 700 && input_dropout > 0) continue;
      INFO(cols << " columns, input dropout " << input_dropout);
      const Run stored = run_with<TestType>(cols, false, input_dropout);
      const Run rounded = run_with<TestType>(cols, true, input_dropout);
      CHECK(stored.losses == rounded.losses);
      CHECK(stored.logits == rounded.logits);
      CHECK(stored.group_rows == rounded.group_rows);
      CHECK(stored.bytes_read == stored.planned_bytes);
      CHECK(stored.bytes_read < rounded.bytes_read);
      if (cols < 700) continue;
      // The buffer that rows are converted in is part of the plan; here it is the largest.
      CHECK(stored.scratch_bytes >= stored.group_rows * cols * 4);
      CHECK(stored.scratch_bytes > rounded.scratch_bytes);
    }
  }
}

TEST_CASE("half features: rows come back as fp32") {
  MemoryFileSystem files;
  test::write_tiny_dataset(files, graph(50));
  test::narrow_features<Half>(files, kPath, false);
  const Dataset dataset = Dataset::open(files, kPath, VerifyPolicy::kFirst);
  CHECK_NOTHROW(dataset.verify());
  const VertexTensorFile& features = *dataset.tensor("features");
  CHECK(features.dtype() == DType::kF16);
  std::vector<float> rows(101 * 50);
  features.read_rows_f32(40, 101, rows.data());  // across blocks
  for (std::int64_t i = 0; i < 101 * 50; ++i) {
    const float value = test::tiny_feature(graph(50), 40 + i / 50, i % 50);
    REQUIRE(rows[static_cast<std::size_t>(i)] == Approx(value).epsilon(1e-3).margin(1e-7));
  }
}

TEST_CASE("multi-label labels: checked, read, and trained") {
  MemoryFileSystem files;
  const test::TinyDataset spec = graph(5);
  test::write_tiny_dataset(files, spec);
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(spec.vertices) * 7);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 3 == 0;
  for (std::size_t i = 0; i < 7; ++i) labels[4 * 7 + i] = kUnlabelled;  // 4 is in no split
  const auto store = [&] {
    test::replace_tensor<std::uint8_t>(files, kPath, "labels", 7, labels, [](Manifest& manifest) {
      manifest.labels = LabelKind::kMulti;
      manifest.classes = 7;
    });
    return Dataset::open(files, kPath, VerifyPolicy::kFirst);
  };
  {
    const Dataset dataset = store();
    CHECK_NOTHROW(dataset.verify());
    CHECK(dataset.manifest().labels == LabelKind::kMulti);
    CHECK(dataset.tensor("labels")->layout().cols == 7);
    const auto backend = make_cpu_backend();
    test::MemoryBlockIo io(files);
    RunConfig config;
    config.model.task = default_task(dataset.manifest().labels);
    config.metrics = {default_metric(config.model.task)};
    CHECK(std::isfinite(Trainer(*backend, io, dataset, config).run_epoch(nullptr).value().loss));
  }
  const auto refused = [&](std::size_t at, std::uint8_t value, const char* message) {
    const std::uint8_t kept = std::exchange(labels[at], value);
    CHECK_THROWS_WITH(store().check_labels(), Contains(message));
    labels[at] = kept;
  };
  refused(9 * 7 + 1, 2, "labels that are none of 7 classes, /tiny.ooc/labels, row 9");
  refused(0 * 7 + 1, kUnlabelled, "the train split lacks 1 labels, the manifest says 0");
  for (std::size_t i = 0; i < 7; ++i) labels[10 * 7 + i] = kUnlabelled;
  CHECK_THROWS_WITH(store().check_labels(), Contains("split 1 of an unlabelled vertex"));
}
