#include "engine/train/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

#include "kernels/device/simulated_device.h"
#include "sched/run/simulated_graph.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/simulate/simulated_block_io.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

// Where they lie counts for nothing.
std::vector<std::unique_ptr<DeviceBuffer>> bind_parameters(
    Executor& executor, const std::vector<const Program*>& programs, Backend& backend) {
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  for (std::size_t section = 0; section < programs.size(); ++section) {
    const std::vector<Value>& values = programs[section]->values;
    for (std::size_t id = 0; id < values.size(); ++id) {
      const Value& value = values[id];
      if (value.kind != ValueKind::kParameter) continue;
      const auto bytes =
          static_cast<std::size_t>(value.rows * value.cols) * dtype_bytes(value.dtype);
      buffers.push_back(backend.allocate(bytes));
      executor.bind_parameter(static_cast<int>(section), static_cast<ValueId>(id),
                              buffers.back()->data());
    }
  }
  return buffers;
}

// By device: with links of its own the ring goes over these.
std::vector<VirtualLinks> links_of(const RunBudget& budget) {
  const PlanOptions& plan = budget.plan;
  const auto count = static_cast<std::size_t>(plan.devices);
  std::vector<VirtualLinks> links(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (budget.topology) {
      links[i] = budget.topology->links_of(i);
    } else if (budget.link_rate != 0) {
      links[i] = links_at(budget.link_rate);
    } else {
      links[i].in = {std::make_shared<SharedLink>(plan.rates.to_device)};
      links[i].out = {std::make_shared<SharedLink>(plan.rates.from_device)};
    }
  }
  if (budget.topology || budget.link_rate != 0) return links;
  for (std::size_t i = 0; i < count; ++i) {
    const VirtualLinks& before = links[(i + count - 1) % count];
    links[i].peer = {before.out.front(), links[i].in.front()};
  }
  return links;
}

void take_reports(const Executor& executor, const Plan& plan, Simulation& simulation) {
  simulation.devices.resize(plan.devices.size());
  for (std::size_t section = 0; section < plan.sections.size(); ++section) {
    const std::vector<PassReport>& reports = executor.reports(static_cast<int>(section));
    for (std::size_t pass = 0; pass < reports.size(); ++pass) {
      const PassReport& report = reports[pass];
      simulation.passes.push_back({plan.sections[section].passes[pass].name, report});
      simulation.seconds += report.seconds;
      simulation.counters += report.counters;
      for (std::size_t i = 0; i < plan.devices.size(); ++i) {
        simulation.devices[i].counters +=
            report.devices.empty() ? report.counters : report.devices[i];
      }
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<Backend>> simulated_devices(SimulatedClock& clock,
                                                        const RunBudget& budget,
                                                        const std::string& name) {
  const PlanOptions& plan = budget.plan;
  std::vector<std::unique_ptr<Backend>> devices;
  SimulatedDeviceOptions options;
  options.host_accessible = !plan.device;
  options.shape = plan.compute;
  options.tasks_at_once = plan.compute.runs_inline ? plan.workers : 1;
  const std::vector<VirtualLinks> links = links_of(budget);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const int number = budget.topology ? budget.topology->ring()[i] : static_cast<int>(i);
    options.name = links.size() == 1 ? name : fmt::format("{} {}", name, number);
    options.links = links[i];
    devices.push_back(make_simulated_device(clock, options));
  }
  return devices;
}

namespace {

// The passes take so long to compute, divided as they are.
void set_compute(const std::vector<double>& seconds, double workers, Plan& plan) {
  std::size_t index = 0;
  for (Section& section : plan.sections) {
    for (Pass& pass : section.passes) {
      const double planned = workers * (pass.edge_seconds + pass.row_seconds);
      const double factor = planned > 0 ? seconds.at(index) / planned : 0;
      pass.edge_seconds *= factor;
      pass.row_seconds *= factor;
      ++index;
    }
  }
}

}  // namespace

std::optional<Simulation> simulate_epoch(const TrainingPlan& plan, const GraphCounts& counts,
                                         const RunBudget& budget, SimulatedClock& clock,
                                         const SimulationOptions& options) {
  const MachineRates& rates = budget.plan.rates;
  const auto at_once = static_cast<double>(budget.plan.compute.runs_inline ? plan.workers() : 1);
  SimulatedBlockIo storage(clock, {rates.storage_read, rates.storage_write, rates.storage_both});
  std::optional<TracedBlockIo> traced;
  if (options.trace != nullptr) traced.emplace(storage, *options.trace);
  BlockIo& io = traced ? static_cast<BlockIo&>(*traced) : storage;
  const auto devices = simulated_devices(clock, budget, options.name);
  Plan epoch = plan.epoch_plan();
  if (!options.compute_seconds.empty()) set_compute(options.compute_seconds, at_once, epoch);
  const SimulatedGraph graph(counts, epoch, io);
  std::vector<const Program*> programs;
  for (const ModelProgram* program : plan.programs()) programs.push_back(&program->program());
  RunResources resources{*devices.front(), io, graph.edges(), "", plan.workers()};
  for (std::size_t i = 1; i < devices.size(); ++i) resources.others.push_back(devices[i].get());
  resources.trace = options.trace;
  resources.clock = &clock;
  Executor executor(resources, programs, epoch, graph.inputs());
  const auto parameters = bind_parameters(executor, programs, *devices.front());
  for (int run = 0; run < 2; ++run) {
    for (std::size_t section = 0; section < programs.size(); ++section) {
      if (!executor.run(static_cast<int>(section), {}, options.stop)) return std::nullopt;
    }
  }
  Simulation simulation;
  take_reports(executor, epoch, simulation);
  simulation.planned_seconds = epoch.seconds;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Simulation::Device& device = simulation.devices[i];
    device.name = devices[i]->name();
    device.busy = device.counters.compute_seconds / at_once / simulation.seconds;
  }
  const auto add = [&](const std::string& link, std::int64_t bytes, double rate) {
    simulation.links.push_back(
        {link, bytes, static_cast<double>(bytes) / rate / simulation.seconds});
  };
  add("storage, reads", simulation.counters.bytes_read, rates.storage_read);
  add("storage, writes", simulation.counters.bytes_written, rates.storage_write);
  if (!budget.topology) return simulation;
  std::vector<RunCounters> moved;
  for (const Simulation::Device& device : simulation.devices) moved.push_back(device.counters);
  for (const Topology::LinkBytes& link : budget.topology->bytes_of_links(moved)) {
    add(link.link, link.bytes, link.rate);
  }
  return simulation;
}

namespace {

// Of an epoch's last passes, those of the plan; the first epoch of a process may have more. None:
// it has others.
std::vector<double> compute_of_epoch(const Json& line, const Plan& plan) {
  std::vector<std::string> names;
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) names.push_back(pass.name);
  }
  std::vector<double> seconds;
  const Json passes = line.is_object() ? line.value("passes", Json::array()) : Json::array();
  if (passes.size() < names.size()) return {};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Json& pass = passes[passes.size() - names.size() + i];
    if (pass.value("name", "") != names[i]) return {};
    seconds.push_back(pass.value("compute_seconds", 0.0));
  }
  return seconds;
}

}  // namespace

