// The plan as JSON (plan.json) and as tables (--plan).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "sched/plan.h"
#include "storage/byte_size.h"

namespace ooc {
namespace {

using Json = nlohmann::ordered_json;

const std::string& value_name(const Program& program, ValueId id) {
  return program.values[static_cast<std::size_t>(id)].name;
}

constexpr const char* strategy_name(Strategy strategy) {
  switch (strategy) {
    case Strategy::kNone:
      return "none";
    case Strategy::kLru:
      return "lru";
    case Strategy::kDp:
      return "dp";
    case Strategy::kLp:
      return "lp";
  }
  return "";
}

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

const char* direction_name(Direction direction) {
  return direction == Direction::kIn ? "in" : "out";
}

int pass_count(const Plan& plan) {
  std::size_t count = 0;
  for (const Section& section : plan.sections) count += section.passes.size();
  return static_cast<int>(count);
}

std::int64_t tensor_bytes(const PlannedTensor& tensor) {
  return rows_bytes(tensor, 0, tensor.layout.block_count(), 0, tensor.layout.slice_count());
}

bool lives(const Piece& piece, int pass) {
  return piece.first_pass <= piece.last_pass ? pass >= piece.first_pass && pass <= piece.last_pass
                                             : pass >= piece.first_pass || pass <= piece.last_pass;
}

// What of the arena a pass uses.
std::int64_t memory_of(const Plan& plan, int index, const Pass& pass) {
  std::int64_t bytes = pass.edge_ring.bytes;
  for (const TensorUse& use : pass.uses) bytes += use.memory.bytes;
  for (const EdgePiece& piece : plan.edge_pieces) bytes += piece.memory.bytes;
  for (const Piece& piece : plan.pieces) bytes += lives(piece, index) ? piece.memory.bytes : 0;
  return bytes;
}

// Blocks of one tensor that stay for the same passes.
struct Stay {
  int first_pass, last_pass;
  std::int64_t blocks;
};

std::vector<Stay> stays_of(const Plan& plan, int tensor) {
  std::vector<Stay> stays;
  for (const Piece& piece : plan.pieces) {
    if (piece.tensor != tensor) continue;
    const std::int64_t blocks = piece.end_block - piece.first_block;
    const auto same = std::find_if(stays.begin(), stays.end(), [&](const Stay& stay) {
      return stay.first_pass == piece.first_pass && stay.last_pass == piece.last_pass;
    });
    if (same != stays.end()) {
      same->blocks += blocks;
    } else {
      stays.push_back({piece.first_pass, piece.last_pass, blocks});
    }
  }
  std::sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) {
    return std::tie(a.first_pass, a.last_pass) < std::tie(b.first_pass, b.last_pass);
  });
  return stays;
}

Json edges_to_json(const Program& program, const Pass& pass) {
  const Propagation& work = pass.propagation;
  Json entry;
  entry["direction"] = direction_name(work.direction);
  entry["loops"] = work.loops;
  entry["part_blocks"] = pass.part_blocks;
  entry["slices_at_once"] = pass.slices_at_once;
  entry["span_group"] = pass.span_group;
  entry["edge_slots"] = pass.edge_slots;
  entry["edge_ring_bytes"] = pass.edge_ring.bytes;
  entry["batch_edges"] = pass.batch_edges;
  entry["edge_scratch_bytes"] = pass.edge_scratch_bytes;
  entry["slice_local"] = pass.slice_local_cols > 0;
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
  Json entry;
  entry["name"] = pass.name;
  entry["kind"] = pass.kind == PassKind::kRow ? "row" : "propagate";
  if (pass.kind == PassKind::kPropagate) entry["edges"] = edges_to_json(program, pass);
  entry["steps"] = Json::array();
  for (const RowStep& step : pass.steps) entry["steps"].push_back(step.op);
  entry["uses"] = Json::array();
  for (const TensorUse& use : pass.uses) {
    entry["uses"].push_back({{"role", role_name(use.role)},
                             {"value", use.value < 0 ? "degrees" : value_name(program, use.value)},
                             {"offset", use.memory.offset},
                             {"bytes", use.memory.bytes},
                             {"slots", use.slots}});
  }
  entry["group_rows"] = pass.group_rows;
  entry["scratch_bytes"] = pass.scratch_bytes;
  entry["memory_bytes"] = memory_of(plan, index, pass);
  entry["bytes_read"] = pass.bytes_read;
  entry["bytes_written"] = pass.bytes_written;
  entry["bytes_moved"] = pass.bytes_moved;
  entry["multiply_adds"] = pass.multiply_adds;
  entry["seconds"] = pass.seconds;
  return entry;
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
               {"unit_blocks", tensor.unit_blocks},
               {"stored_from_block", tensor.stored_from_block},
               {"in_memory", Json::array()}};
    for (const Piece& piece : plan.pieces) {
      if (piece.tensor != static_cast<int>(t)) continue;
      entry["in_memory"].push_back({{"first_block", piece.first_block},
                                    {"end_block", piece.end_block},
                                    {"offset", piece.memory.offset},
                                    {"bytes", piece.memory.bytes},
                                    {"first_pass", piece.first_pass + 1},
                                    {"last_pass", piece.last_pass + 1}});
    }
    list.push_back(std::move(entry));
  }
  return list;
}

