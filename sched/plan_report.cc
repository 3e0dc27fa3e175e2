// The plan as JSON (plan.json) and as a table (--plan).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sched/plan.h"
#include "storage/byte_size.h"

namespace ooc {
namespace {

const std::string& value_name(const Program& program, ValueId id) {
  return program.values[static_cast<std::size_t>(id)].name;
}

std::string step_names(const Pass& pass) {
  const auto join = [](const std::vector<RowStep>& steps) {
    std::vector<std::string> names;
    for (const RowStep& step : steps) names.push_back(step.op);
    return fmt::format("{}", fmt::join(names, " "));
  };
  const std::string rows = join(pass.steps);
  if (pass.propagation.steps.empty()) return rows;
  return fmt::format("[{}] {}", join(pass.propagation.steps), rows);
}

std::string describe(const Program& program, const Pass& pass) {
  if (pass.kind == PassKind::kRow) return "row";
  const Propagation& work = pass.propagation;
  std::string names;
  for (const EdgeFold& fold : work.folds) {
    if (!names.empty()) names += ", ";
    names += value_name(program, fold.accumulators[0]);
  }
  return fmt::format("propagate {}{} -> {}",
                     work.direction == Direction::kIn ? "edges.in" : "edges.out",
                     work.loops ? " with loops" : "", names);
}

constexpr const char* load_name(EdgeLoad load) {
  switch (load) {
    case EdgeLoad::kStreamed:
      return "streamed";
    case EdgeLoad::kResident:
      return "resident";
    case EdgeLoad::kWeights:
      return "weights";
    case EdgeLoad::kTypes:
      return "types";
    case EdgeLoad::kFeatures:
      return "features";
    case EdgeLoad::kParallelIndex:
      return "parallel index";
  }
  return "";
}

constexpr const char* fold_name(Fold fold) {
  switch (fold) {
    case Fold::kSum:
      return "sum";
    case Fold::kMax:
      return "max";
    case Fold::kSoftmax:
      return "softmax";
  }
  return "";
}

void describe_edges(const Program& program, const Pass& pass, nlohmann::ordered_json& entry) {
  const Propagation& work = pass.propagation;
  entry["direction"] = work.direction == Direction::kIn ? "in" : "out";
  entry["loops"] = work.loops;
  entry["span_group"] = pass.span_group;
  entry["batch_edges"] = pass.batch_edges;
  entry["edge_scratch_bytes"] = pass.edge_scratch_bytes;
  entry["slice_local"] = pass.slice_local_cols > 0;
  entry["edge_inputs"] = nlohmann::ordered_json::array();
  for (const EdgeInput& input : work.inputs) {
    const ValueId named = input.vertex >= 0 ? input.vertex : input.edge;
    entry["edge_inputs"].push_back(
        {{"load", load_name(input.load)}, {"value", value_name(program, named)}});
  }
  entry["edge_steps"] = nlohmann::ordered_json::array();
  for (const RowStep& step : work.steps) entry["edge_steps"].push_back(step.op);
  entry["folds"] = nlohmann::ordered_json::array();
  for (const EdgeFold& fold : work.folds) {
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const ValueId id : fold.accumulators) names.push_back(value_name(program, id));
    entry["folds"].push_back({{"fold", fold_name(fold.fold)}, {"accumulators", names}});
  }
}

}  // namespace

nlohmann::ordered_json plan_to_json(const Program& program, const Plan& plan) {
  nlohmann::ordered_json json;
  json["strategy"] = plan.strategy;
  json["arena_bytes"] = plan.arena_bytes;
  json["scratch_bytes_per_worker"] = plan.scratch_bytes;
  json["bytes_read"] = plan.bytes_read;
  json["bytes_written"] = 0;
  json["bytes_moved"] = plan.bytes_moved;
  for (const Pass& pass : plan.passes) {
    nlohmann::ordered_json entry;
    entry["name"] = pass.name;
    entry["kind"] = pass.kind == PassKind::kRow ? "row" : "propagate";
    if (pass.kind == PassKind::kPropagate) describe_edges(program, pass, entry);
    entry["steps"] = nlohmann::ordered_json::array();
    for (const RowStep& step : pass.steps) entry["steps"].push_back(step.op);
    entry["group_rows"] = pass.group_rows;
    entry["scratch_bytes"] = pass.scratch_bytes;
    entry["bytes_read"] = pass.bytes_read;
    entry["bytes_moved"] = pass.bytes_moved;
    json["passes"].push_back(std::move(entry));
  }
  for (const Residence& tensor : plan.residences) {
    json["resident"].push_back({{"value", value_name(program, tensor.value)},
                                {"offset", tensor.offset},
                                {"bytes", tensor.bytes},
                                {"first_pass", tensor.first_pass + 1},
                                {"last_pass", tensor.last_pass + 1}});
  }
  return json;
}

std::string plan_to_text(const Program& program, const Plan& plan) {
  std::string text =
      fmt::format("{}: strategy {}, {} passes\n", program.name, plan.strategy, plan.passes.size());
  for (std::size_t i = 0; i < plan.passes.size(); ++i) {
    const Pass& pass = plan.passes[i];
    text += fmt::format("  {:>2} {:<34} reads {:>10}  {}\n", i + 1, describe(program, pass),
                        format_byte_size(pass.bytes_read), step_names(pass));
  }
  for (const Residence& tensor : plan.residences) {
    text += fmt::format("  resident {:<24} {:>10}  passes {} to {}\n",
                        value_name(program, tensor.value), format_byte_size(tensor.bytes),
                        tensor.first_pass + 1, tensor.last_pass + 1);
  }
  text += fmt::format("  memory {} resident, {} scratch a worker; {} read a run\n",
                      format_byte_size(plan.arena_bytes), format_byte_size(plan.scratch_bytes),
                      format_byte_size(plan.bytes_read));
  return text;
}

}  // namespace ooc
