#include "engine/machine/machine_rates.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/machine/elapsed.h"
#include "engine/machine/rate_probes.h"
#include "kernels/dense/blas_core.h"
#include "storage/base/checksum.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

struct Rate {
  const char* name;
  double MachineRates::*member;
};
constexpr Rate kRates[] = {
    {"storage_read", &MachineRates::storage_read}, {"storage_write", &MachineRates::storage_write},
    {"storage_both", &MachineRates::storage_both}, {"gather", &MachineRates::gather},
    {"elementwise", &MachineRates::elementwise},   {"dropout", &MachineRates::dropout},
    {"packing", &MachineRates::packing},           {"multiply_adds", &MachineRates::multiply_adds},
    {"row_sums", &MachineRates::row_sums}};

constexpr Rate kLinkRates[] = {{"to_device", &MachineRates::to_device},
                               {"from_device", &MachineRates::from_device}};

// Of devices with memory of their own: a file may say them.
constexpr Rate kDeviceRates[] = {kLinkRates[0],
                                 kLinkRates[1],
                                 {"device_gather", &MachineRates::gather},
                                 {"device_elementwise", &MachineRates::elementwise},
                                 {"device_dropout", &MachineRates::dropout},
                                 {"device_multiply_adds", &MachineRates::multiply_adds},
                                 {"device_row_sums", &MachineRates::row_sums}};

// A home directory may be shared by machines.
std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string cache_path(const std::string& cache, const std::string& key) {
  return join_path(cache,
                   fmt::format("rates-{:016x}.json", checksum64(std::as_bytes(std::span(key)))));
}

std::string cache_path(const BlockIo& io, const RateOptions& options, const std::string& cache) {
  constexpr int kMethod = 11;  // counts up with every change to what the rates mean
  struct stat status {};
  ::stat(options.directory.c_str(), &status);
  // Little memory holds few requests and few rows: within a factor of two rates are the same.
  const auto memory = std::bit_width(static_cast<std::uint64_t>(options.memory_bytes));
  const std::string key = fmt::format("{} {} {} {} {} {} {} {}", kMethod, io.name(), host_name(),
                                      processor_name(), blas_core().name, options.workers, memory,
                                      static_cast<std::uint64_t>(status.st_dev));
  return cache_path(cache, key);
}

// Nothing where there are none, or none that can be read.
std::optional<MachineRates> kept_rates(FileSystem& files, const std::string& path) {
  if (!files.exists(path)) return std::nullopt;
  try {
    return read_rates(files, path);
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
    return std::nullopt;
  }
}

