#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bin/cli/facts.h"
#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/prep_commands.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset_export.h"
#include "storage/import/import_memory.h"

namespace ooc {
namespace {

struct Options {
  std::string dataset;
  ExportOptions exporting;
};

std::string shape_text(const NpyShape& shape) {
  if (shape.descr.empty()) return fmt::format("{} lines", shape.rows);
  const char* type = shape.descr == "<f4" ? "fp32" : shape.descr == "<i8" ? "int64" : "int8";
  return shape.cols == 0 ? fmt::format("{} [{}]", type, shape.rows)
                         : fmt::format("{} [{}, {}]", type, shape.rows, shape.cols);
}

}  // namespace

void add_export(cli::Command& program) {
  const auto options = std::make_shared<Options>();
  cli::Command& command =
      program.subcommand("export", "Writes the arrays of a dataset as .npy, in your vertex order");
  command.positional("NAME.ooc", "dataset", options->dataset, "the dataset to export");
  command.required();
  command.output("-o,--output", options->exporting.output, "DIR", "The directory to make");
  command.required();
  options->exporting.memory_bytes = default_import_memory();
  command.size("--memory", options->exporting.memory_bytes, "a quarter of the machine's",
               "Memory for buffers");
  command.flag("--force", options->exporting.force, "Replace what an earlier export wrote");
  command.example("The arrays of a dataset, for NumPy; ids that are strings as text",
                  "ooc-prep export cora.ooc -o arrays");
  command.action([options, &command] {
    cli::Progress progress(cli::Progress::standard_output(command.quiet()));
    const Control control{progress.callback(), &cli::stop_flag()};
    const Dataset dataset =
        Dataset::open(posix_file_system(), options->dataset, VerifyPolicy::kFirst);
    const std::vector<ExportedArray> arrays =
        export_dataset(posix_file_system(), dataset, options->exporting, control);
    progress.finish();
    cli::Facts facts;
    facts["directory"] = options->exporting.output;
    for (const auto& [name, shape] : arrays) facts["arrays"][name] = shape_text(shape);
    cli::print_facts(facts, false);
  });
}

}  // namespace ooc
