// The plan as JSON (plan.json).
#include <nlohmann/json.hpp>

#include "sched/plan/report.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* role_name(UseRole role) {
  switch (role) {
    case UseRole::kStreamed:
      return "streamed";
    case UseRole::kResident:
      return "resident";
    case UseRole::kAccumulator:
      return "accumulator";
    case UseRole::kRows:
      return "rows";
    case UseRole::kOutput:
      return "output";
  }
  return "";
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

Json edges_to_json(const Program& program, const Pass& pass, const UseMemory& chunks) {
  const Propagation& work = pass.propagation;
  Json entry;
  entry["direction"] = direction_name(work.direction);
  entry["loops"] = work.loops;
  entry["part_blocks"] = pass.dst_range_blocks;
  entry["parts_at_once"] = pass.dst_ranges_at_once;
  entry["slices_at_once"] = pass.slices_at_once;
  entry["span_group"] = pass.span_group;
  entry["group_blocks"] = pass.group_blocks;
  entry["edge_slots"] = chunks.slots;
  entry["edge_ring_bytes"] = chunks.bytes;
  entry["batch_edges"] = pass.batch_edges;
  entry["edge_scratch_bytes"] = pass.edge_scratch_bytes;
  entry["slice_local"] = pass.slice_local_cols > 0;
  entry["train_neighbours_only"] = work.splits >= 0;
  entry["inputs"] = Json::array();
  for (const EdgeInput& input : work.inputs) {
    const ValueId named = input.vertex >= 0 ? input.vertex : input.edge;
    entry["inputs"].push_back(
        {{"load", load_name(input.load)}, {"value", value_name(program, named)}});
  }
  entry["steps"] = Json::array();
  for (const RowStep& step : work.steps) entry["steps"].push_back(step.op);
  entry["folds"] = Json::array();
  for (const EdgeFold& fold : work.folds) {
    Json names = Json::array();
    for (const ValueId id : fold.accumulators) names.push_back(value_name(program, id));
    entry["folds"].push_back({{"fold", fold_name(fold.fold)}, {"accumulators", names}});
  }
  return entry;
}

Json pass_to_json(const Program& program, const Plan& plan, int index, const Pass& pass) {
  const DevicePlan& device = plan.devices[0];
  const PassMemory& memory = device.passes[static_cast<std::size_t>(index)];
  Json entry;
  entry["name"] = pass.name;
  entry["kind"] = pass.kind == PassKind::kRow ? "row" : "propagate";
  if (pass.kind == PassKind::kPropagate)
    entry["edges"] = edges_to_json(program, pass, memory.edges);
  entry["steps"] = Json::array();
  for (const RowStep& step : pass.steps) entry["steps"].push_back(step.op);
  if (!pass.skipped.empty()) entry["spared"] = pass.skipped;
  entry["uses"] = Json::array();
  for (std::size_t i = 0; i < pass.uses.size(); ++i) {
    entry["uses"].push_back({{"role", role_name(pass.uses[i].role)},
                             {"value", value_name(program, pass.uses[i].value)},
                             {"offset", memory.uses[i].offset},
                             {"bytes", memory.uses[i].bytes},
                             {"slots", memory.uses[i].slots}});
  }
  entry["group_rows"] = pass.group_rows;
  entry["step_rows"] = pass.step_rows;
  if (pass.lanes > 0) {
    entry["lanes"] = pass.lanes;
    entry["batch_steps"] = pass.batch_steps;
    entry["launches"] = pass.launches;
  }
  entry["scratch_bytes"] = pass.scratch_bytes;
  entry["worker_scratch_bytes"] = memory.worker_scratch.bytes;
  entry["memory_bytes"] = memory_of(device, index);
  if (plan.host) {
    entry["host_memory_bytes"] = host_memory_of(plan, index);
    entry["bytes_to_device"] = pass.bytes_to_device;
    entry["bytes_from_device"] = pass.bytes_from_device;
    if (plan.devices.size() > 1) entry["bytes_between_devices"] = pass.bytes_between_devices;
  }
  entry["bytes_read"] = pass.bytes_read;
  entry["bytes_written"] = pass.bytes_written;
  entry["bytes_moved"] = pass.bytes_moved;
  entry["multiply_adds"] = pass.multiply_adds;
  entry["predicted_transfer_seconds"] = pass.transfer_seconds;
  entry["predicted_compute_seconds"] = pass.compute_seconds;
  entry["seconds"] = pass.seconds;
  return entry;
}

