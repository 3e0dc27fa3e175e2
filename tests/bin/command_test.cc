#include "bin/cli/command.h"

#include <CLI/CLI.hpp>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "storage/base/errors.h"
#include "tests/support/fake_file_system.h"

namespace ooc::cli {
namespace {

enum class Norm { kNone, kBatch };

// A program with one option of each kind.
struct Fixture {
  CLI::App app{"A test program", "tool"};
  Command command{app};
  std::string dataset;
  std::int64_t epochs = 200;
  std::int64_t layers = 2;
  double dropout = 0.5;
  std::int64_t memory = 0;
  Norm norm = Norm::kNone;
  bool residual = false;
  std::string output = "runs/default";

  Fixture() {
    command.positional("NAME.ooc", "dataset", dataset, "the dataset to train on");
    command.required();
    command.integer("--epochs", epochs, 1, "Epochs");
    command.integer("--layers,--num-layers", layers, 1, "Layers", 64);
    command.real("--dropout", dropout, {0, 1, true}, "Dropout");
    command.size("--host-memory", memory, "auto", "Memory");
    command.choice<Norm>("--norm", norm, {{"none", Norm::kNone}, {"batch", Norm::kBatch}}, "Norm");
    command.flag("--residual", residual, "Residuals");
    command.path("-o,--output", output, "DIR", "Where to write");
    command.action([] {});
  }

  void parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "tool");
    command.parse(static_cast<int>(arguments.size()), arguments.data());
  }

