#include <catch2/catch.hpp>
#include <vector>

#include "kernels/device/cpu_backend.h"
#include "kernels/device/cuda_backend.h"
#include "storage/base/half.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/cuda/device_copies.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::test {
namespace {

constexpr std::int64_t kRows = 70, kGroup = 16, kCols = 40, kGroups = 5;
constexpr std::int64_t kLane = 16 << 10;  // bytes of scratch

// x, stored in 16 bits, is widened; y = relu(x) is summed by column, z = x + y is written.
RowProgram program_of(DType stored) {
  using Place = RowProgram::Place;
  RowProgram program;
  program.group_rows = kGroup;
  program.operands = {{.place = Place::kReduction, .rows = 1, .cols = kCols},
                      {.place = Place::kConverted, .cols = kCols, .stored = stored, .scratch = 64},
                      {.place = Place::kScratch, .cols = kCols, .scratch = 4096},
                      {.place = Place::kTensor, .cols = kCols}};
  program.steps = {{"relu", {1}, {2}, {}}, {"add", {1, 2}, {3}, {}}, {"column_sum", {2}, {0}, {}}};
  return program;
}

std::vector<std::uint16_t> stored_rows(DType stored) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < kRows * kCols; ++i) {
    values.push_back(static_cast<float>(i * 37 % 201 - 100) / 64);
  }
  std::vector<std::uint16_t> bits(values.size());
  narrow(values.data(), stored, bits.data(), values.size());
  return bits;
}

struct Result {
  std::vector<float> z, sums;
  bool operator==(const Result&) const = default;
};

// Two slices beside each other: of 32 columns, and of 8.
template <class T>
SlicedRows slices_of(T* first) {
  auto* const bytes = reinterpret_cast<std::byte*>(first);
  return {bytes, 0, bytes + kRows * 32 * std::int64_t{sizeof(T)}};
}

void run(const RowWork& work, std::uint16_t* x, float* z, float* sums, std::byte* scratch) {
  const std::vector<SlicedRows> operands{{}, slices_of(x), {}, slices_of(z)};
  std::vector<void*> partials;
  std::vector<RowGroup> groups;
  for (std::int64_t at = 0; at < kGroups; ++at) partials.push_back(sums + at * kCols);
  for (std::int64_t at = 0; at < kGroups; ++at) {
    groups.push_back({at * kGroup, std::min(kGroup, kRows - at * kGroup), operands,
                      std::span(partials).subspan(static_cast<std::size_t>(at), 1),
                      scratch + at * kLane});
  }
  work.run({groups});
}

}  // namespace

TEST_CASE("cuda rows: a program runs group by group, with conversions, as the CPU's") {
  constexpr std::size_t kScratch = kGroups * kLane;
  for (const DType stored : {DType::kF16, DType::kBF16}) {
    std::vector<std::uint16_t> x = stored_rows(stored);
    Result expected{std::vector<float>(x.size(), 7.0f),
                    std::vector<float>(static_cast<std::size_t>(kGroups * kCols))};
    AlignedBuffer scratch(kScratch);
    const auto cpu = make_cpu_backend();
    Result found = expected;
    run(*cpu->row_work(program_of(stored)), x.data(), expected.z.data(), expected.sums.data(),
        scratch.data());
    for_each_order(2, {}, [&] {
      const auto backend = make_cuda_backend(0, 0);
      DeviceCopies copies(*backend);
      auto* const z = copies.of(found.z);
      auto* const sums = copies.of(found.sums);
      auto* const there = copies.of(std::vector<std::byte>(kScratch));
      run(*backend->row_work(program_of(stored)), copies.of(x), z, sums, there);
      Result back = found;
      copies.back(back.z, z);
      copies.back(back.sums, sums);
      CHECK((back == expected));
    });
  }
}

}  // namespace ooc::test
