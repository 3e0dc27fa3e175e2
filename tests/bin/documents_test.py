"""What docs/tasks.md says of tasks: its table is what the programs take, and its commands work."""

import pathlib
import re
import tomllib

import numpy as np
import programs
from programs import ProgramTest, write_graph

DOCUMENT = (pathlib.Path(__file__).resolve().parents[2] / "docs/tasks.md").read_text()
METRICS = {"accuracy", "micro_f1", "macro_f1", "rocauc", "ap", "rmse", "mae", "r2"}


def words(cell):
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def table():
    """The cells of each task's row: labels, what is returned, losses, metrics, weights."""
    rows = [line.strip("| ").split(" | ") for line in DOCUMENT.splitlines() if "| `" in line]
    return {words(row[0])[0]: row[1:] for row in rows if len(row) == 6}


class TasksDocumentTest(ProgramTest):
    def setUp(self):
        super().setUp()
        raw = write_graph(self.path / "raw", vertices=90)
        random = np.random.default_rng(1)
        self.labels = {
            "single": np.arange(90) % 3,
            "binary": np.arange(90) % 2,
            "multi-label": random.integers(0, 2, (90, 4)),
            "regression": random.normal(size=(90, 2)),
        }
        for task, labels in self.labels.items():
            np.save(raw / "labels.npy", labels)
            imported = ("-o", f"{task}.ooc", "--undirected", "--quiet")
            self.succeed("ooc-prep", "import", "raw", *imported)

    def test_every_task_has_a_row_and_a_command(self):
        self.assertEqual(list(table()), list(self.labels))
        commands = re.findall(r"^    \$ ooc-train (\S+)\.ooc", DOCUMENT, re.M)
        self.assertEqual(commands[: len(self.labels)], list(self.labels))

    def test_commands_work(self):
        for line in re.findall(r"^    \$ (ooc-train .+)$", DOCUMENT, re.M):
            program, dataset, *options = line.split()
            if not (self.path / dataset).exists():
                continue  # a graph of the world's
            task = dataset.removesuffix(".ooc")
            with self.subTest(line):
                run = ("--run-dir", task, "--hidden", 8, "--epochs", 2, "--quiet")
                printed = self.succeed(program, dataset, *options, *run).stdout
                wanted = options[options.index("--metric") + 1].split(",")
                found = re.findall(r"^test (\S+)", printed, re.M)
                self.assertEqual(found, wanted[1:] + wanted[:1])
                config = tomllib.loads((self.path / task / "config.toml").read_text())
                self.assertEqual(config["task"], task)
                self.succeed("ooc-infer", dataset, "--run", task, "-o", f"{task}.csv", "--quiet")

    def test_the_table_is_what_is_taken(self):
        two_classes = {"rocauc", "ap"}
        for task, (_, _, losses, metrics, weights) in table().items():
            plan = ("ooc-train", f"{task}.ooc", "--task", task, "--plan")
            with self.subTest(task):
                for loss in words(losses):
                    self.succeed(*plan, "--loss", loss)
                listed = words(metrics)
                taken = [m for m in listed if task != "single" or m not in two_classes]
                self.succeed(*plan, "--metric", ",".join(taken))
                for metric in METRICS - set(taken):
                    self.fail_with(2, f"--metric {metric} does not fit", *plan, "--metric", metric)
                self.succeed(*plan, *(f"{option}=balanced" for option in words(weights)))
                if "--pos-weight" not in weights:
                    self.fail_with(2, "does not fit --task", *plan, "--pos-weight=2")
                run = ("--run-dir", "run", "--force", "--epochs", 1, "--quiet")
                self.succeed("ooc-train", f"{task}.ooc", "--task", task, *run)
                config = tomllib.loads((self.path / "run/config.toml").read_text())
                self.assertEqual(config["metric"], listed[0])
                self.assertEqual(config["loss"], words(losses)[0])


if __name__ == "__main__":
    programs.main()
