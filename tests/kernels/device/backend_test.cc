#include "kernels/device/backend.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <map>
#include <set>
#include <thread>

#include "kernels/device/virtual_device.h"
#include "storage/base/errors.h"
#include "tests/kernels/run_kernel.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/strict_device.h"

namespace ooc::testing {
namespace {

// What a child process prints to stderr before it aborts; empty if it does not abort.
std::string abort_message(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // Catch2's handler would report a failed test
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string message;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    message.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? message : "";
}

void twice(const OperatorCall& call) {
  auto* y = call.outputs[0].data<float>(0);
  const auto* x = call.inputs[0].data<float>(0);
  for (std::int64_t i = 0; i < call.outputs[0].rows; ++i) y[i] = 2 * x[i];
}

}  // namespace

namespace {

using ooc::test::make_strict_device;

std::vector<std::unique_ptr<Backend>> all_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_cpu_backend());
  backends.push_back(make_virtual_cpu_device("cpu:0", 0));
  backends.push_back(make_strict_device(1, 0));
  return backends;
}

std::vector<std::byte> read_back(Backend& backend, const DeviceBuffer& buffer) {
  std::vector<std::byte> host(buffer.bytes(), std::byte{0x55});
  Queue& queue = backend.queue(QueueKind::kCompute);
  queue.copy(host.data(), buffer.data(), host.size());
  queue.wait(queue.record());
  return host;
}

}  // namespace

TEST_CASE("backend: memory is zeroed, aligned and as large as asked") {
  for (const auto& backend : all_backends()) {
    for (const std::size_t bytes :
         {1UL, 4096UL, 4097UL, (2UL << 20) - 1, 2UL << 20, (5UL << 20) + 3}) {
      const auto buffer = backend->allocate(bytes);
      REQUIRE(buffer->bytes() == bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % 4096 == 0);
      CHECK(read_back(*backend, *buffer) == std::vector<std::byte>(bytes));
      const std::vector<std::byte> ones(bytes, std::byte{0xff});
      Queue& queue = backend->queue(QueueKind::kCompute);
      queue.copy(buffer->data(), ones.data(), bytes);
      CHECK(read_back(*backend, *buffer) == ones);
      queue.zero(buffer->data(), bytes);
      CHECK(read_back(*backend, *buffer) == std::vector<std::byte>(bytes));
    }
    CHECK(backend->allocate(0)->bytes() == 0);
  }
}

TEST_CASE("backend: more memory than there is is a budget error") {
  for (const auto& backend : all_backends()) {
    CHECK_THROWS_AS(backend->allocate(std::size_t{1} << 60), BudgetError);
    CHECK(backend->allocate(4096)->bytes() == 4096);
  }
}

TEST_CASE("backend: queues copy in every direction, in order, and follow each other") {
  for (const auto& backend : all_backends()) {
    const auto first = backend->allocate(8192);
    const auto second = backend->allocate(8192);
    std::vector<std::byte> host(8192);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::byte>(i * 7);
    Queue& in = backend->queue(QueueKind::kIn);
    Queue& compute = backend->queue(QueueKind::kCompute);
    Queue& out = backend->queue(QueueKind::kOut);
    for (int round = 0; round < 20; ++round) {
      std::vector<std::byte> back(8192);
      in.copy(first->data(), host.data(), 8192);
      compute.follow(in.record());
      compute.copy(second->data(), first->data(), 8192);
      compute.zero(first->data(), 8192);
      out.follow(compute.record());
      const Ticket begun = out.record();
      out.copy(back.data(), second->data(), 8192);
      const Ticket end = out.record();
      out.wait(end);
      out.wait(begun);
      CHECK(back == host);
      CHECK(read_back(*backend, *first) == std::vector<std::byte>(8192));
    }
  }
}

