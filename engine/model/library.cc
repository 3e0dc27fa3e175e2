#include "engine/model/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/model/saga/mentions.h"
#include "engine/model/saga/parser.h"
#include "storage/base/closest.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr const char* kSuffix = ".saga";

}  // namespace

std::string known_model(const std::string& name) {
  if (is_word(name, "graphsage")) return "sage";
  for (const EmbeddedModel& embedded : embedded_models()) {
    if (is_word(name, embedded.name)) return embedded.name;
  }
  return name;
}

std::string embedded_program(const std::string& model) {
  std::vector<std::string> names;
  for (const EmbeddedModel& embedded : embedded_models()) {
    if (embedded.name == model) return embedded.program;
    names.push_back(embedded.name);
  }
  const std::string near = closest(model, names);
  throw UsageError("unknown model", model,
                   fmt::format("{}--model takes {}, or a file NAME.saga",
                               near.empty() ? "" : fmt::format("did you mean {}? ", near),
                               fmt::join(names, ", ")));
}

std::string read_program(FileSystem& files, const std::string& model) {
  if (!is_program_file(model)) return embedded_program(model);
  if (!files.exists(model) || files.is_directory(model)) {
    throw UsageError("no such program", model, "name a file of a program, or a model of ooc");
  }
  const std::uint64_t size = files.open(model)->size();
  if (size > saga::kMaxProgramBytes) {
    throw UsageError(fmt::format("a program of {} bytes", size), model,
                     fmt::format("a program has at most {}", saga::kMaxProgramBytes));
  }
  const std::vector<std::byte> bytes = read_file(files, model);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void choose_pooling(ModelOptions& options) {
  if (options.aggr != Aggregation::kMax) return;
  for (const EmbeddedModel& embedded : embedded_models()) {
    if (embedded.name != options.model + "_pool") continue;
    options.model = embedded.name;
    options.aggr = Aggregation::kMean;
    return;
  }
}

bool is_program_file(const std::string& model) {
  return model.ends_with(kSuffix) || model.find('/') != std::string::npos;
}

std::string model_title(const std::string& model) {
  std::string title = base_name(model);
  if (title.ends_with(kSuffix)) title.resize(title.size() - 5);
  return title;
}

std::int64_t default_heads(const std::string& program, const std::string& model) {
  return saga::says_heads(saga::parse(program, model_title(model) + kSuffix)) ? 8 : 1;
}

}  // namespace ooc
