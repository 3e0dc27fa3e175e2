#include <fmt/format.h>

#include <memory>

#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/prep_commands.h"
#include "storage/dataset.h"

namespace ooc {

void add_verify(cli::Command& program) {
  const auto path = std::make_shared<std::string>();
  cli::Command& command =
      program.subcommand("verify", "Reads every byte of a dataset and checks it");
  command.positional("NAME.ooc", "dataset", *path, "the dataset to check");
  command.required();
  command.example("Check a dataset after copying it", "ooc-prep verify cora.ooc");
  command.action([path, &command] {
    cli::Progress progress(cli::Progress::standard_output(command.quiet()));
    const Control control{progress.callback(), &cli::stop_flag()};
    const Dataset dataset = Dataset::open(posix_file_system(), *path, VerifyPolicy::kAlways);
    dataset.verify(control);
    progress.finish();
    fmt::print("{} is whole: {} vertices, {} edges\n", *path, dataset.vertices(), dataset.edges());
  });
}

}  // namespace ooc
