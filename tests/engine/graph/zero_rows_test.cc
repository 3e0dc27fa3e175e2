// Rows of gradients that are zero outside the train split: which are known to be, and that passing
// over them changes no bit of a training.
#include "engine/graph/zero_rows.h"

#include <cmath>

#include "engine/graph/operators.h"
#include "storage/base/errors.h"
#include "tests/engine/tiny_training.h"
#include "tests/kernels/run_kernel.h"
#include "tests/support/cases.h"

using namespace ooc;
using test::TinyDataset;
using test::TinyTraining;

namespace {

// 6 % of the vertices train, some of every class; edges carry all they may.
TinyDataset few_train() {
  TinyDataset spec = test::graph_of_three_spans();
  spec.feature_cols = 20;
  spec.edges.insert(spec.edges.end(), 3, Edge{40, 40});
  spec.train_every = 7;
  spec.classes = 4;
  spec.edge_weights = true;
  spec.edge_types = 3;
  spec.edge_feature_cols = 4;
  return spec;
}

RunConfig config_of(const std::string& model) {
  RunConfig config;
  config.model.model = model;
  config.model.hidden = 40;  // a whole slice and a narrow one
  config.model.dropout = 0.4;
  if (model == "gat" || model == "gatv2") {
    config.model.heads = 2;
    config.model.attn_dropout = 0.3;
  }
  config.epochs = 2;
  return config;
}

// Losses, and every bit of the parameters.
std::vector<double> train(TinyTraining& training, const RunConfig& config,
                          const PlanOptions& plan = {}) {
  Trainer& trainer = training.start(config, plan);
  std::vector<double> result;
  while (trainer.state().epoch < config.epochs) {
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    result.push_back(record.loss);
    result.push_back(record.valid_loss);
    REQUIRE(std::isfinite(record.loss + record.valid_loss));
    if (record.epoch == 1) continue;
    CHECK(record.counters.bytes_read == trainer.plan().bytes_read());
    CHECK(record.counters.bytes_written == trainer.plan().bytes_written());
  }
  for (const ParameterValues& parameter : trainer.state().parameters) {
    for (const std::byte byte : parameter.value) result.push_back(std::to_integer<int>(byte));
  }
  return result;
}

// By section: propagations that pass over edges.
std::vector<int> passing(TinyTraining& training, const RunConfig& config) {
  std::vector<int> counts;
  for (const Section& section : training.start(config).plan().epoch_plan().sections) {
    counts.push_back(0);
    for (const Pass& pass : section.passes) counts.back() += pass.propagation.splits >= 0 ? 1 : 0;
  }
  return counts;
}

constexpr const char* kModels[] = {"gcn",    "sage",      "gin",     "gat",   "gatv2",
                                   "resgcn", "sage_pool", "commnet", "mpgcn", "ggcn"};

// With and without, and in memories of all sizes.
void check_training(TinyTraining& training, RunConfig config) {
  test::Cases cases(2);
  config.rewrites = "-zeros";
  const std::vector<double> expected = train(training, config);
  config.rewrites.clear();
  const auto check = [&](const PlanOptions& options) {
    INFO(config.model.model << ", " << options.memory_bytes << " bytes, parts of "
                            << options.dst_range_blocks << ", slices " << options.slices_at_once
                            << (options.device ? ", on a device" : ""));
    const bool same =
        train(training, config, options) == expected;  // nobody reads thousands of bytes
    CHECK(same);
  };
  check({});
  for (const std::int64_t dst_range_blocks : {0, 4}) {
    for (const std::int64_t slices : {0, 1}) {
      if (!cases.next()) continue;
      check({.strategy = Strategy::kNone,
             .workers = 3,
             .dst_range_blocks = dst_range_blocks,
             .slices_at_once = slices});
    }
  }
  check({.memory_bytes = 3 << 20});
  check({.memory_bytes = 8 << 20, .device = true, .device_memory_bytes = 3 << 20});
}

}  // namespace

