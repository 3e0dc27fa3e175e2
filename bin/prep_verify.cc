#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/prep_commands.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset_verify.h"

namespace ooc {
namespace {

// One fault is the error; of several, a list on stdout and the first as the error.
void refuse_faults(const VerifyReport& report) {
  const std::size_t count = report.faults.size();
  if (count == 0) return;
  if (count == 1) throw DataError(report.faults[0], "", "");
  for (const std::string& fault : report.faults) fmt::print("{}\n", fault);
  throw DataError(fmt::format("{}{} faults, the first: {}", count == kMaxFaults ? "at least " : "",
                              count, report.faults[0]),
                  "", "");
}

}  // namespace

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
    const VerifyReport report = verify_dataset(posix_file_system(), *path, control);
    progress.finish();
    for (const std::string& name : report.foreign_files) {
      spdlog::warn("{} is no file of this dataset, nothing reads it", join_path(*path, name));
    }
    refuse_faults(report);
    fmt::print("{} is whole: {} vertices, {} edges\n", *path, report.vertices, report.edges);
  });
}

}  // namespace ooc
