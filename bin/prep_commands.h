// The commands of ooc-prep, one source file each: prep_<command>.cc.
#pragma once

#include "bin/cli/command.h"

namespace ooc {

struct Findings;

void add_import(cli::Command& program);
void add_generate(cli::Command& program);
void add_sample(cli::Command& program);
void add_verify(cli::Command& program);
void add_export(cli::Command& program);

// Prints what an import or a generation found; what is worth a warning goes to the log.
void report_findings(const Findings& findings, const std::string& output);

}  // namespace ooc