TEST_CASE("zero rows: models train the same bits with and without edges that add zeros") {
  TinyTraining training(few_train());
  for (const char* model : kModels) {
    const RunConfig config = config_of(model);
    INFO(model);
    // GIN's batch norm makes rows of zeros others.
    CHECK(passing(training, config)[0] == (config.model.model == "gin" ? 0 : 1));
    check_training(training, config);
  }
}

TEST_CASE("zero rows: so they do with norms, residuals, heads, class weights and other losses") {
  TinyTraining training(few_train());
  RunConfig config = config_of("sage");
  config.model.norm = Norm::kLayer;
  config.model.residual = true;
  config.model.layers = 3;
  config.model.class_weights = kBalancedWeights;
  CHECK(passing(training, config)[0] > 0);
  check_training(training, config);

  TinyDataset spec = few_train();
  spec.classes = 2;
  TinyTraining two(spec);
  config = config_of("gcn");
  config.model.task = Task::kBinary;
  CHECK(passing(two, config)[0] > 0);
  check_training(two, config);

  spec = few_train();
  spec.multi_label = true;
  spec.classes = 5;
  TinyTraining many(spec);
  config.model.task = Task::kMultiLabel;
  CHECK(passing(many, config)[0] > 0);
  check_training(many, config);
}

TEST_CASE("zero rows: so they do where one file has the edges of both directions") {
  TinyDataset spec = few_train();
  spec.edges = test::with_reverse(spec.edges);
  spec.edge_weights = false;
  spec.edge_types = spec.edge_feature_cols = 0;
  TinyTraining training(spec);
  CHECK(passing(training, config_of("gcn"))[0] > 0);
  check_training(training, config_of("gcn"));
}

TEST_CASE("zero rows: nothing is passed over where nothing is known, or it doesn't pay") {
  TinyTraining training(few_train());
  RunConfig config = config_of("gcn");
  CHECK(passing(training, config) == std::vector<int>{1, 0});
  config.rewrites = "-zeros";
  CHECK(passing(training, config) == std::vector<int>{0, 0});
  config = config_of("sgc");  // its propagations are done once a run
  CHECK(passing(training, config) == std::vector<int>{0, 0});
  TinyDataset spec = few_train();
  spec.train_every = 1;  // 40 % train
  TinyTraining many(spec);
  CHECK(passing(many, config_of("gcn")) == std::vector<int>{0, 0});
}

TEST_CASE("zero rows: a sum of a gradient and of anything else isn't known to be zero") {
  TensorGraph graph(DType::kF64);
  const TensorId x = graph.input("x", 3, DType::kF64);
  const TensorId splits = graph.input("splits", 1, DType::kU8);
  const TensorId labels = graph.input("labels", 1, DType::kI32);
  const TensorId dx = graph.apply("softmax_cross_entropy_gradient", {x, labels, splits});
  const TensorId w = graph.parameter("w", 3, 4);
  const TensorId product = graph.apply("matmul", {dx, w});
  const TensorId masked = graph.apply("mul", {x, dx});
  const TensorId sum = graph.apply("add", {dx, masked});
  const TensorId with_x = graph.apply("add", {dx, x});
  const TensorId shifted = graph.apply("affine", {dx}, {.value = 2, .shift = 1});
  const TensorId scaled = graph.apply("affine", {dx}, {.value = 2});
  const TensorId gathered = graph.gather("sum", {graph.destination(product)}, Direction::kOut);
  const std::vector<TensorId> zero = zero_outside_train(graph);
  const auto of = [&](TensorId id) { return zero[static_cast<std::size_t>(id)]; };
  for (const TensorId id : {dx, product, masked, sum, scaled}) CHECK(of(id) == splits);
  for (const TensorId id : {x, with_x, shifted, gathered}) CHECK(of(id) == -1);
}

