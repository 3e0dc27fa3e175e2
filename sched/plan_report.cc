// The plan as JSON (plan.json) and as a table (--plan).
#include <fmt/format.h>

#include "sched/plan.h"
#include "storage/byte_size.h"

namespace ooc {
namespace {

const std::string& value_name(const Program& program, ValueId id) {
  return program.values[static_cast<std::size_t>(id)].name;
}

std::string step_names(const Pass& pass) {
  std::string names;
  for (const RowStep& step : pass.steps) {
    if (!names.empty()) names += ' ';
    names += step.op;
  }
  return names;
}

std::string describe(const Program& program, const Pass& pass) {
  if (pass.kind == PassKind::kRow) return "row";
  return fmt::format("propagate {} ({})",
                     pass.propagation.direction == Direction::kIn ? "edges.in" : "edges.out",
                     value_name(program, pass.propagation.source));
}

}  // namespace

nlohmann::ordered_json plan_to_json(const Program& program, const Plan& plan) {
  nlohmann::ordered_json json;
  json["strategy"] = plan.strategy;
  json["arena_bytes"] = plan.arena_bytes;
  json["scratch_bytes_per_worker"] = plan.scratch_bytes;
  json["bytes_read"] = plan.bytes_read;
  json["bytes_written"] = 0;
  for (const Pass& pass : plan.passes) {
    nlohmann::ordered_json entry;
    entry["name"] = pass.name;
    entry["kind"] = pass.kind == PassKind::kRow ? "row" : "propagate";
    if (pass.kind == PassKind::kPropagate) {
      entry["direction"] = pass.propagation.direction == Direction::kIn ? "in" : "out";
      entry["source"] = value_name(program, pass.propagation.source);
      entry["accumulator"] = value_name(program, pass.propagation.accumulator);
      entry["span_group"] = pass.span_group;
    }
    entry["steps"] = nlohmann::ordered_json::array();
    for (const RowStep& step : pass.steps) entry["steps"].push_back(step.op);
    entry["group_rows"] = pass.group_rows;
    entry["scratch_bytes"] = pass.scratch_bytes;
    entry["bytes_read"] = pass.bytes_read;
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