void write_rates(FileSystem& files, const std::string& cache, const std::string& path,
                 std::span<const Rate> which, const MachineRates& rates) {
  try {
    Json json;
    for (const Rate& rate : which) json[rate.name] = rates.*rate.member;
    const std::string text = json.dump(2) + "\n";
    files.create_directories(cache);
    write_file_atomically(files, path, std::as_bytes(std::span(text)));
  } catch (const Error& error) {
    spdlog::debug("measured rates are not kept: {}", error.what());
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

MachineRates measure(RateProbes& probes, const RateOptions& options) {
  constexpr int kRounds = 5;
  std::vector<MachineRates> rounds(kRounds);
  for (MachineRates& round : rounds) probes.measure(options.seconds / kRounds, round);
  MachineRates rates;
  for (const Rate& rate : kRates) {
    std::vector<double> values;
    for (const MachineRates& round : rounds) values.push_back(round.*rate.member);
    rates.*rate.member = median(std::move(values));
  }
  return rates;
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "";
}

MachineRates machine_rates(FileSystem& files, BlockIo& io, const RateOptions& options,
                           const std::string& cache) {
  const std::string path = cache.empty() ? "" : cache_path(io, options, cache);
  if (!cache.empty()) {
    if (const std::optional<MachineRates> kept = kept_rates(files, path)) return *kept;
  }
  RateProbes probes(io, options);
  const MachineRates rates = measure(probes, options);
  if (!cache.empty() && probes.has_storage()) write_rates(files, cache, path, kRates, rates);
  return rates;
}

namespace {

Json rates_in(FileSystem& files, const std::string& path) {
  const std::vector<std::byte> bytes = read_file(files, path);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  Json json = Json::parse(text, text + bytes.size(), nullptr, false);
  if (!json.is_object()) {
    throw DataError("not a file of rates", path, "give JSON, as kept in ~/.cache/ooc");
  }
  return json;
}

double rate_in(const Json& json, const char* name, const std::string& path) {
  const auto found = json.find(name);
  const double value = found != json.end() && found->is_number() ? found->get<double>() : 0;
  if (std::isfinite(value) && value > 0) return value;
  throw DataError(fmt::format("{} is no positive number", name), path,
                  "give what the machine does of it in a second");
}

}  // namespace

MachineRates read_rates(FileSystem& files, const std::string& path) {
  const Json json = rates_in(files, path);
  MachineRates rates;
  for (const Rate& rate : kRates) rates.*rate.member = rate_in(json, rate.name, path);
  for (const auto& [name, value] : json.items()) {
    const auto known = [&name](const Rate& rate) { return name == rate.name; };
    if (std::none_of(std::begin(kRates), std::end(kRates), known) &&
        std::none_of(std::begin(kDeviceRates), std::end(kDeviceRates), known)) {
      throw DataError(fmt::format("no rate is called {}", name), path, "leave it out");
    }
  }
  return rates;
}

void read_device_rates(FileSystem& files, const std::string& path, MachineRates& rates) {
  const Json json = rates_in(files, path);
  for (const Rate& rate : kDeviceRates) {
    if (json.contains(rate.name)) rates.*rate.member = rate_in(json, rate.name, path);
  }
}

namespace {

// The best of some copies: the first one finds a link that sleeps.
double copy_rate(Queue& queue, void* to, const void* from, std::size_t bytes) {
  constexpr int kCopies = 5;
  double rate = 0;
  for (int i = 0; i < kCopies; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    queue.copy(to, from, bytes);
    queue.wait(queue.record());
    rate = std::max(rate, static_cast<double>(bytes) / seconds_since(begin));
  }
  return rate;
}

}  // namespace

void measure_link(FileSystem& files, const std::string& link,
                  const std::function<std::unique_ptr<Backend>()>& open, const std::string& cache,
                  MachineRates& rates) {
  constexpr std::size_t kBytes = 64 << 20;
  constexpr int kMethod = 1;  // counts up with every change to what the rates mean
  const std::string path =
      cache.empty() ? ""
                    : cache_path(cache, fmt::format("link {} {} {}", kMethod, host_name(), link));
  MachineRates found;
  found.to_device = found.from_device = 0;
  const auto take = [&] {
    rates.to_device = found.to_device;
    rates.from_device = found.from_device;
  };
  try {
    if (!cache.empty() && files.exists(path)) read_device_rates(files, path, found);
    if (found.to_device > 0 && found.from_device > 0) return take();
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
  try {
    const std::unique_ptr<Backend> device = open();
    const auto here = device->allocate_pinned(kBytes, "measuring a link");
    const auto there = device->allocate(kBytes);
    found.to_device = copy_rate(device->queue(QueueKind::kIn), there->data(), here->data(), kBytes);
    found.from_device =
        copy_rate(device->queue(QueueKind::kOut), here->data(), there->data(), kBytes);
  } catch (const Error& error) {
    return spdlog::debug("a link isn't measured: {}", error.what());
  }
  take();
  if (!cache.empty()) write_rates(files, cache, path, kLinkRates, rates);
}

std::string rates_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return join_path(cache, "ooc");
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? join_path(home, ".cache/ooc") : "";
}

}  // namespace ooc
