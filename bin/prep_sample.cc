#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bin/cli/batches_facts.h"
#include "bin/cli/own_scratch.h"
#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/cli/sampler_options.h"
#include "bin/prep_commands.h"
#include "engine/batches/sample_batches.h"
#include "storage/base/errors.h"
#include "storage/import/import_memory.h"
#include "storage/import/listed_vertices.h"
#include "storage/io/block_file.h"

namespace ooc {
namespace {

struct Options {
  std::string dataset;
  SampleOptions sample;
  std::string seeds;  // empty: of all splits that the dataset has
  bool json = false;
};

// A list of splits' words; nothing for another text.
std::optional<std::vector<Split>> parse_splits(const std::string& text) {
  std::vector<Split> splits;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    const auto found = std::find(kSplitWords.begin() + 1, kSplitWords.end(), word);
    if (found == kSplitWords.end()) return std::nullopt;
    const auto split = static_cast<Split>(found - kSplitWords.begin());
    if (std::find(splits.begin(), splits.end(), split) != splits.end()) return std::nullopt;
    splits.push_back(split);
    begin = end + 1;
  }
  return splits;
}

// No file: without an ending, and nothing of this name is there.
bool is_list_of_words(const std::string& text) {
  return text.find_first_of("./") == std::string::npos && !posix_file_system().exists(text);
}

void choose_seeds(const std::string& seeds, const Dataset& dataset, const Control& control,
                  SampleOptions& options) {
  const std::vector<Split> all{Split::kTrain, Split::kValid, Split::kTest, Split::kNone};
  if (seeds.empty()) {
    options.splits = {Split::kTrain, Split::kValid, Split::kTest};
  } else if (seeds == "all") {
    options.splits = all;
  } else if (auto splits = parse_splits(seeds)) {
    options.splits = *std::move(splits);
  } else if (is_list_of_words(seeds)) {
    throw UsageError(fmt::format("--seeds cannot be '{}'", seeds), "command line",
                     "it takes train, valid and test, each once at most and with commas between; "
                     "all; or a file of ids, such as ids.csv");
  } else {
    options.splits = all;
    options.only = listed_vertices(posix_file_system(), dataset, seeds, control);
  }
}

void add_sampling(cli::Command& command, SamplingConfig& sampling) {
  command.parsed("--fanouts,--num-neighbors", "N,N,...", kFanoutsValues,
                 "Of a vertex's in-edges so many at most, hop by hop from the seeds on",
                 [&sampling](const std::string& text) {
                   const std::optional<Fanouts> parsed = parse_fanouts(text);
                   if (parsed) sampling.fanouts = *parsed;
                   return parsed.has_value();
                 });
  command.required();
  cli::add_sampler_options(command, "", sampling);
}

void sample(const Options& given, bool quiet) {
  cli::Progress progress(cli::Progress::standard_output(quiet));
  const Control control{progress.callback(), &cli::stop_flag()};
  SampleOptions options = given.sample;
  cli::check_samplers(options.sampling);
  const Dataset dataset = Dataset::open(posix_file_system(), given.dataset, VerifyPolicy::kFirst);
  choose_seeds(given.seeds, dataset, control, options);
  // What a killed process left there is removed before anything is written.
  const std::int64_t left = cli::disk_bytes_of(options.output + ".partial");
  options.disk_bytes = cli::free_disk_bytes(options.output) + left;
  const cli::OwnScratch scratch(options.scratch, options.output);
  options.scratch = scratch.path();
  options.scratch_bytes =
      options.scratch.empty() ? options.disk_bytes : cli::free_disk_bytes(options.scratch);
  const std::unique_ptr<BlockIo> io = make_block_io();
  const BatchesManifest manifest =
      sample_batches(*io, posix_file_system(), dataset, options, control);
  progress.finish();
  cli::print_facts(cli::batches_facts(options.output, manifest), given.json);
}

}  // namespace

void add_sample(cli::Command& program) {
  const auto options = std::make_shared<Options>();
  SampleOptions& sampling = options->sample;
  cli::Command& command =
      program.subcommand("sample", "Samples batches once, to train on them again and again");
  command.positional("NAME.ooc", "dataset", options->dataset, "the dataset to sample");
  command.required();
  add_sampling(command, sampling.sampling);
  command.path("--seeds", options->seeds, "train,valid,test|all|FILE",
               "Whose batches: vertices of these splits; all vertices; those whose ids a file "
               "lists. If absent those of all splits that the dataset has");
  command.integer("--epochs", sampling.epochs, 1,
                  "So many samples of the training vertices, each in an order of its own", 1 << 20);
  command.integer("--seed", sampling.seed, 0, "Another seed draws other samples");
  sampling.memory_bytes = default_import_memory();
  command.size("--memory", sampling.memory_bytes, "a quarter of the machine's",
               "Memory to work in; the batches are the same");
  command.directory("--scratch", sampling.scratch,
                    "Where what doesn't fit memory goes meanwhile; beside the output if absent");
  command.output("-o,--output", sampling.output, "NAME.batches", "The directory to make");
  command.required();
  command.flag("--force", sampling.force, "Replace batches of this name");
  command.flag("--json", options->json, "Print JSON instead of text");
  command.example("Batches of all splits",
                  "ooc-prep sample cora.ooc --fanouts 10,5 "
                  "--batch-size 140 -o cora.batches");
  command.example("Ten samples of the training vertices, to train on in turn",
                  "ooc-prep sample cora.ooc --fanouts 10,5 --epochs 10 -o ten.batches");
  command.example("All in-edges of some vertices",
                  "ooc-prep sample cora.ooc --fanouts -1,-1 --seeds some.csv -o some.batches");
  command.action([options, &command] { sample(*options, command.quiet()); });
}

}  // namespace ooc
