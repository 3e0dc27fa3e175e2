// Batches with rows of inputs of several types, which tests draw and packed rows are compared with.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "sched/sampling/packed_rows.h"
#include "storage/base/half.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/memory_tensor.h"
#include "tests/support/random_graph.h"

namespace ooc::test {

constexpr std::int64_t kVertices = 1500, kBlockRows = 32;

// Rows that lie in memory, as those of a mapped file do.
class MappedTensor final : public TensorStore {
 public:
  explicit MappedTensor(const TensorStore& base) : base_(base), rows_(end()) {
    BlockWait wait;
    for (std::int64_t slice = 0; slice < layout().slice_count(); ++slice) {
      for (std::int64_t chunk = 0; chunk < count(); ++chunk) {
        base_.read(chunk, slice, rows_.data() + offset(chunk, slice), wait.completion());
      }
    }
    wait.wait();
  }
  mutable std::atomic<std::int64_t> released{0};

  DType dtype() const override { return base_.dtype(); }
  const TensorLayout& layout() const override { return base_.layout(); }
  std::int64_t io_chunk_blocks() const override { return base_.io_chunk_blocks(); }
  std::byte* mapped() const override { return rows_.data(); }
  void release(std::int64_t, std::int64_t) const override { ++released; }
  void read(std::int64_t chunk, std::int64_t slice, std::byte* at,
            BlockCompletion done) const override {
    OOC_CHECK(at == rows_.data() + offset(chunk, slice));
    // A completion comes from another thread.
    std::thread([done = std::move(done)] { done(nullptr); }).detach();
  }
  void write(std::int64_t, std::int64_t, std::byte*, std::int64_t, BlockCompletion) override {}
  bool needs_decoding(std::int64_t, std::int64_t) const override { return false; }
  void verify_and_decode(std::int64_t, std::int64_t, std::byte*) const override {}

 private:
  std::int64_t count() const { return ceil_div(layout().block_count(), io_chunk_blocks()); }
  std::size_t bytes(std::int64_t chunk, std::int64_t slice) const {
    return io_aligned(io_chunk_payload_bytes(layout(), dtype(), io_chunk_blocks(), chunk, slice));
  }
  std::size_t offset(std::int64_t chunk, std::int64_t slice) const {
    std::size_t at = 0;
    for (std::int64_t s = 0; s <= slice; ++s) {
      for (std::int64_t c = 0; c < (s == slice ? chunk : count()); ++c) at += bytes(c, s);
    }
    return at;
  }
  std::size_t end() const { return offset(count(), layout().slice_count() - 1); }

  const TensorStore& base_;
  AlignedBuffer rows_;
};

struct World {
  explicit World(std::int64_t batches = 12, std::uint64_t seed = 1) : random(seed) {
    const auto layout = [](std::int64_t cols) { return TensorLayout{kVertices, cols, kBlockRows}; };
    add<float>("features", layout(70), DType::kF32, [](float x) { return x; });
    add<Half>("fp16", layout(64), DType::kF32, [](float x) { return narrowed<Half>(x); });
    add<BFloat16>("bf16", layout(9), DType::kF64, [](float x) { return narrowed<BFloat16>(x); });
    add<std::int32_t>("degrees", layout(3), DType::kI32, [](float x) { return int(x * 99); });
    add<std::int64_t>("ids", layout(1), DType::kI64, [](float x) { return std::int64_t(x * 1e9); });
    add<std::uint8_t>("splits", layout(1), DType::kU8, [](float x) { return int(x * 3) & 3; });
    add<std::uint8_t>("labels", layout(13), DType::kU8, [](float x) { return int(x * 7) & 1; });
    draw(batches);
  }

  // Other batches, of the rows of another one, which outlives it.
  World(std::int64_t batches, std::uint64_t seed, const World& rows)
      : random(seed), inputs(rows.inputs), expect(rows.expect) {
    draw(batches);
  }

  template <class T>
  static T narrowed(float x) {
    T out;
    narrow(&x, DTypeOf<T>::value, &out, 1);
    return out;
  }
  template <class T, class Make>
  void add(const std::string& name, const TensorLayout& layout, DType dtype, Make make) {
    auto tensor = std::make_unique<MemoryTensor<T>>(layout);
    std::normal_distribution<float> normal;
    for (std::int64_t row = 0; row < layout.rows; ++row) {
      for (std::int64_t col = 0; col < layout.cols; ++col) {
        tensor->at(row, col) = static_cast<T>(make(normal(random)));
      }
    }
    inputs.push_back({name, &tensor->store(memory), dtype});
    expect.push_back([of = tensor.get(), dtype](std::int64_t row, std::int64_t col) {
      std::vector<std::byte> bytes(dtype_bytes(dtype));
      if (DTypeOf<T>::value == dtype) {
        std::memcpy(bytes.data(), &of->at(row, col), bytes.size());
      } else {
        widen(DTypeOf<T>::value, &of->at(row, col), dtype, bytes.data(), 1);
      }
      return bytes;
    });
    tensors.push_back(std::move(tensor));
  }

