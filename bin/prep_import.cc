#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "bin/cli/facts.h"
#include "bin/cli/program.h"
#include "bin/cli/progress.h"
#include "bin/prep_commands.h"
#include "engine/train/run_directory.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/import/formats/ogb.h"
#include "storage/import/importer.h"

namespace ooc {
namespace {

struct Options {
  ImportOptions import;
  std::string directory;
  std::string ogb;
  std::string split_name;
  std::string split;
  std::int64_t split_seed = 0;
  std::int64_t seed = 0;
  std::string norm_from;
  std::string raw_dtype;
  std::optional<std::int64_t> raw_columns;
  std::string output;
};

void add_inputs(cli::Command& command, Options& options) {
  ImportInputs& inputs = options.import.inputs;
  command.positional("DIR", "directory", options.directory,
                     "a directory with edges.*, features.*, labels.*, train_idx.* and so on");
  command.path("--edges", inputs.edges, "FILE", "Edges: [E, 2] or [2, E]");
  command.path("--features", inputs.features, "FILE",
               "Features: [V, F]. Without a file: degrees, the logarithms of each vertex's in- and "
               "out-degree, or random:N, N normal random numbers");
  command.path("--labels", inputs.labels, "FILE",
               "Classes: [V], -1 where there is none; classes or values in columns: [V, C]");
  command.choice("--label-kind", options.import.label_kind,
                 cli::enum_words<LabelChoice>(kLabelChoiceNames),
                 "What labels are: classes; a column a class, with one 1 a row, or any number of "
                 "them; values to predict. auto: whole numbers are classes, fractions values, a "
                 "matrix of 0 and 1 is multi");
  command.path("--class-names", inputs.class_names, "FILE",
               "The names of the classes, where labels are numbers: one in a line");
  command.path("--unlabelled", options.import.unlabelled, "TOKEN",
               "A word more that says in text that there is no label, as unknown, NaN and an empty "
               "field do");
  command.path("--train", inputs.train, "FILE", "Ids or mask of the training vertices");
  command.path("--valid", inputs.valid, "FILE", "Ids or mask of the validation vertices");
  command.path("--test", inputs.test, "FILE", "Ids or mask of the test vertices");
  command.path("--edge-weights", inputs.edge_weights, "FILE", "A number an edge: [E]");
  command.path("--edge-types", inputs.edge_types, "FILE", "Types from 0 to 65,535: [E]");
  command.path("--edge-features", inputs.edge_features, "FILE", "Features of the edges: [E, F]");
  command.integer("--split-index", options.import.split_index, 0,
                  "Which split to take, from 0, where a mask holds several: [V, S] or [S, V]");
  command.path("--ogb", options.ogb, "DIR", "A dataset of OGB as it is downloaded: raw/, split/");
  command.path("--split-name", options.split_name, "S", "With --ogb: the split in split/S");
  command.path("--split", options.split, "T/V/T",
               "Split here: percent of the labelled vertices, 60/20/20");
  command.integer("--split-seed", options.split_seed, 0,
                  "With --split: another seed, other splits");
  command.path("--raw-dtype", options.raw_dtype, "T",
               "Element type of the one headerless input, such as float32");
  command.integer("--raw-columns", options.raw_columns, 1, "With --raw-dtype: its columns");
  command.integer("--vertices,--num-nodes", options.import.vertices, 1,
                  "Vertices, where no file says");
  command.flag("--remap-ids", options.import.remap_ids,
               "Ids are any 64-bit integers, or strings in text; say whose the rows of features, "
               "labels and masks are: --ids, --id or --rows-sorted");
  RowIds& rows = options.import.rows;
  command.path("--ids", inputs.ids, "FILE",
               "The id of each row of features, labels and masks, in any order");
  command.path("--id", rows.column, "COLUMN",
               "The column of ids in features and labels that are text: its name, or its number "
               "from 1");
  command.flag("--rows-sorted", rows.sorted,
               "Rows follow the ascending order of the ids in the edges");
}

[[noreturn]] void refuse_usage(std::string_view what, std::string_view remedy) {
  throw UsageError(what, "command line", remedy);
}

void find_inputs(Options& options) {
  FileSystem& files = posix_file_system();
  ImportOptions& import = options.import;
  if (!options.ogb.empty()) {
    if (!options.directory.empty()) refuse_usage("both DIR and --ogb", "give one of them");
    OgbInputs found =
        find_ogb_inputs(files, options.ogb, options.split_name, std::move(import.inputs));
    import.inputs = std::move(found.inputs);
    if (!import.vertices) import.vertices = found.vertices;
  } else if (!options.split_name.empty()) {
    refuse_usage("--split-name without --ogb", "give --ogb DIR, or --train, --valid and --test");
  } else if (!options.directory.empty()) {
    import.inputs = discover_inputs(files, options.directory, std::move(import.inputs));
  } else if (import.inputs.edges.empty()) {
    refuse_usage("nothing to import", "name a directory or --edges FILE");
  }
  import.computed_features = parse_computed_features(import.inputs.features);
  if (import.computed_features) import.inputs.features.clear();
  if (options.raw_dtype.empty() != !options.raw_columns) {
    refuse_usage("--raw-dtype and --raw-columns go together", "give both, or neither");
  }
  if (options.raw_columns) {
    apply_raw_format(files, import.inputs, options.raw_dtype, *options.raw_columns);
  }
}

// What says whose rows are whose says that ids are none of 0 to V - 1, too; ids.* in a directory
// alone doesn't.
void choose_ids(ImportOptions& import, bool ids_given) {
  ImportInputs& inputs = import.inputs;
  const int ways = ids_given + !import.rows.column.empty() + import.rows.sorted;
  if (ways > 1) refuse_usage("several of --ids, --id and --rows-sorted", "give one of them");
  import.remap_ids = import.remap_ids || ways > 0;
  if (inputs.ids.empty() || ids_given || (import.remap_ids && ways == 0)) return;
  if (!import.remap_ids) inputs.unused.push_back(base_name(inputs.ids));
  inputs.ids.clear();
}

// Of a run's best model, or of a dataset.
void choose_scaling(const std::string& from, bool norm_given, ImportOptions& import) {
  if (from.empty()) return;
  if (norm_given) {
    refuse_usage("--feature-norm-from beside --feature-norm or --missing", "leave these out");
  }
  FileSystem& files = posix_file_system();
  if (files.exists(join_path(from, "manifest.json"))) {
    import.scaling = Dataset::open(files, from, VerifyPolicy::kFirst).manifest().feature_scaling;
  } else {
    import.scaling =
        read_model(files, RunDirectory::open(files, from).best_path(), DType::kF32).feature_scaling;
  }
  if (!import.scaling->norm.empty()) return;
  throw DataError("it was made before normalisations were kept", from,
                  "import its graph again, or give --feature-norm");
}

void choose_split(const Options& options, bool seed_given, ImportOptions& import) {
  if (options.split.empty()) {
    if (seed_given) refuse_usage("--split-seed without --split", "give --split 60/20/20 too");
    return;
  }
  const ImportInputs& inputs = import.inputs;
  for (const std::string& file : {inputs.train, inputs.valid, inputs.test}) {
    if (file.empty()) continue;
    refuse_usage(fmt::format("--split, but {} splits already", file),
                 "leave out --split, or the split files");
  }
  import.split_shares = parse_split_shares(options.split);
  import.split_seed = static_cast<std::uint64_t>(options.split_seed);
}

void choose_seed(const Options& options, bool given, ImportOptions& import) {
  const auto& computed = import.computed_features;
  if (given && import.order != VertexOrder::kRandom && !(computed && computed->random_cols > 0)) {
    refuse_usage("--seed, but nothing is random", "leave it out, or give --features random:N");
  }
  import.seed = static_cast<std::uint64_t>(options.seed);
}

void add_examples(cli::Command& command) {
  command.example("A directory of .npy files whose edges go one way only",
                  "ooc-prep import data/cora -o cora.ooc --undirected --feature-norm row");
  command.example("Files by name",
                  "ooc-prep import --edges e.npy --features x.npz:x --labels y.csv --train t.npy "
                  "--valid v.npy --test s.npy -o mine.ooc");
  command.example("What OGB downloads, such as ogbn-arxiv",
                  "ooc-prep import --ogb dataset/ogbn_arxiv -o arxiv.ooc --undirected");
  command.example("Headerless float32 features of 1024 columns, as IGB has them",
                  "ooc-prep import --edges paper__cites__paper/edge_index.npy "
                  "--features paper/node_feat.npy --labels paper/node_label_19.npy "
                  "--raw-dtype float32 --raw-columns 1024 --split 60/20/20 -o igb.ooc");
  command.example("The first of ten splits, in masks [V, 10] or [10, V]",
                  "ooc-prep import --edges g.npz:edges --features g.npz:node_features "
                  "--labels g.npz:node_labels --train g.npz:train_masks --valid g.npz:val_masks "
                  "--test g.npz:test_masks --split-index 0 -o first.ooc");
  command.example("A graph without features: those of its degrees",
                  "ooc-prep import --edges e.npy --features degrees --labels y.npy "
                  "--split 60/20/20 -o mine.ooc");
  command.example("Several headerless files, HDF5, Matrix Market",
                  "ooc-prep import --edges e.bin:int64x2 --features f.bin:float32x128 "
                  "--labels x.h5:/labels -o mine.ooc");
  command.example("Whole numbers to predict, instead of classes",
                  "ooc-prep import data/counts -o counts.ooc --label-kind values");
  command.example("A sparse matrix as the graph",
                  "ooc-prep import --edges web.mtx --features x.npy -o web.ooc");
  command.example("Ids that are not 0 to V - 1, such as numbers or names of accounts",
                  "ooc-prep import --edges payments.csv --remap-ids -o payments.ooc");
  command.example("The same with tables of accounts, in any order",
                  "ooc-prep import --edges payments.csv:payer,payee --edge-weights "
                  "payments.csv:amount --features accounts.csv:3-20 --labels accounts.csv:fraud "
                  "--id account -o payments.ooc");
  command.example("A dataset that has changed", "ooc-prep import data/cora -o cora.ooc --force");
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
  command.output("-o,--output", options->output, "NAME.ooc", "The dataset to write");
  command.required();
  command.flag("--undirected", import.edges.undirected, "Add each missing reverse edge");
  command.choice("--self-loops", import.edges.self_loops,
                 cli::enum_words<SelfLoops>(kSelfLoopsNames), "What to do with self loops");
  command.choice("--coalesce", import.edges.coalesce, cli::enum_words<Coalesce>(kCoalesceNames),
                 "What to do with edges that are there more than once");
  command.choice("--feature-norm", import.feature_norm,
                 cli::enum_words<FeatureNorm>(kFeatureNormNames),
                 "Scale features: rows to sum or length 1, columns to mean 0 and deviation 1");
  command.path("--feature-norm-from", options->norm_from, "RUN|NAME.ooc",
               "Scale features, and fill missing ones, as those of a run's graph or of a dataset");
  command.choice(
      "--missing", import.missing, cli::enum_words<Missing>(kMissingNames),
      "What stands for features that are NaN, or empty in text: the mean is the column's");
  command.choice("--dtype", import.dtype,
                 {{"fp32", DType::kF32}, {"fp16", DType::kF16}, {"bf16", DType::kBF16}},
                 "Store features as");
  command.choice("--order", import.order, cli::enum_words<VertexOrder>(kVertexOrderNames),
                 "The order of vertices inside the dataset; results keep yours");
  command.integer("--seed", options->seed, 0, "Of --order random and --features random:N");
  command.integer("--block-rows", import.block_rows, 1, "Vertices of a block: a power of two",
                  kMaxBlockRows);
  command.size("--memory", import.memory_bytes, "a quarter of the machine's",
               "Memory to work in, whatever the size of the input");
  command.flag("--force", import.force, "Replace a dataset of this name");
  add_examples(command);
  command.action([options, &command] {
    find_inputs(*options);
    choose_ids(options->import, command.given("ids"));
    choose_scaling(options->norm_from, command.given("feature-norm") || command.given("missing"),
                   options->import);
    choose_split(*options, command.given("split-seed"), options->import);
    choose_seed(*options, command.given("seed"), options->import);
    cli::Progress progress(cli::Progress::standard_output(command.quiet()));
    const Control control{progress.callback(), &cli::stop_flag()};
    const Findings findings =
        import_dataset(posix_file_system(), options->import, options->output, control);
    progress.finish();
    report_findings(findings, options->output);
  });
}

}  // namespace ooc
