#include "sched/run/self_loops.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <stdexcept>

#include "kernels/device/cpu_backend.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

using namespace ooc;

namespace {

// Degrees of vertices of which every third one, and the last, have self loops.
class Degrees final : public TensorStore {
 public:
  explicit Degrees(std::int64_t rows) : layout_{rows, kDegreeColumns, 128} {}

  static bool loops(std::int64_t vertex, std::int64_t rows) {
    return vertex % 3 == 0 || vertex + 1 == rows;
  }
  DType dtype() const override { return DType::kI32; }
  const TensorLayout& layout() const override { return layout_; }
  std::int64_t io_chunk_blocks() const override { return 2; }
  void read(std::int64_t io_chunk, std::int64_t slice, std::byte* data,
            BlockCompletion done) const override {
    CHECK(slice == 0);
    ++reads;
    if (io_chunk == broken) {
      done(std::make_exception_ptr(IoError("unreadable", "degrees", "look at the disk")));
      return;
    }
    const std::int64_t first = io_chunk * 256,
                       count = std::min<std::int64_t>(256, layout_.rows - first);
    auto* rows = reinterpret_cast<std::int32_t*>(data);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t row[] = {7, 9, loops(first + i, layout_.rows) ? 2 : 0};
      std::memcpy(rows + i * kDegreeColumns, row, sizeof row);
    }
    done(nullptr);
  }
  void write(std::int64_t, std::int64_t, std::byte*, std::int64_t, BlockCompletion) override {
    FAIL();
  }
  bool needs_decoding(std::int64_t io_chunk, std::int64_t) const override {
    return io_chunk % 2 == 1;
  }
  void verify_and_decode(std::int64_t io_chunk, std::int64_t, std::byte*) const override {
    CHECK(io_chunk % 2 == 1);
    ++verified;
  }

  std::int64_t broken = -1;
  mutable int reads = 0, verified = 0;

 private:
  TensorLayout layout_;
};

}  // namespace

TEST_CASE("self loops: a bit for each vertex, whatever the last unit and word hold") {
  const auto backend = make_cpu_backend();
  for (const std::int64_t rows : {1, 64, 65, 256, 257, 1024, 2600, 3000}) {
    INFO("rows " << rows);
    const Degrees degrees(rows);
    SelfLoops there({backend.get()}, &degrees);
    CHECK(there.bits(0) == nullptr);
    REQUIRE(there.read(nullptr));
    REQUIRE(there.bits(0) != nullptr);
    const auto io_chunks = static_cast<int>(ceil_div(rows, std::int64_t{256}));
    CHECK(degrees.reads == io_chunks);
    CHECK(degrees.verified == io_chunks / 2);
    std::int64_t wrong = 0;
    for (std::int64_t v = 0; v < rows; ++v) {
      const std::uint64_t word = there.bits(0)[v / 64];
      wrong += (word >> (v % 64) & 1) != (Degrees::loops(v, rows) ? 1 : 0);
    }
    CHECK(wrong == 0);
    CHECK(SelfLoops::bytes_of(rows) * 8 >= rows);
    CHECK(SelfLoops::bytes_of(rows) * 8 < rows + 64);
  }
}

TEST_CASE("self loops: what storage finds wrong passes through") {
  Degrees degrees(3000);
  degrees.broken = 7;
  const auto backend = make_cpu_backend();
  SelfLoops there({backend.get()}, &degrees);
  CHECK_THROWS_AS(there.read(nullptr), IoError);
  CHECK(there.bits(0) == nullptr);
}

TEST_CASE("self loops: reading them can be stopped") {
  const Degrees degrees(3000);
  std::atomic<bool> stop{true};
  const auto backend = make_cpu_backend();
  SelfLoops there({backend.get()}, &degrees);
  CHECK(!there.read(&stop));
  CHECK(degrees.reads == 0);
  stop = false;
  CHECK(there.read(&stop));
}
