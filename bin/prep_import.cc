#include <spdlog/spdlog.h>

#include <memory>

#include "bin/cli/facts.h"
#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/prep_commands.h"
#include "storage/errors.h"
#include "storage/import/importer.h"

namespace ooc {
namespace {

struct Options {
  ImportOptions import;
  std::string directory;
  std::string output;
};

void add_inputs(cli::Command& command, Options& options) {
  ImportInputs& inputs = options.import.inputs;
  command.positional("DIR", "directory", options.directory,
                     "a directory with edges.*, features.*, labels.*, train_idx.* and so on");
  command.path("--edges", inputs.edges, "FILE", "Edges: [E, 2] or [2, E]");
  command.path("--features", inputs.features, "FILE", "Features: [V, F]");
  command.path("--labels", inputs.labels, "FILE", "Classes: [V], -1 where there is none");
  command.path("--train", inputs.train, "FILE", "Ids or mask of the training vertices");
  command.path("--valid", inputs.valid, "FILE", "Ids or mask of the validation vertices");
  command.path("--test", inputs.test, "FILE", "Ids or mask of the test vertices");
  command.integer("--vertices,--num-nodes", options.import.vertices, 1,
                  "Vertices, where no file says");
}

void find_inputs(Options& options) {
  if (options.directory.empty() && options.import.inputs.edges.empty()) {
    throw UsageError("nothing to import", "command line", "name a directory or --edges FILE");
  }
  if (!options.directory.empty()) {
    options.import.inputs =
        discover_inputs(posix_file_system(), options.directory, std::move(options.import.inputs));
  }
}

}  // namespace

void report_findings(const Findings& findings, const std::string& output) {
  for (const std::string& warning : findings.warnings) spdlog::warn("{}", warning);
  cli::Facts facts;
  facts["dataset"] = output;
  facts.update(findings_to_json(findings));
  facts.erase("warnings");
  cli::print_facts(facts, false);
}

void add_import(cli::Command& program) {
  const auto options = std::make_shared<Options>();
  ImportOptions& import = options->import;
  cli::Command& command =
      program.subcommand("import", "Makes a dataset from arrays: edges, features, labels, splits");
  add_inputs(command, *options);
  command.path("-o,--output", options->output, "NAME.ooc", "The dataset to write");
  command.required();
  command.flag("--undirected", import.edges.undirected, "Add each missing reverse edge");
  command.choice("--self-loops", import.edges.self_loops,
                 cli::enum_words<SelfLoops>(kSelfLoopsNames), "What to do with self loops");
  command.choice("--coalesce", import.edges.coalesce, cli::enum_words<Coalesce>(kCoalesceNames),
                 "What to do with edges that are there more than once");
  command.choice("--feature-norm", import.feature_norm,
                 cli::enum_words<FeatureNorm>(kFeatureNormNames),
                 "Scale features: rows to sum or length 1, columns to mean 0 and deviation 1");
  command.choice("--order", import.order, cli::enum_words<VertexOrder>(kVertexOrderNames),
                 "The order of vertices inside the dataset; results keep yours");
  command.integer("--block-rows", import.block_rows, 1, "Vertices of a block: a power of two",
                  kMaxBlockRows);
  command.size("--memory", import.memory_bytes, "a quarter of the machine's",
               "Memory to work in, whatever the size of the input");
  command.flag("--force", import.force, "Replace a dataset of this name");
  command.example("A directory of .npy files whose edges go one way only",
                  "ooc-prep import data/cora -o cora.ooc --undirected --feature-norm row");
  command.example("Files by name",
                  "ooc-prep import --edges e.npy --features x.npz:x --labels y.csv --train t.npy "
                  "--valid v.npy --test s.npy -o mine.ooc");
  command.example("A dataset that has changed", "ooc-prep import data/cora -o cora.ooc --force");
  command.action([options, &command] {
    find_inputs(*options);
    cli::Progress progress(cli::Progress::standard_output(command.quiet()));
    const Control control{progress.callback(), &cli::stop_flag()};
    const Findings findings =
        import_dataset(posix_file_system(), options->import, options->output, control);
    progress.finish();
    report_findings(findings, options->output);
  });
}

}  // namespace ooc
