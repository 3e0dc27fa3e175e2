// Numbers parsed from text on one thread, from memory, against the bound measured in the same run:
// finding the lines alone (memchr).
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "storage/import/formats/csv.h"
#include "storage/import/formats/mtx.h"

namespace ooc::bench {
namespace {

constexpr std::size_t kTextBytes = 64 << 20;

// A text in memory as bytes of an input.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(const std::string& text) : text_(text) {}
  const std::string& name() const override { return name_; }
  std::optional<std::uint64_t> size() const override { return text_.size(); }
  bool seekable() const override { return true; }
  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = std::min(out.size(), text_.size() - offset_);
    std::memcpy(out.data(), text_.data() + offset_, count);
    offset_ += count;
    return count;
  }
  void seek(std::uint64_t offset) override { offset_ = offset; }
  std::unique_ptr<ByteSource> reopen() const override {
    return std::make_unique<TextSource>(text_);
  }

 private:
  const std::string& text_;
  std::string name_ = "text";
  std::size_t offset_ = 0;
};

using Row = void (*)(std::string& text, std::mt19937_64& random);

void edge(std::string& text, std::mt19937_64& random) {
  fmt::format_to(std::back_inserter(text), "{},{}\n", random() % 100'000'000,
                 random() % 100'000'000);
}
void quoted_edge(std::string& text, std::mt19937_64& random) {
  fmt::format_to(std::back_inserter(text), "\"{}\",\"{}\"\n", random() % 100'000'000,
                 random() % 100'000'000);
}
void blank_edge(std::string& text, std::mt19937_64& random) {
  fmt::format_to(std::back_inserter(text), "{} {}\n", 1 + random() % 100'000'000,
                 1 + random() % 100'000'000);
}
void features(std::string& text, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  for (int i = 0; i < 128; ++i) {
    fmt::format_to(std::back_inserter(text), "{}{:.6f}", i == 0 ? "" : ",", normal(random));
  }
  text += '\n';
}
void exact_features(std::string& text, std::mt19937_64& random) {  // as numpy.savetxt writes them
  std::normal_distribution<double> normal;
  for (int i = 0; i < 128; ++i) {
    fmt::format_to(std::back_inserter(text), "{}{:.18e}", i == 0 ? "" : " ", normal(random));
  }
  text += '\n';
}

std::string make_text(Row row, std::int64_t& rows) {
  std::mt19937_64 random(1);
  std::string text;
  for (rows = 0; text.size() < kTextBytes; ++rows) row(text, random);
  return text;
}

double seconds_to_find_lines(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  std::int64_t lines = 0;
  for (const char* at = text.data(); at != nullptr; ++lines) {
    const char* const end = text.data() + text.size();
    at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    if (at != nullptr) ++at;
  }
  benchmark::DoNotOptimize(lines);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
void parse(benchmark::State& state, Row row, bool matrix) {
  std::int64_t rows = 0;
  std::string text = make_text(row, rows);
  if (matrix) {
    text = fmt::format("%%MatrixMarket matrix coordinate pattern general\n{0} {0} {1}\n",
                       100'000'000, rows) +
           text;
  }
  std::vector<T> block(128 << 10);
  double lines = 1e30;
  double best = 1e30;
  for (auto _ : state) {
    lines = std::min(lines, seconds_to_find_lines(text));
    auto source = std::make_unique<TextSource>(text);
    const auto start = std::chrono::steady_clock::now();
    const auto table = matrix ? open_mtx_table(std::move(source), "")
                              : open_text_table(std::move(source), "text", {});
    std::int64_t found = 0;
    while (const std::int64_t count = table->read(std::span<T>(block))) found += count;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (found != rows) state.SkipWithError("rows were lost");
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  const auto bytes = static_cast<double>(text.size());
  state.counters["MB_per_s"] = bytes / best * 1e-6;
  state.counters["Mrows_per_s"] = static_cast<double>(rows) / best * 1e-6;
  state.counters["of_finding_lines"] = lines / best;
}

void parse_integers(benchmark::State& state, Row row, bool matrix) {
  parse<std::int64_t>(state, row, matrix);
}
void parse_floats(benchmark::State& state, Row row) { parse<float>(state, row, false); }

BENCHMARK_CAPTURE(parse_integers, edges_csv, edge, false)->UseManualTime();
BENCHMARK_CAPTURE(parse_integers, edges_quoted_csv, quoted_edge, false)->UseManualTime();
BENCHMARK_CAPTURE(parse_integers, edges_blanks_txt, blank_edge, false)->UseManualTime();
BENCHMARK_CAPTURE(parse_integers, edges_mtx, blank_edge, true)->UseManualTime();
BENCHMARK_CAPTURE(parse_floats, features_csv, features)->UseManualTime();
BENCHMARK_CAPTURE(parse_floats, features_savetxt, exact_features)->UseManualTime();

}  // namespace
}  // namespace ooc::bench
