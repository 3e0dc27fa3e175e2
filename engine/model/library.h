// The models ooc brings: the programs of engine/model/models, embedded in the library.
#pragma once

#include <string>
#include <vector>

#include "engine/model/parts/model.h"
#include "storage/io/file.h"

namespace ooc {

struct EmbeddedModel {
  std::string name;
  std::string program;
};
const std::vector<EmbeddedModel>& embedded_models();  // by name

// The name of the embedded model that is meant: "gcn" for GCN, "sage" for GraphSAGE. Others, such
// as files, as they are.
std::string known_model(const std::string& name);
// UsageError if there is none of that name.
std::string embedded_program(const std::string& model);
// The program that `model` names: an embedded one's, or that of a file FILE.saga. UsageError if
// there is none of that name or the file is missing or too large; other errors of the file system
// pass through.
std::string read_program(FileSystem& files, const std::string& model);

// Models whose maximum is a pooling of its own, with parameters: with --aggr max they are the model
// NAME_pool, as Hamilton et al. 2017 have it.
void choose_pooling(ModelOptions& options);

// Whether --model gives a file, by its look: it ends in .saga, or has a slash.
bool is_program_file(const std::string& model);

// What messages and directories call a model: "gcn", "mine" for ./mine.saga.
std::string model_title(const std::string& model);

// What --heads is without it: 8 for programs that say `heads`, 1 for others.
// UsageError where it is no program.
std::int64_t default_heads(const std::string& program, const std::string& model);

}  // namespace ooc