TEST_CASE("backend: many threads copy at once, each sees its own copies in order") {
  for (const auto& backend : all_backends()) {
    constexpr std::size_t kBytes = 64 << 10;
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const auto buffer = backend->allocate(kBytes);
        std::vector<std::byte> host(kBytes), back(kBytes);
        Queue& queue = backend->queue(t % 2 == 0 ? QueueKind::kIn : QueueKind::kOut);
        for (int round = 0; round < 20; ++round) {
          std::fill(host.begin(), host.end(), static_cast<std::byte>(16 * t + round));
          queue.copy(buffer->data(), host.data(), kBytes);
          queue.copy(back.data(), buffer->data(), kBytes);
          queue.wait(queue.record());
          right += back == host;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(right == 80);
  }
}

TEST_CASE("backend: the CPU's memory is the host's, a virtual device's is its own and limited") {
  const auto cpu = make_cpu_backend();
  CHECK(cpu->name() == "cpu");
  CHECK(cpu->host_accessible());
  const auto in_host_memory = cpu->allocate(1 << 20);
  CHECK(cpu->memory_peak() == 0);
  const auto device = make_virtual_cpu_device("cpu:3", 1 << 20);
  CHECK(device->name() == "cpu:3");
  CHECK(!device->host_accessible());
  auto half = device->allocate(512 << 10);
  std::string message;
  try {
    device->allocate((512 << 10) + 1024);
  } catch (const BudgetError& error) {
    message = error.what();
  }
  CHECK(message ==
        "no room for a buffer of 513 KiB in the device's memory: 512 KiB of 1 MiB are "
        "free, cpu:3; raise --device-memory");
  const auto rest = device->allocate(512 << 10);
  CHECK_THROWS_AS(device->allocate(1), BudgetError);
  half.reset();
  CHECK(device->allocate(512 << 10)->bytes() == 512 << 10);
  CHECK(device->memory_peak() == 1 << 20);
}

TEST_CASE("backend: a link that is held to a rate takes its time, each way by itself") {
  constexpr std::int64_t kRate = 64 << 20, kBytes = 2 << 20;
  const auto device = make_virtual_cpu_device("cpu:1", 0, links_at(kRate));
  const auto buffer = device->allocate(2 * kBytes);
  std::vector<std::byte> to(kBytes, std::byte{3}), from(kBytes);
  for (const QueueKind kind : {QueueKind::kIn, QueueKind::kOut}) {
    const auto begin = std::chrono::steady_clock::now();
    Queue& queue = device->queue(kind);
    queue.copy(buffer->data(), to.data(), kBytes);
    queue.copy(from.data(), buffer->data(), kBytes);
    queue.wait(queue.record());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    CHECK(took.count() >= 2.0 * kBytes / kRate);
    CHECK(from == to);
  }
}

TEST_CASE("backend: every built-in operator has a kernel for both scalar types") {
  std::set<std::string_view> names;
  for (const RowKernelSpec& spec : row_kernel_specs()) {
    CHECK(cpu_row_kernel(spec.name, DType::kF32) != nullptr);
    CHECK(cpu_row_kernel(spec.name, DType::kF64) != nullptr);
    CHECK(names.insert(spec.name).second);
    CHECK(&row_kernel_spec(spec.name) == &spec);
    CHECK(spec.reduces == (spec.output.rows != 'n'));
  }
}

namespace {

template <class E>
void check_row_copies(const char* op) {
  Dense values(7, 40);
  for (std::size_t i = 0; i < values.values.size(); ++i)
    values.values[i] = static_cast<double>(i % 251);
  const auto x = SlicedMatrix<E>::vertex(values);
  const auto y = SlicedMatrix<E>::vertex(Dense(7, 40));
  const OperatorCall call{{&x.view(), 1}, {&y.view(), 1}, Attributes{}, StepSeed{}};
  CHECK(check_call(row_kernel_spec(op), DType::kF32, call) == 7);
  cpu_row_kernel(op, DType::kF32)(call);
  CHECK(y.dense().values == values.values);
}

}  // namespace

TEST_CASE("backend: rows of another level are copied, of any type") {
  for (const char* op : {"first_rows", "extend_rows"}) {
    check_row_copies<float>(op);
    check_row_copies<double>(op);
    check_row_copies<std::int32_t>(op);
    check_row_copies<std::int64_t>(op);
    check_row_copies<std::uint8_t>(op);
    const auto x = SlicedMatrix<float>::vertex(Dense(5, 1));
    const auto y = SlicedMatrix<std::int32_t>::vertex(Dense(5, 1));
    CHECK(abort_message([&] {
            check_call(row_kernel_spec(op), DType::kF32,
                       {{&x.view(), 1}, {&y.view(), 1}, Attributes{}, StepSeed{}});
          }).find("wrong type of Y") != std::string::npos);
  }
}

TEST_CASE("backend: operators say what they count") {
  std::map<CountOf, std::set<std::string_view>> names;
  for (const RowKernelSpec& spec : row_kernel_specs()) names[count_of(spec.name)].insert(spec.name);
  CHECK(names[CountOf::kRows] == std::set<std::string_view>{"batch_norm", "batch_norm_gradient",
                                                            "batch_norm_gamma_gradient"});
  CHECK(
      names[CountOf::kLabels] ==
      std::set<std::string_view>{"softmax_cross_entropy_gradient", "sigmoid_cross_entropy_gradient",
                                 "sigmoid_cross_entropy_weighted_gradient", "value_loss_gradient"});
  CHECK(names[CountOf::kLabelWeights] ==
        std::set<std::string_view>{"softmax_cross_entropy_weighted_gradient"});
  CHECK(count_of("no operator") == CountOf::kNone);
}

TEST_CASE("backend: a registered kernel is found by name") {
  register_cpu_row_kernel("test_twice", twice, nullptr);
  const auto x = SlicedMatrix<float>::vertex(random_dense(5, 1, 1));
  const auto y = SlicedMatrix<float>::vertex(Dense(5, 1));
  cpu_row_kernel("test_twice",
                 DType::kF32)({{&x.view(), 1}, {&y.view(), 1}, Attributes{}, StepSeed{}});
  for (std::int64_t i = 0; i < 5; ++i) CHECK(y.dense()(i, 0) == 2 * x.dense()(i, 0));
}

TEST_CASE("backend: a row program runs group by group, through scratch, into a partial each") {
  constexpr std::int64_t kCount = 10, kCols = 40;
  const Dense x = random_dense(kCount, kCols, 7);
  const auto from = SlicedMatrix<float>::vertex(x),
             to = SlicedMatrix<float>::vertex(Dense(kCount, kCols));
  RowProgram program;
  program.group_rows = 4;
  using Place = RowProgram::Place;
  program.operands = {{.place = Place::kReduction, .rows = 1, .cols = kCols},
                      {.place = Place::kTensor, .cols = kCols},
                      {.place = Place::kScratch, .cols = kCols, .scratch = 64},
                      {.place = Place::kTensor, .cols = kCols}};
  program.steps = {{"relu", {1}, {2}, {}}, {"add", {1, 2}, {3}, {}}, {"column_sum", {2}, {0}, {}}};
  const auto backend = make_cpu_backend();
  const auto work = backend->row_work(program);
  std::vector<std::vector<float>> sums(3, std::vector<float>(kCols));
  const auto scratch_bytes =
      static_cast<std::size_t>(scratch_slice_offset(4, kCols, DType::kF32, 2));
  ooc::test::AlignedBuffer scratch(64 + scratch_bytes);
  const std::vector<SlicedRows> operands{{}, from.view().slices, {}, to.view().slices};
  std::vector<void*> partials;
  std::vector<RowGroup> groups;
  for (auto& sum : sums) partials.push_back(sum.data());
  for (std::size_t g = 0; g < 3; ++g) {
    const auto first = static_cast<std::int64_t>(g) * 4;
    groups.push_back({first, std::min<std::int64_t>(4, kCount - first), operands,
                      std::span(partials).subspan(g, 1), scratch.data()});
  }
  work->run({groups});
  const Dense y = to.dense();
  for (std::int64_t c = 0; c < kCols; ++c) {
    std::vector<float> expected(3);
    for (std::int64_t i = 0; i < kCount; ++i) {
      const auto value = static_cast<float>(x(i, c)), positive = std::max(value, 0.0f);
      CHECK(y(i, c) == static_cast<double>(value + positive));
      expected[static_cast<std::size_t>(i / 4)] += positive;
    }
    for (std::size_t g = 0; g < 3; ++g) CHECK(sums[g][static_cast<std::size_t>(c)] == expected[g]);
  }
  CHECK(to.guards_hold());
}

TEST_CASE("backend: programmers' mistakes stop with a message that names them") {
  using Catch::Contains;
  CHECK_THAT(abort_message([&] { cpu_row_kernel("matmull", DType::kF32); }),
             Contains("row kernel 'matmull' for fp32"));
  CHECK_THAT(abort_message([&] { cpu_row_kernel("matmul", DType::kI32); }),
             Contains("row kernel 'matmul' for int32"));
  CHECK_THAT(abort_message([&] { register_cpu_row_kernel("relu", twice, nullptr); }),
             Contains("there already"));
  const Dense x(3, 8);
  CHECK_THAT(abort_message([&] {
               run_kernel<float>("add", {x, Dense(3, 9)}, x);
             }),
             Contains("operator add: wrong shape of B"));
  CHECK_THAT(abort_message([&] {
               run_kernel<float>("add", {x, Dense(4, 8)}, x);
             }),
             Contains("operator add: wrong shape of B"));
  CHECK_THAT(abort_message([&] { run_kernel<float>("add", {x}, x); }),
             Contains("operator add: wrong number of inputs"));
}

TEST_CASE("backend: extents and attributes that do not fit each other stop, and say of what") {
  using Catch::Contains;
  const auto rows = [](std::int64_t cols) { return Dense(3, cols); };
  struct Case {
    const char* op;
    std::vector<Dense> inputs;
    Dense output;
    Attributes attributes;
  };
  const Case cases[] = {
      {"scale_heads", {rows(8), rows(3)}, rows(8), {}},
      {"softmax_normalize", {rows(8), rows(3)}, rows(8), {}},
      {"head_dot", {rows(8), rows(8)}, rows(4), {.heads = 2}},
      {"head_sum", {rows(8)}, rows(3), {.heads = 3}},
      {"head_broadcast", {rows(4)}, rows(8), {.cols = 12}},
      {"heads_mean", {rows(8)}, rows(4), {.heads = 4}},
      {"heads_spread", {rows(4)}, rows(8), {.heads = 4}},
      {"concat", {rows(4), rows(5)}, rows(8), {}},
      {"columns", {rows(8)}, rows(4), {.begin = 5, .cols = 4}},
      {"columns", {rows(8)}, rows(4), {.begin = -1, .cols = 4}},
      {"place_columns", {rows(4)}, rows(8), {.begin = 5, .cols = 8}},
      {"pick_type", {rows(8), rows(1)}, rows(3), {.cols = 3}},
      {"place_type", {rows(3), rows(1)}, rows(8), {.cols = 8}},
      {"gru", {rows(12), rows(12), rows(5)}, rows(5), {}},
      {"edge_dropout", {rows(8), rows(3)}, rows(8), {.heads = 3}},
      {"edge_dropout", {rows(8), rows(3)}, rows(8), {.heads = 0}},
  };
  for (const Case& wrong : cases) {
    INFO(wrong.op);
    CHECK_THAT(abort_message([&] {
                 run_kernel<float>(wrong.op, wrong.inputs, wrong.output,
                                   {.attributes = wrong.attributes});
               }),
               Contains(std::string("operator ") + wrong.op + ": wrong extents or attributes"));
  }
  Dense types = rows(1);
  types(1, 0) = 2;  // of two
  CHECK_THAT(
      abort_message([&] {
        run_kernel<float>("pick_type", {rows(8), types}, rows(4), {.attributes = {.cols = 4}});
      }),
      Contains("check failed"));
}

}  // namespace ooc::testing
