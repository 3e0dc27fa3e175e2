// ooc-prep: makes datasets, checks them and gives their arrays back; samples batches of them.
#include "bin/cli/program.h"
#include "bin/prep_commands.h"

int main(int argc, char** argv) {
  return ooc::cli::run_program("ooc-prep",
                               "Makes datasets for ooc, samples, checks and exports them.", argc,
                               argv, [](ooc::cli::Command& program) {
                                 ooc::add_import(program);
                                 ooc::add_generate(program);
                                 ooc::add_sample(program);
                                 ooc::add_verify(program);
                                 ooc::add_export(program);
                               });
}
