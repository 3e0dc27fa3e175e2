#include <memory>
#include <optional>

#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/prep_commands.h"
#include "storage/import/generate.h"
#include "storage/import/import_memory.h"
#include "storage/import/rows/features_input.h"

namespace ooc {

void add_generate(cli::Command& program) {
  struct Options {
    GenerateOptions generate;
    std::int64_t seed = 0;
    std::optional<std::int64_t> targets;
    std::string output;
  };
  const auto options = std::make_shared<Options>();
  GenerateOptions& generate = options->generate;
  cli::Command& command = program.subcommand("generate", "Makes a graph to train on, of any size");
  command.choice("KIND", generate.kind, cli::enum_words<GraphKind>(kGraphKindNames),
                 "rmat: skewed degrees; sbm: planted classes, all vertices alike");
  command.required();
  command.integer("--vertices,--num-nodes", generate.vertices, 1, "Vertices");
  command.required();
  command.integer("--edges", generate.edges, 1, "Undirected edges");
  command.required();
  command.integer("--features", generate.features, 1, "Features of a vertex", kMaxFeatureCols);
  command.required();
  command.integer("--classes", generate.classes, 1, "Classes", kMaxGeneratedClasses);
  command.required();
  command.integer("--targets", options->targets, 1,
                  "Label vertices with so many values instead, which follow from the class");
  command.integer("--seed", options->seed, 0, "Another seed makes another graph");
  generate.memory_bytes = default_import_memory();
  command.size("--memory", generate.memory_bytes, "a quarter of the machine's",
               "Memory to work in; the graph is the same");
  command.output("-o,--output", options->output, "NAME.ooc", "The dataset to write");
  command.required();
  command.flag("--force", generate.force, "Replace a dataset of this name");
  command.example("A graph whose classes a GNN can learn",
                  "ooc-prep generate sbm --vertices 100000 --edges 1000000 --features 64 "
                  "--classes 8 -o sbm.ooc");
  command.example("A skewed one, to measure speed",
                  "ooc-prep generate rmat --vertices 1000000 --edges 16000000 --features 128 "
                  "--classes 16 -o rmat.ooc");
  command.example("Values to predict",
                  "ooc-prep generate sbm --vertices 100000 --edges 1000000 --features 64 "
                  "--classes 8 --targets 2 -o values.ooc");
  command.action([options, &command] {
    options->generate.targets = options->targets.value_or(0);
    options->generate.seed = static_cast<std::uint64_t>(options->seed);
    cli::Progress progress(cli::Progress::standard_output(command.quiet()));
    const Control control{progress.callback(), &cli::stop_flag()};
    const Findings findings =
        generate_dataset(posix_file_system(), options->generate, options->output, control);
    progress.finish();
    report_findings(findings, options->output);
  });
}

}  // namespace ooc
