// Replays seeds, what fuzzing found before (corpus/<target>/) and seeded mutations of both.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/targets.h"

namespace ooc::fuzz {
namespace {

std::vector<std::string> corpus_of(const Target& target) {
  std::vector<std::string> inputs = target.seeds();
  const std::filesystem::path directory = std::filesystem::path(OOC_FUZZ_CORPUS) / target.name;
  std::vector<std::filesystem::path> found;
  if (std::filesystem::exists(directory)) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  for (const auto& path : found) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Most files are mostly padding: changes go to bytes that are none, seven times out of eight.
std::size_t place_in(const std::string& bytes, std::mt19937& random) {
  std::size_t at = random() % bytes.size();
  for (int i = 0; i < 64 && bytes[at] == '\0' && random() % 8 != 0; ++i) {
    at = random() % bytes.size();
  }
  return at;
}

void mutate(std::string& bytes, std::mt19937& random) {
  static const std::vector<std::string> kWords = {
      "-1",
      "0",
      "1",
      "9",
      "18446744073709551615",
      "9223372036854775807",
      "1e308",
      "nan",
      "\"",
      ",",
      "\n",
      "#",
      "[",
      "{",
      "(",
      std::string(8, '\0'),
      std::string(8, '\xff'),
      std::string("\0\0\0\0\0\0\0\x80", 8),
      std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)};
  if (bytes.empty()) bytes = "0";
  const std::size_t at = place_in(bytes, random);
  const std::string& word = kWords[random() % kWords.size()];
  switch (random() % 6) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 1:
      bytes[at] = static_cast<char>(random());
      break;
    case 2:
      bytes.insert(at, word);
      break;
    case 3:
      bytes.replace(at, word.size(), word);
      break;
    case 4:
      bytes.erase(at, 1 + random() % 16);
      break;
    default:
      bytes.insert(at, bytes.substr(random() % bytes.size(), 1 + random() % 64));
      break;
  }
  if (random() % 64 == 0) bytes.resize(random() % (bytes.size() + 1));
}

void replay(const Target& target) {
  const std::vector<std::string> inputs = corpus_of(target);
  const auto run = [&](const std::string& bytes) {
    REQUIRE(target.run(std::as_bytes(std::span(bytes))) == 0);
  };
  for (const std::string& input : inputs) run(input);
  const Outcomes before = outcomes();
  std::mt19937 random(20240229);
  for (int i = 0; i < target.mutations; ++i) {
    std::string bytes = inputs[random() % inputs.size()];
    for (std::uint32_t change = 0; change <= random() % 4; ++change) mutate(bytes, random);
    run(bytes);
  }
  CHECK(outcomes().refused > before.refused + target.mutations / 10 - 1);
}

TEST_CASE("fuzz: what the targets start from is well-formed") {
  for (const Target& target : targets()) {
    INFO(target.name);
    for (const std::string& seed : target.seeds()) {
      const std::int64_t before = outcomes().read;
      target.run(std::as_bytes(std::span(seed)));
      CHECK(outcomes().read > before);
    }
  }
}

TEST_CASE("fuzz: no damage to an input does more than raise an error") {
  for (const Target& target : targets()) {
    DYNAMIC_SECTION(target.name) { replay(target); }
  }
}

}  // namespace
}  // namespace ooc::fuzz
