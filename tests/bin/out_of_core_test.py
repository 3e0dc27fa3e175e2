"""ooc-train on a graph whose tensors are several times its budget, through the real program: the
same losses as in memory, whatever the budget, the policy and the accidents; nothing left behind."""

import ctypes
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import time

import numpy as np
import programs
from programs import ProgramTest

VERTICES, FEATURES, CLASSES, DEGREE = 48_000, 96, 8, 8
MIB = 1 << 20
KILLS = 20


def metrics(run):
    """The lines of metrics.jsonl that are whole."""
    path = run / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def curve(run):
    keys = ("epoch", "loss", "train", "valid", "test", "valid_loss")
    return [tuple(line[key] for key in keys) for line in metrics(run)]


def sizes_in(text):
    """Sizes as users write them, in bytes."""
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    found = re.findall(r"([\d.]+) ?([KMG]iB)", text)
    return [int(float(number) * units[unit]) for number, unit in found]


def resident_peak(process):
    """The kernel's high-water mark of a process, in bytes; 0 where it has ended."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def write_graph(directory):
    """Planted classes, and blocks small enough that there are many."""
    numbers = np.random.default_rng(7)
    directory.mkdir()
    labels = numbers.integers(0, CLASSES, VERTICES)
    members = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[members], np.arange(CLASSES + 1))
    begin = numbers.integers(0, VERTICES, VERTICES * DEGREE // 2)
    own = labels[begin]
    width = starts[own + 1] - starts[own]
    same = members[starts[own] + (numbers.random(len(begin)) * width).astype(np.int64)]
    other = numbers.integers(0, VERTICES, len(begin))
    end = np.where(numbers.random(len(begin)) < 0.7, same, other)
    features = numbers.normal(size=(VERTICES, FEATURES)) + numbers.normal(
        size=(CLASSES, FEATURES))[labels] / 2
    np.save(directory / "edges.npy", np.stack([begin, end], axis=1))
    np.save(directory / "features.npy", features.astype(np.float32))
    np.save(directory / "labels.npy", labels)
    for name, ids in zip(("train", "valid", "test"),
                         np.array_split(numbers.permutation(VERTICES), 3)):
        np.save(directory / f"{name}_idx.npy", np.sort(ids))


class OutOfCoreTest(ProgramTest):
    # Input dropout: nothing is hoisted, so that widths are carried through all layers.
    MODEL = ("--layers", 3, "--hidden", 64, "--input-dropout", 0.1)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        temporary = tempfile.TemporaryDirectory(prefix="ooc-test-")
        cls.addClassCleanup(temporary.cleanup)
        raw = pathlib.Path(temporary.name) / "raw"
        cls.dataset = raw.with_name("x.ooc")
        write_graph(raw)
        imports = ("import", raw, "-o", cls.dataset, "--undirected", "--block-rows", "1024")
        subprocess.run([programs.BIN / "ooc-prep", *imports, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip

    def options(self, run, *more, model=MODEL):
        return (self.dataset, "--run-dir", run, *model, *more)

    def train(self, run, *more, model=MODEL):
        """Trains; with a budget, neither what the run says of its peak nor what the kernel said
        while it ran is above it. Returns the run's directory."""
        process = self.start(*self.options(run, *more, model=model), "--quiet")
        peak = 0
        while process.poll() is None:
            peak = max(peak, resident_peak(process.pid))
            time.sleep(0.01)
        self.assertEqual(process.returncode, 0, process.stderr.read())
        if "--host-memory" in more:
            (budget,) = sizes_in(more[more.index("--host-memory") + 1])
            summary = json.loads((self.path / run / "summary.json").read_text())
            self.assertLessEqual(max(peak, summary["peak_host_bytes"]), budget)
        return self.path / run

    def least_budget(self, *more, model=MODEL):
        """In MiB, from the error of a budget that is too small."""
        result = self.fail_with(
            *(4, "budget", "ooc-train"),
            *self.options("refused", "--host-memory", "1MiB", *more, model=model),
        )
        named = sizes_in(result.stderr.split("; ")[-1])
        self.assertGreaterEqual(len(named), 2, result.stderr)
        self.assertFalse((self.path / "refused" / "metrics.jsonl").exists())
        return -(-named[0] // MIB), -(-named[1] // MIB)

    def start(self, *arguments):
        process = subprocess.Popen(
            [programs.BIN / "ooc-train", *map(str, arguments)], cwd=self.path,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for_epoch(self, process, run, epoch):
        while process.poll() is None and len(metrics(self.path / run)) < epoch:
            time.sleep(0.002)

    def assert_spilled(self, run):
        """It moved tensors in every epoch; otherwise the test says nothing."""
        last = metrics(run)[-1]
        self.assertGreater(last["bytes_written"], MIB)
        self.assertGreater(last["bytes_read"], last["bytes_written"])

    def assert_nothing_left(self, run, scratch=None):
        self.assertFalse((run / "scratch").exists(), "the default scratch directory is left")
        if scratch is not None:
            self.assertEqual(list(scratch.rglob("*")), [])

    def test_a_budget_too_small_names_one_that_does(self):
        least, comfortable = self.least_budget()
        self.assertLess(least, comfortable)
        for number, budget in enumerate((least, comfortable)):
            run = self.train(f"run{number}", "--epochs", 1, "--host-memory", f"{budget}MiB")
            self.assert_nothing_left(run)

    def test_losses_do_not_depend_on_budget_or_policy(self):
        whole = curve(self.train("whole", "--epochs", 3))
        least, _ = self.least_budget()
        for budget in (least, least + 16, least + 48):
            for policy in ("none", "lru", "dp", "lp"):
                name = f"{policy}-{budget}"
                run = self.train(name, "--epochs", 3, "--host-memory", f"{budget}MiB",
                                 "--cache-policy", policy)  # fmt: skip
                self.assertEqual(curve(run), whole, name)
                self.assert_nothing_left(run)
                if budget == least:
                    self.assert_spilled(run)

    def test_bytes_are_the_plans(self):
        least, _ = self.least_budget()
        for policy in ("none", "dp", "lp"):
            run = self.train(policy, "--epochs", 3, "--host-memory", f"{least + 16}MiB",
                             "--cache-policy", policy)  # fmt: skip
            predicted = json.loads((run / "summary.json").read_text())["plan_predicted_bytes"]
            for line in metrics(run)[1:]:
                self.assertEqual(line["bytes_read"] + line["bytes_written"], predicted, policy)

    def test_other_models_within_their_least_budget(self):
        for name, model in {
            "sage": ("--model", "sage", "--layers", 2, "--hidden", 64),
            "hoisted": ("--model", "gcn", "--layers", 2, "--hidden", 64),
            "gat": ("--model", "gat", "--layers", 2, "--hidden", 16, "--heads", 4),
            "gin": ("--model", "gin", "--layers", 2, "--hidden", 64, "--norm", "batch"),
        }.items():
            with self.subTest(name):
                least, _ = self.least_budget(model=model)
                whole = self.train(f"{name}-whole", "--epochs", 2, model=model)
                run = self.train(name, "--epochs", 2, "--host-memory", f"{least}MiB", model=model)
                self.assertEqual(curve(run), curve(whole))
                self.assertGreater(metrics(run)[-1]["bytes_read"], 0)

    def test_killed_at_random_moments_and_resumed_it_is_the_same_run(self):
        least, _ = self.least_budget()
        budget = ("--host-memory", f"{least}MiB")
        epochs = ("--epochs", 50, "--eval-every", 5, "--checkpoint-every", 1)
        whole = self.train("whole", *epochs)
        seconds = max(line["seconds"] for line in metrics(whole))
        scratch = self.path / "scratch"
        arguments = self.options("run", *epochs, *budget, "--scratch", scratch)
        randomness = random.Random(int.from_bytes(os.urandom(4), "little"))
        killed, moments = 0, []
        for number in range(KILLS):
            process = self.start(*arguments, "--quiet")
            done = len(metrics(self.path / "run"))
            if number % 4:  # otherwise also before the first epoch
                self.wait_for_epoch(process, "run", done + 1)
            moments.append(round(randomness.uniform(0, 2 * seconds), 4))
            time.sleep(moments[-1])
            process.kill()
            killed += process.wait() == -signal.SIGKILL
            if (self.path / "run" / "config.toml").exists():
                arguments = ("--resume", "run")
        self.assertGreater(killed, KILLS * 3 // 4, f"moments {moments}")
        self.succeed("ooc-train", *arguments)
        self.assertEqual(curve(self.path / "run"), curve(whole), f"moments {moments}")
        self.assert_spilled(self.path / "run")
        self.assert_nothing_left(self.path / "run", scratch)

    def test_a_kill_leaves_no_bytes_in_the_default_scratch_directory(self):
        least, _ = self.least_budget()
        process = self.start(*self.options("run", "--epochs", 1000, "--eval-every", 1000,
                                           "--host-memory", f"{least}MiB"))  # fmt: skip
        self.wait_for_epoch(process, "run", 1)
        process.kill()
        process.wait()
        self.assertEqual([path for path in self.path.rglob("scratch/*")], [])
        self.succeed("ooc-train", "--resume", "run", "--epochs", 2)
        self.assert_nothing_left(self.path / "run")

    def test_interrupted_in_an_epoch_and_resumed_with_another_budget(self):
        least, _ = self.least_budget()
        epochs = ("--epochs", 12, "--checkpoint-every", 5)
        whole = curve(self.train("whole", *epochs))
        scratch = self.path / "scratch"
        arguments = self.options("run", *epochs, "--host-memory", f"{least}MiB", "--scratch",
                                 scratch)  # fmt: skip
        for budget in (f"{least + 24}MiB", "auto"):
            process = self.start(*arguments)
            done = len(metrics(self.path / "run"))
            self.wait_for_epoch(process, "run", done + 2)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, errors)
            self.assertRegex(errors, r"interrupted after epoch \d+, run; continue with ")
            self.assert_nothing_left(self.path / "run", scratch)
            arguments = ("--resume", "run", "--host-memory", budget)
        self.succeed("ooc-train", *arguments)
        self.assertEqual(curve(self.path / "run"), whole)
        self.assert_nothing_left(self.path / "run", scratch)

    def small_directory(self):
        """A file system of 4 MiB."""
        small = self.path / "small"
        small.mkdir()
        libc = ctypes.CDLL(None)
        if libc.mount(b"tmpfs", str(small).encode(), b"tmpfs", 0, b"size=4m") != 0:
            self.skipTest("only root may mount a small file system")
        self.addCleanup(libc.umount, str(small).encode())
        return small

    def test_no_room_for_scratch_is_known_before_any_work(self):
        small = self.small_directory()
        least, _ = self.least_budget()
        options = ("--host-memory", f"{least}MiB", "--scratch", small / "scratch")
        error = "(?i)no space left.*small"
        self.fail_with(1, error, "ooc-train", *self.options("run", *options))
        self.assertEqual(metrics(self.path / "run"), [])
        self.assertEqual([path for path in small.rglob("*") if path.is_file()], [])
        # The run is none the worse for it.
        whole = curve(self.train("whole", "--epochs", 2))
        self.succeed("ooc-train", "--resume", "run", "--epochs", 2, "--scratch", "elsewhere")
        self.assertEqual(curve(self.path / "run"), whole)

    def test_no_room_beside_the_run(self):
        """The default scratch directory is in the run's own."""
        small = self.small_directory()
        least, _ = self.least_budget()
        options = self.options(small / "run", "--host-memory", f"{least}MiB")
        self.fail_with(1, "(?i)no space left.*small", "ooc-train", *options)


if __name__ == "__main__":
    programs.main()