  // Of twelve blocks four are asked for by nobody; of the others low rows are asked for most.
  void draw(std::int64_t batches) {
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      std::vector<std::int64_t> of;
      for (std::int64_t v = 0; v < kVertices; ++v) {
        const auto likely = static_cast<std::uint64_t>(90 / (1 + v % kBlockRows));
        if (v / kBlockRows % 12 < 8 && random() % 100 < likely + 8) of.push_back(v);
      }
      std::shuffle(of.begin(), of.end(), random);
      batch_rows.push_back(static_cast<std::int64_t>(of.size()));
      vertices.push_back(std::move(of));
    }
    fields.emplace(kVertices, batches, kVertices);
    words = std::make_unique<SortedRuns>(files, "/words", 0, 4000);
    std::vector<Records> runs(5);
    for (std::size_t batch = 0; batch < vertices.size(); ++batch) {
      for (std::size_t i = 0; i < vertices[batch].size(); ++i) {
        const auto vertex = static_cast<std::uint64_t>(vertices[batch][i]);
        runs[random() % runs.size()].keys.push_back(fields->key(vertex, batch, i));
      }
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      sort_records(runs[i], 0);
      words->write(i, std::move(runs[i]));
    }
    words->finish();
  }

  RowRequests requests() const { return {*words, *fields, batch_rows}; }
  std::size_t record_bytes() const { return RowRecord(inputs).bytes(); }
  HotRows& hot(std::int64_t bytes) { return hot(bytes, record_bytes()); }
  HotRows& hot(std::int64_t bytes, std::size_t record) {
    return *hot_rows.emplace_back(std::make_unique<HotRows>(kVertices, record, bytes));
  }
  PackedRowsOptions options() const {
    PackedRowsOptions of;
    of.scratch = "/";
    of.places_path = "/places";
    of.places_bytes = 20000;
    of.write_bytes = 1;
    of.input_slots = 2;
    of.words_at_once = 100;
    of.run_places = 700;
    return of;
  }

  // All rows of the batch, or the first so many of every other input.
  void check(const PackedRows& rows, ComingRows& coming, std::int64_t batch,
             std::int64_t some = -1) const {
    std::vector<RowOutput> outputs;
    std::vector<std::unique_ptr<AlignedBuffer>> buffers;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::int64_t all = batch_rows[static_cast<std::size_t>(batch)];
      const std::int64_t count = some >= 0 && i % 2 == 0 ? some : all;
      const auto bytes = static_cast<std::size_t>(row_output_bytes(inputs[i], count));
      // Now and then less aligned than it might be.
      buffers.push_back(std::make_unique<AlignedBuffer>(bytes + 9));
      const std::int64_t offset = batch % 4 == 3 ? 8 : 0;
      outputs.push_back(place_row_output(inputs[i], count, buffers.back()->data() + offset));
    }
    rows.assemble(coming, outputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(row_output_bytes(inputs[i], outputs[i].rows));
      REQUIRE(buffers[i]->data()[bytes + 8] == std::byte{0xee});
      check(i, outputs[i], batch);
    }
  }
  void check(std::size_t input, const RowOutput& output, std::int64_t batch) const {
    const TensorLayout& layout = inputs[input].store->layout();
    const std::size_t element = dtype_bytes(inputs[input].dtype);
    bool same = true;
    for (std::int64_t row = 0; row < output.rows; ++row) {
      const std::int64_t vertex =
          vertices[static_cast<std::size_t>(batch)][static_cast<std::size_t>(row)];
      for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
        const std::byte* at = output.place.slice(slice, layout.slice_count()) +
                              static_cast<std::size_t>(row * layout.slice_stride(slice)) * element;
        for (std::int64_t col = 0; col < layout.slice_stride(slice); ++col, at += element) {
          const bool padding = col >= layout.slice_cols(slice);
          const auto wanted = padding ? std::vector<std::byte>(element)
                                      : expect[input](vertex, slice * kSliceWidth + col);
          same &= std::memcmp(at, wanted.data(), element) == 0;
        }
      }
    }
    INFO(inputs[input].name << " of batch " << batch);
    REQUIRE(same);
  }
  void check_all(const PackedRows& rows) const {
    ComingRows coming[2];
    const auto batches = static_cast<std::int64_t>(batch_rows.size());
    rows.read(0, coming[0]);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      if (batch + 1 < batches) rows.read(batch + 1, coming[(batch + 1) % 2]);
      check(rows, coming[batch % 2], batch);
      check(rows, coming[batch % 2], batch, batch % 3);
    }
  }

  SplitMix random;
  MemoryFileSystem files;
  MemoryBlockIo memory{files};
  FaultyBlockIo io{memory};
  std::vector<std::unique_ptr<AnyMemoryTensor>> tensors;
  std::vector<RowInput> inputs;
  std::vector<std::function<std::vector<std::byte>(std::int64_t, std::int64_t)>> expect;
  std::vector<std::vector<std::int64_t>> vertices;  // by batch, by number
  std::vector<std::int64_t> batch_rows;
  std::optional<KeyFields> fields;
  std::unique_ptr<SortedRuns> words;
  std::vector<std::unique_ptr<HotRows>> hot_rows;
};

}  // namespace ooc::test