  std::string error(const std::vector<const char*>& arguments) {
    try {
      parse(arguments);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
};

class ConfigFile {
 public:
  explicit ConfigFile(std::string_view text) {
    const auto file = posix_file_system().create(path_);
    file->write_at(0, std::as_bytes(std::span(text.data(), text.size())));
    file->close();
  }
  const char* path() const { return path_.c_str(); }

 private:
  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "a.toml";
};

}  // namespace

TEST_CASE("command: every kind of option sets its variable") {
  Fixture tool;
  tool.parse({"a.ooc", "--epochs", "5", "--num-layers=3", "--dropout", "0.25", "--host-memory",
              "1.5GiB", "--norm", "batch", "--residual", "-o", "here/"});
  CHECK(tool.dataset == "a.ooc");
  CHECK(tool.epochs == 5);
  CHECK(tool.layers == 3);
  CHECK(tool.dropout == 0.25);
  CHECK(tool.memory == 3LL << 29);
  CHECK(tool.norm == Norm::kBatch);
  CHECK(tool.residual);
  CHECK(tool.output == "here");
  CHECK(tool.command.given("layers"));
}

TEST_CASE("command: what is not given keeps its default, the last of two holds") {
  Fixture tool;
  tool.parse({"a.ooc", "--dropout", "0", "--dropout", "0.75"});
  CHECK(tool.epochs == 200);
  CHECK(tool.dropout == 0.75);
  CHECK_FALSE(tool.residual);
  CHECK_FALSE(tool.command.given("epochs"));
}

TEST_CASE("command: a wrong value names the option and what it takes") {
  const auto refused = [](const char* option, const char* value) {
    return Fixture().error({"a.ooc", option, value});
  };
  CHECK(refused("--epochs", "many") ==
        "--epochs cannot be 'many', command line; it takes a whole number from 1 up");
  CHECK(refused("--epochs", "0") ==
        "--epochs cannot be '0', command line; it takes a whole number from 1 up");
  CHECK(refused("--epochs", "-3") ==
        "--epochs cannot be '-3', command line; it takes a whole number from 1 up");
  CHECK(refused("--epochs", "9223372036854775808") ==
        "--epochs cannot be '9223372036854775808', command line; it takes a whole number from 1 "
        "up");
  CHECK(refused("--epochs", "5x") ==
        "--epochs cannot be '5x', command line; it takes a whole number from 1 up");
  CHECK(refused("--num-layers", "65") ==
        "--layers cannot be '65', command line; it takes a whole number from 1 to 64");
  CHECK(refused("--dropout", "1") ==
        "--dropout cannot be '1', command line; it takes a number from 0 up to but below 1");
  CHECK(refused("--dropout", "nan") ==
        "--dropout cannot be 'nan', command line; it takes a number from 0 up to but below 1");
  CHECK(refused("--norm", "bach") ==
        "--norm cannot be 'bach', command line; it takes none or batch");
  for (const char* const size : {"lots", "8", "4096", "8X"}) {
    CHECK(refused("--host-memory", size) ==
          std::string("--host-memory cannot be '") + size +
              "', command line; it takes a size such as 512MiB, 4GiB or 1.5G; bytes where "
              "it has no unit, from 1 MiB up");
  }
  CHECK(Fixture().error({"a.ooc", "--output", ""}) ==
        "--output cannot be '', command line; it takes a path");
  CHECK(Fixture().error({"a.ooc", "--epochs"}) ==
        "--epochs has no value, command line; it takes a whole number from 1 up");
  CHECK(Fixture().error({"a.ooc", "--epochs", "--residual"}) ==
        "--epochs has no value, command line; it takes a whole number from 1 up");
  CHECK(Fixture().error({"a.ooc", "--residual=maybe"}) ==
        "--residual cannot be 'maybe', command line; it takes true or false");
}

TEST_CASE("command: an unknown option names the closest one") {
  CHECK(Fixture().error({"a.ooc", "--epoch", "5"}) ==
        "unknown option --epoch, command line; did you mean --epochs? see tool --help");
  CHECK(Fixture().error({"--num_layers=5", "a.ooc"}) ==
        "unknown option --num_layers, command line; did you mean --num-layers? see tool --help");
  CHECK(Fixture().error({"a.ooc", "--entirely-different"}) ==
        "unknown option --entirely-different, command line; see tool --help");
  CHECK(Fixture().error({"a.ooc", "b.ooc"}) ==
        "unexpected argument 'b.ooc', command line; see tool --help");
  CHECK(Fixture().error({"-x", "a.ooc"}) == "unknown option -x, command line; see tool --help");
}

TEST_CASE("command: a required argument that is missing is named") {
  CHECK(Fixture().error({"--epochs", "5"}) ==
        "NAME.ooc is missing, command line; it takes the dataset to train on: see tool --help");
}

TEST_CASE("command: a configuration file gives options under the same names") {
  Fixture tool;
  const ConfigFile config(
      "dataset = 'a.ooc'\nepochs = 7\ndropout = 0.125\nnum-layers = 3\nresidual = true\n"
      "norm = \"batch\"\nhost-memory = '2G'\n");
  tool.parse({"--config", config.path(), "--epochs", "9"});
  CHECK(tool.dataset == "a.ooc");
  CHECK(tool.epochs == 9);  // the command line wins
  CHECK(tool.layers == 3);
  CHECK(tool.dropout == 0.125);
  CHECK(tool.residual);
  CHECK(tool.norm == Norm::kBatch);
  CHECK(tool.memory == 2LL << 30);
  CHECK(tool.command.given("norm"));
}

TEST_CASE("command: what is wrong in a configuration file is named with its line") {
  const auto error = [](std::string_view text) {
    const ConfigFile config(text);
    std::string message = Fixture().error({"a.ooc", "--config", config.path()});
    const std::size_t path = message.find(config.path());
    if (path != std::string::npos) message.replace(path, std::strlen(config.path()), "FILE");
    return message;
  };
  CHECK(error("\nepoch = 5\n") ==
        "unknown option epoch, FILE line 2; did you mean epochs? see tool --help");
  CHECK(error("epochs = 'many'") ==
        "--epochs cannot be 'many', FILE line 1; it takes a whole number from 1 up");
  CHECK(error("epochs = 1.5") ==
        "--epochs cannot be '1.5', FILE line 1; it takes a whole number from 1 up");
  CHECK(error("config = 'other.toml'") ==
        "a configuration file cannot name another, FILE line 1; leave it out");
  CHECK_THAT(error("[train]\nepochs = 5"),
             Catch::Contains("train is neither a text, a number nor true or false, FILE line 1"));
  CHECK_THAT(error("a = 1\nepochs ="), Catch::Contains("FILE line 2; write it as TOML"));
  CHECK_THROWS_AS(Fixture().parse({"a.ooc", "--config", "/nowhere/a.toml"}), DataError);
}

TEST_CASE("command: commands of a program have their own options") {
  CLI::App app{"A test program", "tool"};
  Command program(app);
  std::string directory;
  bool imported = false;
  Command& import = program.subcommand("import", "Import");
  import.positional("DIR", "directory", directory, "a directory");
  import.action([&] { imported = true;
});
program.subcommand("verify", "Verify").action([] {});
const auto parse = [&](std::vector<const char*> arguments) -> Command& {
  arguments.insert(arguments.begin(), "tool");
  return program.parse(static_cast<int>(arguments.size()), arguments.data());
};
SECTION("the one asked for runs") {
  parse({"import", "verify"}).run();
  CHECK(imported);
  CHECK(directory == "verify");
}
SECTION("none") {
  CHECK_THROWS_WITH(parse({}),
                    "a command is missing, command line; it is import or verify: see tool --help");
}
SECTION("an unknown one") {
  CHECK_THROWS_WITH(
      parse({"imprt", "d"}),
      "unknown command 'imprt', command line; it is import or verify: see tool --help");
}
SECTION("an unknown option of one") {
  CHECK_THROWS_WITH(
      parse({"import", "--quit"}),
      "unknown option --quit, command line; did you mean --quiet? see tool import --help");
}
SECTION("two at once") { CHECK_THROWS_AS(parse({"import", "d", "verify"}), UsageError); }
}  // namespace ooc::cli

}  // namespace ooc::cli