namespace {

using testing::Dense;

// Extents and attributes with which every row operator can be called.
std::int64_t extent(char letter) {
  switch (letter) {
    case 'n':
      return 12;
    case 'd':
    case 'e':
      return 8;
    case 'h':
      return 2;
    case 't':
    case 'w':
      return 24;
    case 's':
      return 16;
    case 'k':
    case 'm':
    case 'c':
      return 4;
    case 'b':
      return 1;
    default:
      return letter - '0';
  }
}

Dense operand(const OperandSpec& spec, unsigned seed) {
  Dense dense = testing::random_dense(extent(spec.rows), extent(spec.cols), seed);
  for (std::size_t i = 0; i < dense.values.size(); ++i) {
    if (spec.type == OperandType::kU8) dense.values[i] = static_cast<double>(i % 2);
    if (spec.type == OperandType::kI32) dense.values[i] = static_cast<double>(i % 3);
    if (spec.type == OperandType::kI64) dense.values[i] = static_cast<double>(i % 5);
    if (spec.type == OperandType::kF64) dense.values[i] = 20 + static_cast<double>(i);
    if (spec.name == "splits") dense.values[i] = static_cast<double>(i % 4);
  }
  return dense;
}

Attributes attributes_for(std::string_view op) {
  Attributes attributes{.value = 0.3, .count = 7, .key = 2, .heads = 2, .begin = 1};
  if (op == "columns") attributes.cols = extent('m');
  if (op == "pick_type" || op == "head_broadcast" || op == "place_columns") {
    attributes.cols = extent('d');
  }
  if (op == "place_type") attributes.cols = extent('w');
  return attributes;
}

// Zeroes the odd rows of these operands; the output's must be too.
void check_rows(const RowKernelSpec& spec, const std::vector<bool>& zeroed) {
  std::vector<Dense> inputs;
  for (const OperandSpec& input : spec.inputs) {
    if (input.name.empty()) break;
    Dense dense = operand(input, static_cast<unsigned>(inputs.size()) + 1);
    for (std::int64_t row = 1; zeroed[inputs.size()] && row < dense.rows; row += 2) {
      for (std::int64_t c = 0; c < dense.cols; ++c) dense(row, c) = 0;
    }
    inputs.push_back(std::move(dense));
  }
  const Dense output = testing::run_kernel<double>(
      spec.name, inputs, Dense(extent(spec.output.rows), extent(spec.output.cols)),
      {.attributes = attributes_for(spec.name)});
  double others = 0;
  for (std::int64_t row = 0; row < output.rows; ++row) {
    for (std::int64_t c = 0; c < output.cols; ++c) {
      const bool train = find_operator(spec.name).zero_rows == ZeroRows::kTrain;
      const bool zero = train ? row % 4 != 1 : row % 2 == 1;
      if (zero) CHECK(output(row, c) == 0);
      if (!zero) others += std::abs(output(row, c));
    }
  }
  CHECK(others > 0);
}

}  // namespace

TEST_CASE("zero rows: what the operator table says of every operator is what its kernel does") {
  int checked = 0;
  for (const RowKernelSpec& spec : row_kernel_specs()) {
    INFO(spec.name);
    const ZeroRows rule = find_operator(spec.name).zero_rows;
    if (spec.reduces) CHECK(rule == ZeroRows::kNone);
    if (rule == ZeroRows::kNone) continue;
    ++checked;
    const std::vector<bool> none(spec.inputs.size()), all(spec.inputs.size(), true);
    std::vector<bool> first = none, second = none;
    first[0] = second[1] = true;
    if (rule == ZeroRows::kTrain) check_rows(spec, none);
    if (rule == ZeroRows::kAll) check_rows(spec, all);
    if (rule == ZeroRows::kFirst || rule == ZeroRows::kFirstUnshifted) check_rows(spec, first);
    if (rule != ZeroRows::kEither) continue;
    check_rows(spec, first);
    check_rows(spec, second);
  }
  CHECK(checked > 30);
}
