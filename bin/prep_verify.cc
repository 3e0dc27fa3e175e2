#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/prep_commands.h"
#include "storage/base/errors.h"
#include "storage/batches/batch_file.h"
#include "storage/batches/batches_verify.h"
#include "storage/dataset/dataset_verify.h"

namespace ooc {
namespace {

// One fault is the error; of several, a list on stdout and the first as the error.
void refuse_faults(const std::vector<std::string>& faults) {
  const std::size_t count = faults.size();
  if (count == 0) return;
  if (count == 1) throw DataError(faults[0], "", "");
  for (const std::string& fault : faults) fmt::print("{}\n", fault);
  throw DataError(fmt::format("{}{} faults, the first: {}", count == kMaxFaults ? "at least " : "",
                              count, faults[0]),
                  "", "");
}

void warn_of_foreign(const std::string& path, const std::vector<std::string>& names,
                     const char* of) {
  for (const std::string& name : names) {
    spdlog::warn("{} is no file of {}, nothing reads it", join_path(path, name), of);
  }
}

void verify(const std::string& path, cli::Progress& progress) {
  const Control control{progress.callback(), &cli::stop_flag()};
  FileSystem& files = posix_file_system();
  if (is_batches(files, path)) {
    const BatchesVerifyReport report = verify_batches(files, path, control);
    progress.finish();
    warn_of_foreign(path, report.foreign_files, "these batches");
    refuse_faults(report.faults);
    fmt::print("{} is whole: {} batches, {} vertices, {} edges\n", path, report.batches,
               report.vertices, report.edges);
    return;
  }
  const VerifyReport report = verify_dataset(files, path, control);
  progress.finish();
  warn_of_foreign(path, report.foreign_files, "this dataset");
  refuse_faults(report.faults);
  fmt::print("{} is whole: {} vertices, {} edges\n", path, report.vertices, report.edges);
}

}  // namespace

void add_verify(cli::Command& program) {
  const auto path = std::make_shared<std::string>();
  cli::Command& command =
      program.subcommand("verify", "Reads every byte of a dataset, or of batches, and checks it");
  command.positional("NAME", "dataset", *path,
                     "the dataset NAME.ooc or the batches NAME.batches to check");
  command.required();
  command.example("Check a dataset after copying it", "ooc-prep verify cora.ooc");
  command.action([path, &command] {
    cli::Progress progress(cli::Progress::standard_output(command.quiet()));
    verify(*path, progress);
  });
}

}  // namespace ooc
