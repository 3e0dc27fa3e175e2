"""What all programs have in common: help, version, options, errors and exit codes."""

import os
import re
import subprocess

import programs
from programs import ProgramTest

PROGRAMS = ["ooc-prep", "ooc-inspect", "ooc-train", "ooc-infer"]
COMMANDS = {"ooc-prep": ["import", "generate", "verify"]}


class FrameTest(ProgramTest):
    def test_help_has_examples_for_every_command(self):
        for program in PROGRAMS:
            for command in COMMANDS.get(program, [None]):
                arguments = [command] if command else []
                help_text = self.succeed(program, *arguments, "--help").stdout
                self.assertIn(f"Usage: {' '.join([program, *arguments])} ", help_text)
                self.assertRegex(help_text, rf"Examples:\n  # .+\n  {program}")
                for option in ("--config", "--log-level", "--quiet"):
                    self.assertIn(option, help_text)

    def test_every_example_is_understood(self):
        """Examples are run; they may fail for want of their files, never for their options."""
        (self.path / "mine.saga").write_text(
            "layer mine(in, out) { param w[in, out] vertex { return vertex @ w } }"
        )
        for program in PROGRAMS:
            for command in COMMANDS.get(program, [None]):
                arguments = [command] if command else []
                help_text = self.succeed(program, *arguments, "--help").stdout
                for line in re.findall(rf"^  ({program} .+)$", help_text, re.MULTILINE):
                    if command == "generate":
                        continue  # it would succeed, and slowly
                    result = self.run_program(program, *line.split()[1:])
                    works = ("ooc-inspect --model", "ooc-inspect --machine",
                             "ooc-train --plan --graph")
                    code = 0 if line.startswith(works) else 3
                    self.assertEqual(result.returncode, code, f"{line}: {result.stderr}")

    def test_version(self):
        for program in PROGRAMS:
            self.assertRegex(
                self.succeed(program, "--version").stdout, rf"\A{program} \d+\.\d+\.\d+\n\Z"
            )

    def test_unknown_options_name_the_closest(self):
        self.fail_with(
            2, "unknown option --forc, .*did you mean --force", "ooc-prep", "import", "x", "--forc"
        )
        self.fail_with(
            2, "unknown option --epoch, .*did you mean --epochs", "ooc-train", "x", "--epoch", "5"
        )

    def test_unknown_commands_and_missing_arguments(self):
        result = self.run_program("ooc-prep", "improt")
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown command 'improt', command line; it is import", result.stderr)
        self.assertEqual(self.run_program("ooc-prep").returncode, 2)
        self.fail_with(2, "nothing to inspect", "ooc-inspect")
        self.fail_with(2, "--output has no value", "ooc-prep", "import", "x", "-o")

    def test_wrong_values_name_the_option_and_what_it_takes(self):
        self.fail_with(
            2,
            "--epochs cannot be 'many', command line; it takes a whole number",
            *("ooc-train", "x.ooc", "--epochs", "many"),
        )
        self.fail_with(
            2,
            "--norm cannot be 'bach', command line; it takes none, batch or layer",
            *("ooc-train", "x.ooc", "--norm", "bach"),
        )

    def test_configuration_files(self):
        config = self.path / "a.toml"
        config.write_text("\nepoch = 5\n")
        self.fail_with(
            2,
            "unknown option epoch, a.toml line 2; did you mean epochs",
            *("ooc-train", "x.ooc", "--config", "a.toml"),
        )
        config.write_text("epochs = 'many'\n")
        self.fail_with(
            2, "a.toml line 1; it takes", "ooc-train", "x.ooc", "--config", "a.toml"
        )
        self.fail_with(3, "none.toml", "ooc-train", "x.ooc", "--config", "none.toml")

    def test_what_is_no_dataset(self):
        (self.path / "empty.ooc").mkdir()
        (self.path / "file.ooc").write_text("")
        for name, what in (
            ("missing.ooc", "not found"),
            ("empty.ooc", "not a dataset"),
            ("file.ooc", "not a dataset"),
        ):
            self.fail_with(3, f"{what}.*, {name}; ", "ooc-prep", "verify", name)
            self.fail_with(3, f"{what}.*, {name}; ", "ooc-train", name)
        self.fail_with(3, "neither a dataset nor a run", "ooc-inspect", "empty.ooc")

    def test_debug_adds_detail(self):
        result = self.run_program(
            "ooc-inspect", "missing", env={**os.environ, "OOC_DEBUG": "1"}
        )
        lines = result.stderr.splitlines()
        self.assertRegex(lines[0], "^ooc-inspect: error: not found")
        self.assertIn("DataError", lines[1])

    def test_results_that_cannot_be_written_are_no_success(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run(
                [programs.BIN / "ooc-prep", "--help"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
            )
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write results: no space left", result.stderr)


if __name__ == "__main__":
    programs.main()
