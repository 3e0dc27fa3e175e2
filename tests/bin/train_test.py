"""ooc-train through the real program: what it leaves, what it refuses, and that an interrupted and
resumed run is the uninterrupted one."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import programs
from programs import ProgramTest, write_graph

RUN_FILES = {"config.toml", "program.saga", "plan.json", "metrics.jsonl", "summary.json", "best.h5"}


def metrics(run):
    """The lines of metrics.jsonl that are whole."""
    text = (run / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def curve(run):
    return [
        tuple(line[key] for key in ("epoch", "loss", "train", "valid", "test", "valid_loss"))
        for line in metrics(run)
    ]


class TrainTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.prepare("x.ooc")

    def train(self, *arguments, run="run", **options):
        return self.succeed(
            "ooc-train", "x.ooc", "--run-dir", run, "--hidden", 8, *arguments, **options
        )

    def test_a_run_leaves_what_the_contract_says(self):
        result = self.train("--epochs", 25)
        summary = json.loads((self.path / "run" / "summary.json").read_text())
        self.assertRegex(
            result.stdout, r"best_valid accuracy 0\.\d+ epoch \d+\ntest accuracy 0\.\d+\n\Z"
        )
        self.assertIn(f"epoch {summary['best_epoch']}\n", result.stdout)
        self.assertIn(f"test accuracy {summary['test']:.4f}\n", result.stdout)
        files = set(os.listdir(self.path / "run"))
        checkpoints = {f"checkpoint-{epoch}.h5" for epoch in (10, 20, 25)}
        self.assertEqual(files, RUN_FILES | checkpoints)
        lines = metrics(self.path / "run")
        self.assertEqual([line["epoch"] for line in lines], list(range(1, 26)))
        best = max(lines, key=lambda line: line["valid"])  # the first of equal ones
        self.assertEqual(summary["best_epoch"], best["epoch"])
        self.assertEqual(summary["best_valid"], best["valid"])
        self.assertEqual(summary["test"], best["test"])
        self.assertEqual(summary["last_test"], lines[-1]["test"])
        self.assertGreater(summary["test"], 0.5, "three planted classes were not learnt")
        self.assertEqual(summary["plan_predicted_bytes"], lines[-1]["bytes_read"])

    def test_json_prints_the_summary(self):
        printed = json.loads(self.train("--epochs", 3, "--json").stdout)
        written = json.loads((self.path / "run" / "summary.json").read_text())
        self.assertEqual(printed, written)

    def test_quiet_is_quiet_and_progress_goes_to_stderr(self):
        self.assertEqual(self.train("--epochs", 3, "--quiet", run="a").stderr, "")
        self.assertIn("run directory b", self.train("--epochs", 3, run="b").stderr)

    def test_without_a_name_a_run_gets_one(self):
        self.succeed("ooc-train", "x.ooc", "--epochs", 1)
        (name,) = os.listdir(self.path / "runs")
        self.assertRegex(name, r"\Ax-gcn-\d{8}-\d{6}\Z")

    def test_a_runs_configuration_repeats_it(self):
        options = ["--epochs", 6, "--layers", 3, "--norm", "batch", "--residual", "--linear-head"]
        self.train(*options, "--input-dropout", 0.1, "--seed", 7)
        self.succeed("ooc-train", "--config", "run/config.toml", "--run-dir", "again")
        self.assertEqual(curve(self.path / "run"), curve(self.path / "again"))

    def test_results_do_not_depend_on_threads(self):
        self.train("--epochs", 5, "--threads", 1, run="one")
        self.train("--epochs", 5, "--threads", 2, run="two")
        self.assertEqual(curve(self.path / "one"), curve(self.path / "two"))

    def test_evaluation_and_patience(self):
        self.train("--epochs", 10, "--eval-every", 4)
        evaluated = [line["epoch"] for line in metrics(self.path / "run") if line["valid"]]
        self.assertEqual(evaluated, [4, 8, 10])
        self.train("--epochs", 5000, "--patience", 3, "--lr", 0.5, run="impatient")
        lines = metrics(self.path / "impatient")
        valid = [line["valid"] for line in lines]
        self.assertLess(len(lines), 5000)
        self.assertEqual(valid.index(max(valid)) + 1 + 3, len(lines))

    def test_the_plan_is_printed_and_nothing_is_written(self):
        text = self.succeed("ooc-train", "x.ooc", "--plan").stdout
        self.assertIn("layer2.accum: edges in", text)
        plan = json.loads(self.succeed("ooc-train", "x.ooc", "--plan", "--json").stdout)
        self.assertGreater(plan["arena_bytes"], 0)
        self.assertEqual(sorted(os.listdir(self.path)), ["raw", "x.ooc"])

    def test_a_run_that_exists_is_replaced_by_force_only(self):
        self.train("--epochs", 3)
        before = (self.path / "run" / "metrics.jsonl").read_text()
        arguments = ("ooc-train", "x.ooc", "--run-dir", "run", "--epochs", 4)
        self.fail_with(2, "run directory exists, run; .*--resume run", *arguments)
        self.assertEqual((self.path / "run" / "metrics.jsonl").read_text(), before)
        self.succeed(*arguments, "--force")
        self.assertEqual(len(metrics(self.path / "run")), 4)
        self.assertEqual(sorted(os.listdir(self.path)), ["raw", "run", "x.ooc"])
        other = ("ooc-train", "x.ooc", "--run-dir", "raw", "--force")
        self.fail_with(2, "something else than a run, raw", *other)

    def test_a_loss_that_is_not_finite_ends_the_run(self):
        self.fail_with(
            1,
            "loss.*epoch",
            *("ooc-train", "x.ooc", "--run-dir", "run", "--lr", "1e38", "--epochs", 50),
        )

    def test_a_dataset_that_cannot_be_trained_on(self):
        raw = write_graph(self.path / "nosplits")
        for split in ("train", "valid", "test"):
            (raw / f"{split}_idx.npy").unlink()
        self.succeed("ooc-prep", "import", raw, "-o", "nosplits.ooc", "--undirected", "--quiet")
        self.fail_with(3, "without splits.*, nosplits.ooc; ", "ooc-train", "nosplits.ooc")
        (raw / "features.npy").unlink()
        self.succeed("ooc-prep", "import", raw, "-o", "bare.ooc", "--undirected", "--quiet")
        self.fail_with(3, "without features.*, bare.ooc; ", "ooc-train", "bare.ooc")
        self.assertFalse((self.path / "runs").exists(), "a run directory was left behind")

    def test_no_space_left(self):
        what, options = self.small_disk(64 << 10)
        self.fail_with(
            *(1, f"{what}.*small/run", "ooc-train", "x.ooc", "--run-dir", "small/run"),
            *("--checkpoint-every", 1, "--hidden", 512),
            **options,
        )


class ResumeTest(ProgramTest):
    EPOCHS = 40

    def setUp(self):
        super().setUp()
        self.succeed(
            *("ooc-prep", "generate", "sbm", "--vertices", 6000, "--edges", 40000),
            *("--features", 32, "--classes", 4, "-o", "x.ooc", "--quiet"),
        )

    def start(self, *arguments):
        command = [programs.BIN / "ooc-train", *map(str, arguments)]
        process = subprocess.Popen(
            command, cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def wait_for_epoch(self, process, run, epoch):
        """False if the run ended before."""
        file = self.path / run / "metrics.jsonl"
        while process.poll() is None:
            if file.exists() and file.read_text().count("\n") >= epoch:
                return True
            time.sleep(0.002)
        return False

    def options(self, run, epochs=None):
        return (
            *("x.ooc", "--run-dir", run, "--epochs", epochs or self.EPOCHS, "--hidden", 32),
            *("--norm", "batch", "--checkpoint-every", 7),
        )

    def test_stopped_at_random_epochs_and_resumed_it_is_the_same_run(self):
        self.succeed("ooc-train", *self.options("whole"))
        randomness = random.Random(int.from_bytes(os.urandom(4), "little"))
        stops = sorted(randomness.sample(range(1, self.EPOCHS - 15), 3))
        arguments = self.options("run")
        interrupted = 0
        for stop, number in zip(stops, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)):
            process = self.start(*arguments)
            if self.wait_for_epoch(process, "run", stop):
                process.send_signal(number)
            _, errors = process.communicate(timeout=120)
            if process.returncode == 130:
                interrupted += 1
                self.assertRegex(errors, r"interrupted after epoch \d+, run; continue with ")
                self.assertFalse((self.path / "run" / "summary.json").exists())
            arguments = ("--resume", "run")
        result = self.succeed("ooc-train", "--resume", "run")
        self.assertGreater(interrupted, 0, f"no signal arrived in time: {stops}")
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"), f"stops {stops}")
        whole, resumed = (
            json.loads((self.path / run / "summary.json").read_text()) for run in ("whole", "run")
        )
        for key in ("best_valid", "best_epoch", "test", "last_test", "epochs"):
            self.assertEqual(resumed[key], whole[key], f"{key}, stops {stops}")
        self.assertRegex(result.stdout, r"best_valid accuracy .*\ntest accuracy .*\n\Z")

    def test_a_run_that_was_killed_continues_from_its_checkpoint(self):
        self.succeed("ooc-train", *self.options("whole", 16))
        process = self.start(*self.options("run", 16))
        self.assertTrue(self.wait_for_epoch(process, "run", 9))
        process.kill()
        process.communicate()
        with open(self.path / "run" / "metrics.jsonl", "a") as file:
            file.write('{"epoch": 9, "lo')  # torn by a crash
        self.succeed("ooc-train", "--resume", "run")
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"))

    def test_a_run_killed_before_its_first_checkpoint_starts_over(self):
        self.succeed("ooc-train", *self.options("whole", 5), "--seed", 3)
        process = self.start(*self.options("run", 5), "--seed", 3)
        self.wait_for_epoch(process, "run", 1)
        process.kill()
        process.communicate()
        self.succeed("ooc-train", "--resume", "run")
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"))

    def test_more_epochs_continue_a_finished_run(self):
        self.succeed("ooc-train", *self.options("whole", 12))
        self.succeed("ooc-train", *self.options("run", 8))
        result = self.succeed("ooc-train", "--resume", "run")
        self.assertIn("finished already", result.stderr)
        self.assertIn("test accuracy", result.stdout)
        self.succeed("ooc-train", "--resume", "run", "--epochs", 12)
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"))

    def test_one_process_at_a_time_trains_a_run(self):
        process = self.start(*self.options("run", 100000))
        self.assertTrue(self.wait_for_epoch(process, "run", 8))
        for arguments in (("--resume", "run"), (*self.options("run"), "--force")):
            self.fail_with(2, "another process is training this run, run; ", "ooc-train",
                           *arguments)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        epochs = [line["epoch"] for line in metrics(self.path / "run")]
        self.assertEqual(epochs, list(range(1, len(epochs) + 1)))
        self.assertNotIn(".lock", os.listdir(self.path / "run"))

    def test_other_kernels_of_openblas_are_told_of(self):
        self.succeed("ooc-train", *self.options("run", 2))
        file = self.path / "run" / "plan.json"
        plan = json.loads(file.read_text())
        core = plan["blas_core"]
        result = self.succeed("ooc-train", "--resume", "run", "--epochs", 3)
        self.assertNotIn("OPENBLAS_CORETYPE", result.stderr)
        file.write_text(json.dumps({**plan, "blas_core": "Other"}))
        result = self.succeed("ooc-train", "--resume", "run", "--epochs", 4)
        self.assertIn(f"other kernels than before, {core} instead of Other", result.stderr)

    def test_kernels_of_products_are_named(self):
        free = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        machine = json.loads(self.succeed("ooc-inspect", "--machine", "--json", env=free).stdout)
        result = self.succeed("ooc-train", *self.options("run", 1), env=free)
        plan = json.loads((self.path / "run" / "plan.json").read_text())
        self.assertEqual(plan["blas_core"], machine["blas_core"])
        self.assertIn(f"info: products by {machine['products']}\n", result.stderr)
        self.assertNotIn("warning", result.stderr)
        if not machine["vectors"].startswith("AVX"):
            return  # the names below are those of x86-64's
        self.assertNotIn(plan["blas_core"], ("Prescott", "Nehalem", "Sandybridge"))

        told = {**free, "OPENBLAS_CORETYPE": "Haswell"}
        result = self.succeed("ooc-train", *self.options("told", 1), env=told)
        plan = json.loads((self.path / "told" / "plan.json").read_text())
        self.assertEqual(plan["blas_core"], "Haswell")
        self.assertIn("kernels (AVX2), as OPENBLAS_CORETYPE says", result.stderr)
        wider = machine["vectors"] != "AVX2"
        self.assertEqual("slower than need be" in result.stderr, wider)

        result = self.succeed("ooc-train", *self.options("unknown", 1),
                              env={**free, "OPENBLAS_CORETYPE": "Haswel"})
        self.assertIn("no kernels of this name, OPENBLAS_CORETYPE=Haswel; unset it", result.stderr)
        plan = json.loads((self.path / "unknown" / "plan.json").read_text())
        # Zen is Haswell's kernels for AMD.
        kernels = {"Zen": "Haswell"}.get(machine["blas_core"], machine["blas_core"])
        self.assertIn(plan["blas_core"], (kernels, machine["blas_core"]))

    def test_what_may_not_change_is_refused(self):
        self.succeed("ooc-train", *self.options("run", 2))
        self.succeed("ooc-train", "--resume", "run", "--hidden", 32)
        self.fail_with(
            *(2, r"hidden 64 is not what the run was started with \(32\), run; "),
            *("ooc-train", "--resume", "run", "--hidden", 64),
        )
        self.fail_with(2, "--force beside --resume", "ooc-train", "--resume", "run", "--force")
        self.fail_with(3, "not a run directory.*, x.ooc; ", "ooc-train", "--resume", "x.ooc")

    def test_a_dataset_that_was_moved_is_named_anew(self):
        self.succeed("ooc-train", *self.options("whole", 4))
        for runs in (1, 2):
            run = f"run-{runs}"
            self.succeed("ooc-train", *self.options(run, 2), "--runs", runs)
            self.succeed("ooc-train", "x.ooc", "--resume", run)
            os.rename(self.path / "x.ooc", self.path / "moved.ooc")
            self.fail_with(
                3, r"dataset is not there any more, \S+x.ooc; .*ooc-train NAME.ooc --resume run",
                *("ooc-train", "--resume", run),
            )
            self.prepare("other.ooc", seed=5)
            self.fail_with(
                2, r"other.ooc is not the dataset that the run was started with \(\S+/x.ooc\), run",
                *("ooc-train", "other.ooc", "--resume", run),
            )
            self.succeed("ooc-train", "moved.ooc", "--resume", run, "--epochs", 3)
            self.succeed("ooc-train", "--resume", run, "--epochs", 4)  # it is known from now on
            first = run if runs == 1 else f"{run}/seed-0"
            self.assertEqual(curve(self.path / first), curve(self.path / "whole"))
            os.rename(self.path / "moved.ooc", self.path / "x.ooc")
            shutil.rmtree(self.path / "other.ooc")

    def test_a_damaged_checkpoint_is_an_error(self):
        self.succeed("ooc-train", *self.options("run", 2))
        checkpoint = self.path / "run" / "checkpoint-2.h5"
        checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
        self.fail_with(
            3, "checkpoint-2.h5", "ooc-train", "--resume", "run", "--epochs", 4
        )

    def test_nohup_keeps_it_going(self):
        command = [programs.BIN / "ooc-train", *map(str, self.options("run", 100000))]
        process = subprocess.Popen(
            command, cwd=self.path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        self.assertTrue(self.wait_for_epoch(process, "run", 1))
        process.send_signal(signal.SIGHUP)
        done = len(metrics(self.path / "run"))
        self.assertTrue(self.wait_for_epoch(process, "run", done + 5))
        process.kill()
        process.communicate()

    def test_a_second_signal_ends_it_at_once(self):
        process = self.start(*self.options("run", 100000))
        self.assertTrue(self.wait_for_epoch(process, "run", 1))
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (130, -signal.SIGTERM))


if __name__ == "__main__":
    programs.main()