Json ranges_to_json(const std::vector<ResidentRange>& ranges, int tensor) {
  Json list = Json::array();
  for (const ResidentRange& range : ranges) {
    if (range.tensor != tensor) continue;
    list.push_back({{"first_block", range.first_block},
                    {"end_block", range.end_block},
                    {"offset", range.memory.offset},
                    {"bytes", range.memory.bytes},
                    {"first_pass", range.first_pass + 1},
                    {"last_pass", range.last_pass + 1}});
  }
  return list;
}

Json tensors_to_json(const Plan& plan) {
  Json list = Json::array();
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const PlannedTensor& tensor = plan.tensors[t];
    Json entry{{"name", tensor.name},
               {"dtype", dtype_name(tensor.dtype)},
               {"cols", tensor.layout.cols},
               {"bytes", tensor_bytes(tensor)},
               {"input", tensor.input},
               {"blocks", tensor.layout.block_count()},
               {"block_rows", tensor.layout.block_rows},
               {"unit_blocks", tensor.io_chunk_blocks},
               {"stored_from_block", plan.devices[0].stored_from_block[t]},
               {"in_memory", ranges_to_json(plan.devices[0].ranges, static_cast<int>(t))}};
    if (!tensor.kept.all()) entry["kept_quarters"] = tensor.kept.quarters;
    if (plan.host) {
      entry["host_stored_from_block"] = plan.host->stored_from_block[t];
      entry["in_host_memory"] = ranges_to_json(plan.host->ranges, static_cast<int>(t));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json edge_ranges_to_json(const std::vector<EdgeRange>& ranges, bool host) {
  Json list = Json::array();
  for (const EdgeRange& range : ranges) {
    Json entry{{"direction", direction_name(range.direction)}};
    if (host) entry["first_chunk"] = range.first_chunk;
    entry[host ? "end_chunk" : "chunks"] = range.end_chunk;
    entry["offset"] = range.memory.offset;
    entry["bytes"] = range.memory.bytes;
    list.push_back(std::move(entry));
  }
  return list;
}

Json devices_to_json(const Plan& plan) {
  Json list = Json::array();
  for (const DevicePlan& device : plan.devices) {
    list.push_back({{"first_block", device.own.first},
                    {"end_block", device.own.end},
                    {"arena_bytes", device.arena_bytes},
                    {"reduction_bytes", device.reduction_bytes},
                    {"bytes_to_device", device.bytes_in},
                    {"bytes_from_device", device.bytes_out},
                    {"bytes_between_devices", device.bytes_passed_on}});
  }
  return list;
}

Json host_to_json(const HostTier& host) {
  return {{"arena_bytes", host.arena_bytes},
          {"staging_slots", host.staging_slots},
          {"staging_offset", host.staging.offset},
          {"staging_bytes", host.staging.bytes},
          {"edges", edge_ranges_to_json(host.edge_ranges, true)}};
}

}  // namespace

Json plan_to_json(const std::vector<const Program*>& programs, const Plan& plan) {
  Json json;
  json["strategy"] = strategy_name(plan.strategy);
  if (!plan.remark.empty()) json["remark"] = plan.remark;
  json["arena_bytes"] = plan.devices[0].arena_bytes;
  json["reduction_bytes"] = plan.devices[0].reduction_bytes;
  json["stored_bytes"] = plan.stored_bytes;
  if (plan.host) {
    json["bytes_to_device"] = plan.bytes_to_device;
    json["bytes_from_device"] = plan.bytes_from_device;
    json["bound_link_bytes"] = plan.bound_link_bytes;
  }
  if (plan.devices.size() > 1) {
    json["bytes_between_devices"] = plan.bytes_between_devices;
    json["ring_loaders"] = plan.ring_loaders;
    json["devices"] = devices_to_json(plan);
  }
  json["bytes_read"] = plan.bytes_read;
  json["bytes_written"] = plan.bytes_written;
  json["bytes_moved"] = plan.bytes_moved;
  json["seconds"] = plan.seconds;
  json["bound_bytes"] = plan.bound_bytes;
  json["bound_seconds"] = plan.bound_seconds;
  int index = 0;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    Json section{{"program", programs[s]->name}, {"passes", Json::array()}};
    for (const Pass& pass : plan.sections[s].passes) {
      section["passes"].push_back(pass_to_json(*programs[s], plan, index++, pass));
    }
    json["sections"].push_back(std::move(section));
  }
  json["tensors"] = tensors_to_json(plan);
  json["edges"] = edge_ranges_to_json(plan.devices[0].edge_ranges, false);
  if (plan.host) json["host"] = host_to_json(*plan.host);
  return json;
}

}  // namespace ooc