std::vector<double> measured_compute(FileSystem& files, const std::string& path, const Plan& plan) {
  const std::vector<std::byte> bytes = read_file(files, path);
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<double> last;
  for (std::string line; std::getline(lines, line);) {
    std::vector<double> seconds = compute_of_epoch(Json::parse(line, nullptr, false), plan);
    if (!seconds.empty()) last = std::move(seconds);
  }
  if (last.empty()) {
    throw DataError("no epoch in it has the passes of this plan", path,
                    "name the metrics.jsonl of a run, and give the options of that run");
  }
  if (std::accumulate(last.begin(), last.end(), 0.0) <= 0) {
    throw DataError("it says of no pass what that took to compute", path,
                    "take a run on cpu or cpu:N, or leave --durations out");
  }
  return last;
}

Json Simulation::json() const {
  Json json{{"seconds", seconds}, {"planned_seconds", planned_seconds}};
  const auto bytes = [](const RunCounters& moved) {
    return Json{{"bytes_to_device", moved.bytes_to_device},
                {"bytes_from_device", moved.bytes_from_device},
                {"bytes_between_devices", moved.bytes_between_devices}};
  };
  for (const Pass& pass : passes) {
    Json entry = bytes(pass.report.counters);
    entry["pass"] = pass.name;
    entry["seconds"] = pass.report.seconds;
    entry["bytes_read"] = pass.report.counters.bytes_read;
    entry["bytes_written"] = pass.report.counters.bytes_written;
    json["passes"].push_back(std::move(entry));
  }
  for (const Device& device : devices) {
    Json entry = bytes(device.counters);
    entry["device"] = device.name;
    entry["busy"] = device.busy;
    json["devices"].push_back(std::move(entry));
  }
  for (const Link& link : links) {
    json["links"].push_back({{"link", link.name}, {"bytes", link.bytes}, {"busy", link.busy}});
  }
  return json;
}

std::string Simulation::text() const {
  const auto size = [](std::int64_t bytes) { return format_byte_size(bytes); };
  const auto percent = [](double share) { return fmt::format("{:.0f}%", 100 * share); };
  std::string text = fmt::format("an epoch takes {:.3g} s, simulated; the plan predicts {:.3g} s\n",
                                 seconds, planned_seconds);
  text += fmt::format("  {:<44} {:>10} {:>10} {:>10} {:>11} {:>13} {:>10}\n", "pass", "reads",
                      "writes", "to device", "from device", "passed on", "time");
  const auto row = [&](const std::string& name, const RunCounters& moved, double time) {
    text += fmt::format("  {:<44} {:>10} {:>10} {:>10} {:>11} {:>13} {:>10}\n", name,
                        size(moved.bytes_read), size(moved.bytes_written),
                        size(moved.bytes_to_device), size(moved.bytes_from_device),
                        size(moved.bytes_between_devices), fmt::format("{:.3g} s", time));
  };
  for (const Pass& pass : passes) row(pass.name, pass.report.counters, pass.report.seconds);
  row("all", counters, seconds);
  text += fmt::format("  {:<44} {:>10} {:>10} {:>11} {:>13}\n", "device", "busy", "to device",
                      "from device", "passed on");
  for (const Device& device : devices) {
    text +=
        fmt::format("  {:<44} {:>10} {:>10} {:>11} {:>13}\n", device.name, percent(device.busy),
                    size(device.counters.bytes_to_device), size(device.counters.bytes_from_device),
                    size(device.counters.bytes_between_devices));
  }
  text += fmt::format("  {:<44} {:>10} {:>10}\n", "link", "busy", "bytes");
  for (const Link& link : links) {
    text +=
        fmt::format("  {:<44} {:>10} {:>10}\n", link.name, percent(link.busy), size(link.bytes));
  }
  return text;
}

}  // namespace ooc
