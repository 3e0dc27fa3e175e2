"""ooc-train on a graph whose tensors are several times its budget, through the real program: the
same losses as in memory, whatever the budget, the policy and the accidents; nothing left behind."""

import ctypes
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import tempfile
import time

import numpy as np
import programs
from programs import MOVED, ZEROS, ProgramTest

VERTICES, FEATURES, CLASSES, DEGREE = 32_000, 96, 8, 8
MIB = 1 << 20
KILLS = 20 if programs.NIGHTLY else 4
OTHER_MODELS = {
    "sage": ("--model", "sage", "--layers", 2, "--hidden", 64),
    "hoisted": ("--model", "gcn", "--layers", 2, "--hidden", 64),
    "gat": ("--model", "gat", "--layers", 2, "--hidden", 16, "--heads", 4),
    "gin": ("--model", "gin", "--layers", 2, "--hidden", 64, "--norm", "batch"),
    # Its row-wise work takes more memory than what is computed once does.
    "wide gin": ("--model", "gin", "--layers", 3, "--hidden", 128),
}


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

    def named_budgets(self, model=MODEL):
        """In MiB: the least that works and the least that is half as fast, from the error of one
        that is too small."""
        options = self.options("refused", "--host-memory", "1MiB", model=model)
        result = self.fail_with(4, "budget", "ooc-train", *options)
        self.assertFalse((self.path / "refused").exists())
        least, comfortable = sizes_in(result.stderr.split("; ", 1)[1])
        return least // MIB, comfortable // MIB

    def small_budget(self, model=MODEL):
        """In MiB; most tensors don't fit."""
        return self.named_budgets(model=model)[0] + 4

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
        """The run must go on at least until then."""
        while len(metrics(self.path / run)) < epoch:
            self.assertIsNone(process.poll(), process.poll() and process.stderr.read())
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
        for model in (self.MODEL, *OTHER_MODELS.values()):
            with self.subTest(model):
                least, comfortable = self.named_budgets(model=model)
                self.assertLessEqual(least, comfortable)
                for budget in (least, comfortable):
                    options = ("--epochs", 1, "--host-memory", f"{budget}MiB", "--force")
                    run = self.train("run", *options, model=model)
                    self.assert_nothing_left(run)

    def test_losses_do_not_depend_on_budget_or_policy(self):
        whole = curve(self.train("whole", "--epochs", 3))
        small = self.small_budget()
        for budget in (small, small + 16, small + 48):
            for policy in ("none", "lru", "dp", "lp") if budget <= small + 16 else ("lp",):
                name = f"{policy}-{budget}"
                options = ("--host-memory", f"{budget}MiB", "--cache-policy", policy)
                run = self.train(name, "--epochs", 3, *options)
                self.assertEqual(curve(run), whole, name)
                self.assert_nothing_left(run)
                if budget == small:
                    self.assert_spilled(run)
                    for key in ZEROS:  # gradients of what ReLU and dropout left
                        self.assertGreater(metrics(run)[-1][key], 0, name)
                predicted = json.loads((run / "summary.json").read_text())["plan_predicted_bytes"]
                for line in metrics(run)[1:]:
                    self.assertEqual(sum(line[key] for key in MOVED + ZEROS), predicted, name)

    def test_other_models_are_the_same_in_little_memory(self):
        for name, model in OTHER_MODELS.items():
            with self.subTest(name):
                budget = self.small_budget(model=model)
                whole = self.train(f"{name}-whole", "--epochs", 2, model=model)
                run = self.train(name, "--epochs", 2, "--host-memory", f"{budget}MiB", model=model)
                self.assertEqual(curve(run), curve(whole))
                self.assertGreater(metrics(run)[-1]["bytes_read"], 0)

    def test_killed_at_random_moments_and_resumed_it_is_the_same_run(self):
        model = ("--layers", 2, "--hidden", 64, "--input-dropout", 0.1)
        budget = ("--host-memory", f"{self.small_budget(model=model)}MiB")
        epochs = ("--epochs", 70, "--eval-every", 5, "--checkpoint-every", 1)
        whole = self.train("whole", *epochs, model=model)
        seconds = statistics.median(line["seconds"] for line in metrics(whole))
        scratch = self.path / "scratch"
        arguments = self.options("run", *epochs, *budget, "--scratch", scratch, model=model)
        randomness = random.Random(int.from_bytes(os.urandom(4), "little"))
        killed, moments = 0, []
        while killed < KILLS:
            process = self.start(*arguments, "--quiet")
            done = len(metrics(self.path / "run"))
            if killed % 4:  # otherwise also before the first epoch
                self.wait_for_epoch(process, "run", done + 1)
            moments.append(round(randomness.uniform(0, 2 * seconds), 4))
            time.sleep(moments[-1])
            process.kill()
            self.assertEqual(process.wait(), -signal.SIGKILL, process.stderr.read())
            killed += 1
            if (self.path / "run" / "config.toml").exists():
                arguments = ("--resume", "run")
        self.succeed("ooc-train", *arguments)
        self.assertEqual(curve(self.path / "run"), curve(whole), f"moments {moments}")
        self.assert_spilled(self.path / "run")
        self.assert_nothing_left(self.path / "run", scratch)

    def test_a_kill_leaves_no_bytes_in_the_default_scratch_directory(self):
        budget = self.small_budget()
        process = self.start(*self.options("run", "--epochs", 1000, "--eval-every", 1000,
                                           "--host-memory", f"{budget}MiB"))  # fmt: skip
        self.wait_for_epoch(process, "run", 1)
        process.kill()
        process.wait()
        self.assertEqual([path for path in self.path.rglob("scratch/*")], [])
        self.succeed("ooc-train", "--resume", "run", "--epochs", 2)
        self.assert_nothing_left(self.path / "run")

    def test_interrupted_in_an_epoch_and_resumed_with_another_budget(self):
        small = self.small_budget()
        epochs = ("--epochs", 12, "--checkpoint-every", 5)
        whole = curve(self.train("whole", *epochs))
        scratch = self.path / "scratch"
        arguments = self.options("run", *epochs, "--host-memory", f"{small}MiB", "--scratch",
                                 scratch)  # fmt: skip
        for budget in (f"{small + 24}MiB", "auto"):
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
        budget = self.small_budget()
        options = ("--host-memory", f"{budget}MiB", "--scratch", small / "scratch")
        error = "(?i)no space left.*small"
        self.fail_with(1, error, "ooc-train", *self.options("run", *options))
        self.assertEqual(metrics(self.path / "run"), [])
        self.assertEqual([path for path in small.rglob("*") if path.is_file()], [])

    def test_scratch_that_is_no_directory_is_refused(self):
        (self.path / "file").write_text("x")
        for scratch in ("file", "file/below"):
            options = self.options("run", "--scratch", scratch)
            self.fail_with(2, f"--scratch cannot be '{scratch}'.*directory", "ooc-train", *options)
        self.assertFalse((self.path / "run").exists())

    def test_no_room_beside_the_run(self):
        """The default scratch directory is in the run's own."""
        small = self.small_directory()
        budget = self.small_budget()
        options = self.options(small / "run", "--host-memory", f"{budget}MiB")
        self.fail_with(1, "(?i)no space left.*small", "ooc-train", *options)


if __name__ == "__main__":
    programs.main()
