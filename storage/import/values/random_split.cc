#include "storage/import/values/random_split.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "storage/base/counter_random.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

namespace ooc {
namespace {

constexpr std::uint64_t kSplitStream = 0x5b117;
constexpr std::array<std::string_view, 3> kNames = {"train", "valid", "test"};

[[noreturn]] void refuse_shares(const std::string& text, std::string_view why) {
  throw UsageError(fmt::format("--split {} {}", text, why), "command line",
                   "give percent of the labelled vertices for train, valid and test, as 60/20/20");
}

}  // namespace

SplitShares parse_split_shares(const std::string& text) {
  std::array<double, 3> shares = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto [stop, status] = fast_float::from_chars(at, end, shares[i]);
    const bool last = i + 1 == shares.size();
    if (status != std::errc() || (last ? stop != end : stop == end || *stop != '/')) {
      refuse_shares(text, "is not three numbers");
    }
    at = last ? stop : stop + 1;
    if (!(shares[i] >= 0 && shares[i] <= 100)) refuse_shares(text, "has a share that is none");
  }
  double sum = shares[0] + shares[1] + shares[2];
  const bool of_one = *std::max_element(shares.begin(), shares.end()) < 1;
  if (of_one && sum > 1 + 1e-9) refuse_shares(text, fmt::format("adds up to {:.4g}", sum));
  if (sum <= 1 + 1e-9 && text.find('.') != std::string::npos) {  // 0.6/0.2/0.2
    for (double& share : shares) share *= 100;
    sum *= 100;
  }
  if (sum > 100 + 1e-9) refuse_shares(text, fmt::format("is {} percent", sum));
  if (shares[0] == 0) refuse_shares(text, "leaves nothing to train on");
  if (sum <= 1 + 1e-9) refuse_shares(text, "is a percent in all");
  return {shares[0], shares[1], shares[2]};
}

std::vector<std::uint8_t> random_split(std::span<const std::int32_t> labels,
                                       const SplitShares& shares, std::uint64_t seed) {
  const std::int64_t labelled =
      std::count_if(labels.begin(), labels.end(), [](std::int32_t label) { return label >= 0; });
  std::array<std::int64_t, 3> left = {};  // vertices each split still takes
  double share = 0;
  std::int64_t dealt = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double own = i == 0 ? shares.train : i == 1 ? shares.valid : shares.test;
    share += own;
    const auto upto = static_cast<std::int64_t>(
        std::floor(static_cast<double>(labelled) * std::min(share, 100.0) / 100 + 0.5));
    left[i] = std::min(upto, labelled) - dealt;
    dealt += left[i];
    if (own > 0 && left[i] == 0) {
      throw DataError(fmt::format("the {} split would be empty", kNames[i]),
                      fmt::format("{} percent of {} labelled vertices", own, labelled),
                      labelled == 0 ? "give labels" : "give it a larger share with --split");
    }
  }
  // Each labelled vertex in turn takes one of the places left, so the counts come out exactly.
  const CounterRandom random(seed, kSplitStream);
  std::vector<std::uint8_t> splits(labels.size(), static_cast<std::uint8_t>(Split::kNone));
  std::int64_t places = labelled;
  for (std::size_t vertex = 0; vertex < labels.size(); ++vertex) {
    if (labels[vertex] < 0) continue;
    std::int64_t place = random.below(vertex, places--);
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (place < left[i]) {
        --left[i];
        splits[vertex] = static_cast<std::uint8_t>(i + 1);
        break;
      }
      place -= left[i];
    }
  }
  return splits;
}

}  // namespace ooc
