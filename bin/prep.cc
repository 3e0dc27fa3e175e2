// ooc-prep: makes datasets and checks them.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "storage/dataset.h"

namespace ooc {
namespace {

void add_verify(cli::Command& program) {
  struct Options {
    std::string path;
  };
  const auto options = std::make_shared<Options>();
  cli::Command& command =
      program.subcommand("verify", "Reads every byte of a dataset and checks it");
  command.positional("NAME.ooc", "dataset", options->path, "the dataset to check");
  command.required();
  command.example("Check a dataset after copying it", "ooc-prep verify cora.ooc");
  command.action([options] {
    const Dataset dataset =
        Dataset::open(posix_file_system(), options->path, VerifyPolicy::kAlways);
    dataset.verify([](std::string_view file) { spdlog::info("checking {}", file); });
    fmt::print("{} is whole: {} vertices, {} edges\n", options->path, dataset.vertices(),
               dataset.edges());
  });
}

}  // namespace
}  // namespace ooc

int main(int argc, char** argv) {
  return ooc::cli::run_program("ooc-prep", "Makes datasets for ooc and checks them.", argc, argv,
                               [](ooc::cli::Command& program) { ooc::add_verify(program); });
}