std::string split_text(const Pass& pass, std::int64_t blocks) {
  if (pass.kind == PassKind::kRow) return "";
  const std::int64_t parts = ceil_div(blocks, pass.part_blocks);
  const std::int64_t slices =
      std::max<std::int64_t>(ceil_div(pass.slice_local_cols, kSliceWidth), 1);
  const std::int64_t groups = ceil_div(slices, pass.slices_at_once);
  std::string text = parts > 1 ? fmt::format("{} parts", parts) : "";
  if (groups > 1) text += fmt::format("{}{} slices", parts > 1 ? " x " : "", groups);
  return text.empty() ? "whole" : text;
}

std::string describe(const Program& program, const Pass& pass) {
  if (pass.kind == PassKind::kRow) return pass.name;
  std::vector<std::string> names;
  for (const EdgeFold& fold : pass.propagation.folds) {
    names.push_back(value_name(program, fold.accumulators[0]));
  }
  return fmt::format("{}: edges {} -> {}", pass.name, direction_name(pass.propagation.direction),
                     fmt::join(names, ", "));
}

constexpr const char* kPassRow = "  {:>3} {:<44} {:<18} {:>10} {:>10} {:>10} {:>10}\n";

std::string tensor_text(const Plan& plan, std::size_t index) {
  const PlannedTensor& tensor = plan.tensors[index];
  const std::int64_t blocks = tensor.layout.block_count();
  const auto percent = [&](std::int64_t part) {
    return fmt::format("{:.0f}%", 100.0 * static_cast<double>(part) / static_cast<double>(blocks));
  };
  std::vector<std::string> stays;
  for (const Stay& stay : stays_of(plan, static_cast<int>(index))) {
    const bool good = stay.first_pass == 0 && stay.last_pass == pass_count(plan) - 1;
    stays.push_back(
        percent(stay.blocks) +
        (good ? " for good"
              : fmt::format(" in passes {}-{}", stay.first_pass + 1, stay.last_pass + 1)));
  }
  const std::string stored =
      tensor.input ? "input" : percent(blocks - tensor.stored_from_block) + " stored";
  return fmt::format("  {:<28} {:>10}  {:<12} {}\n", tensor.name,
                     format_byte_size(tensor_bytes(tensor)), stored,
                     stays.empty() ? "streamed" : fmt::format("{}", fmt::join(stays, ", ")));
}

}  // namespace

Json plan_to_json(const std::vector<const Program*>& programs, const Plan& plan) {
  Json json;
  json["strategy"] = strategy_name(plan.strategy);
  if (!plan.remark.empty()) json["remark"] = plan.remark;
  json["arena_bytes"] = plan.arena_bytes;
  json["scratch_bytes_per_worker"] = plan.scratch_bytes;
  json["reduction_bytes"] = plan.reduction_bytes;
  json["stored_bytes"] = plan.stored_bytes;
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
  json["edges"] = Json::array();
  for (const EdgePiece& piece : plan.edge_pieces) {
    json["edges"].push_back({{"direction", direction_name(piece.direction)},
                             {"chunks", piece.end_chunk},
                             {"offset", piece.memory.offset},
                             {"bytes", piece.memory.bytes}});
  }
  return json;
}

std::string plan_to_text(const std::vector<const Program*>& programs, const Plan& plan) {
  const auto bytes = [](std::int64_t count) { return format_byte_size(count); };
  const auto seconds = [](double time) { return fmt::format("{:.3g} s", time); };
  std::string text;
  int index = 0;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    text += fmt::format("{}: what an epoch behind the first does, strategy {}\n", programs[s]->name,
                        strategy_name(plan.strategy));
    text += fmt::format(fmt::runtime(kPassRow), "", "pass", "split", "memory", "reads", "writes",
                        "time");
    for (const Pass& pass : plan.sections[s].passes) {
      const std::int64_t blocks = plan.tensors.empty() ? 1 : plan.tensors[0].layout.block_count();
      text += fmt::format(fmt::runtime(kPassRow), index + 1, describe(*programs[s], pass),
                          split_text(pass, blocks), bytes(memory_of(plan, index, pass)),
                          bytes(pass.bytes_read), bytes(pass.bytes_written), seconds(pass.seconds));
      ++index;
    }
  }
  text += fmt::format(fmt::runtime(kPassRow), "", "all", "", bytes(plan.arena_bytes),
                      bytes(plan.bytes_read), bytes(plan.bytes_written), seconds(plan.seconds));
  text += "what stays in memory\n";
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) text += tensor_text(plan, t);
  for (const EdgePiece& piece : plan.edge_pieces) {
    text += fmt::format("  {:<28} {:>10}  {:<12} {} chunks for good\n",
                        fmt::format("edges {}", direction_name(piece.direction)),
                        bytes(piece.memory.bytes), "input", piece.end_chunk);
  }
  text +=
      fmt::format("besides the {} of the arena: {} a worker, {} for sums; {} of files in scratch\n",
                  bytes(plan.arena_bytes), bytes(plan.scratch_bytes), bytes(plan.reduction_bytes),
                  bytes(plan.stored_bytes));
  text += fmt::format(
      "an epoch moves {}; with these passes none moves less than {} or takes less "
      "than {}\n",
      bytes(plan.bytes_read + plan.bytes_written), bytes(plan.bound_bytes),
      seconds(plan.bound_seconds));
  if (!plan.remark.empty()) text += plan.remark + "\n";
  return text;
}

}  // namespace ooc
