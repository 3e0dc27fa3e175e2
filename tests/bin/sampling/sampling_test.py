"""Sampled training through the real programs: what it prints, leaves and refuses, that its budget
is kept, and that an interrupted and resumed run is the uninterrupted one."""

import json
import os
import random
import re
import signal
import subprocess
import time

import numpy as np
import programs
from programs import ProgramTest, write_graph
from train_test import RUN_FILES, curve, metrics

MIB = 1 << 20
KILLS = 20


def both(option):
    """What an error says that names --fanouts and this."""
    return f"(?=.*--fanouts)(?=.*{option})"


class SamplingTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.succeed(
            *("ooc-prep", "generate", "sbm", "--vertices", 2000, "--edges", 12000),
            *("--features", 16, "--classes", 4, "-o", "x.ooc", "--quiet"),
        )

    SAMPLED = ("x.ooc", "--fanouts", "5,3", "--batch-size", 100, "--hidden", 8)

    def train(self, *arguments, run="run"):
        return self.succeed("ooc-train", *self.SAMPLED, "--run-dir", run, *arguments)

    def summary(self, run="run"):
        return json.loads((self.path / run / "summary.json").read_text())

    def test_a_run_leaves_what_the_contract_says(self):
        result = self.train("--epochs", 12)
        summary = self.summary()
        self.assertRegex(
            result.stdout, r"\Abest_valid accuracy 0\.\d+ epoch \d+\ntest accuracy 0\.\d+\n\Z"
        )
        files = set(os.listdir(self.path / "run"))
        self.assertEqual(files, RUN_FILES | {"checkpoint-10.h5", "checkpoint-12.h5"})
        lines = metrics(self.path / "run")
        self.assertEqual([line["epoch"] for line in lines], list(range(1, 13)))
        best = max(lines, key=lambda line: line["valid"])  # the first of equal ones
        self.assertEqual(summary["best_epoch"], best["epoch"])
        self.assertEqual(summary["sampled"], {"valid": best["valid"], "test": best["test"]})
        self.assertGreater(summary["test"], 0.6, "four planted classes were not learnt")
        self.assertLess(lines[-1]["loss"], lines[0]["loss"])
        self.assertEqual(len({line["loss"] for line in lines}), 12)
        self.assertGreater(lines[0]["bytes_read"], 2000 * 16 * 4)
        self.succeed("ooc-train", "--config", "run/config.toml", "--run-dir", "again")
        self.assertEqual(curve(self.path / "again"), curve(self.path / "run"))
        self.assertEqual(self.train("--epochs", 1, "--quiet", run="quiet").stderr, "")

    def test_results_depend_on_neither_threads_nor_memory(self):
        self.train("--epochs", 3, "--threads", 1, "--replace", run="one")
        self.train("--epochs", 3, "--threads", 3, "--replace", run="three")
        self.train("--epochs", 3, "--replace", "--host-memory", "250MiB", run="little")
        self.train("--epochs", 3, run="distinct")
        self.assertEqual(curve(self.path / "one"), curve(self.path / "three"))
        self.assertEqual(curve(self.path / "one"), curve(self.path / "little"))
        self.assertNotEqual(curve(self.path / "one"), curve(self.path / "distinct"))

    def test_fanouts_beyond_all_degrees_take_all_edges(self):
        train = ("ooc-train", "x.ooc", "--batch-size", 100, "--hidden", 8, "--epochs", 2, "--quiet")
        self.succeed(*train, "--fanouts", "-1,-1", "--run-dir", "all")
        for number, sampler in enumerate(("neighbor", "labor")):
            self.succeed(*train, "--fanouts", "1048576,1048576", "--sampler", sampler,
                         "--host-memory", "400MiB", "--run-dir", number)  # fmt: skip
            self.assertEqual(curve(self.path / str(number)), curve(self.path / "all"))

    def test_what_is_refused(self):
        for number, (wrong, error) in enumerate((
            (("--fanouts", 5), "--fanouts 5 has 1 number,.* gcn gathers 2 times.*give 2 numbers"),
            (("--fanouts", "5,3,2"), "--fanouts 5,3,2 has 3 numbers.* gcn gathers 2 times"),
            (("--fanouts", "5,3", "--layers", 3), "--fanouts 5,3 has 2 numbers.*3 times"),
            (("--fanouts", "5,3", "--eval-fanouts", 9), "--eval-fanouts 9 has 1 number,.* 2 times"),
            (("--fanouts", "5,3", "--batch-size", 0), "--batch-size cannot be '0'.*from 1 "),
            (("--batch-size", 7), "--batch-size without --fanouts"),
            (("--replace",), "--replace without --fanouts"),
            (("--eval-fanouts", "5,3"), "--eval-fanouts without --fanouts"),
            (("--fanouts", "5,3", "--devices", "cpu:2"), both("--devices cpu:2")),
            (("--fanouts", "5,3", "--devices", "cuda"), both("--devices cuda")),
            (("--fanouts", "5,3", "--simulate"), both("--simulate")),
            (("--fanouts", "5,3", "--trace", "t.json"), both("--trace")),
            (("--checkpoint-batches", 7), "--checkpoint-batches without --fanouts"),
            (("--eval-fanouts", "exact"), "--eval-fanouts without --fanouts"),
        )):  # fmt: skip
            with self.subTest(wrong):
                self.fail_with(2, error, "ooc-train", "x.ooc", "--run-dir", number, *wrong)
        for fanouts in ("0", "5,0", "-2,3", "a,b", "5,3,", ",5", "5 3", "5.5,3", "99999999,3"):
            with self.subTest(fanouts):
                pattern = re.escape(f"--fanouts cannot be '{fanouts}'") + ".*numbers above 0"
                self.fail_with(2, pattern, "ooc-train", "x.ooc", "--fanouts", fanouts)
        self.fail_with(2, "--fanouts has no value", "ooc-train", "x.ooc", "--fanouts", "")
        self.assertEqual(os.listdir(self.path), ["x.ooc"], "something was left behind")

    def test_a_dataset_that_cannot_be_trained_on(self):
        raw = write_graph(self.path / "raw")
        for split in ("train", "valid", "test"):
            (raw / f"{split}_idx.npy").unlink()
        self.succeed("ooc-prep", "import", raw, "-o", "nosplits.ooc", "--undirected", "--quiet")
        train = ("ooc-train", "nosplits.ooc", "--fanouts", "5,3")
        self.fail_with(3, "without splits.*, nosplits.ooc; ", *train)
        self.fail_with(3, "without splits.*, nosplits.ooc; ", *train, "--plan")
        self.assertFalse((self.path / "runs").exists(), "a run directory was left behind")

    def test_the_plan_is_printed_and_nothing_is_written(self):
        text = self.succeed("ooc-train", *self.SAMPLED, "--plan").stdout
        self.assertIn("12 batches of 100 seeds, fan-outs 5,3\n", text)
        self.assertIn("up to 2000 vertices, by level 100 600 2000\n", text)
        memory = ("--host-memory", "1GiB")
        train = ("ooc-train", *self.SAMPLED, *memory)
        plan = json.loads(self.succeed(*train, "--plan", "--json").stdout)
        self.assertEqual(plan["fanouts"], [5, 3])
        self.assertEqual((plan["batch_size"], plan["batches"]), (100, 12))
        self.assertEqual(plan["host_memory"], 1 << 30)
        self.assertLessEqual(plan["fixed_bytes"] + sum(plan["memory"].values()), 1 << 30)
        self.assertEqual(os.listdir(self.path), ["x.ooc"])
        self.train("--epochs", 1, *memory)
        self.assertEqual(json.loads((self.path / "run/plan.json").read_text()), plan)

    def test_an_epoch_moves_what_the_plan_says(self):
        for memory in ("1GiB", "250MiB"):
            with self.subTest(memory):
                budget = ("--host-memory", memory, "--replace")
                text = self.succeed("ooc-train", *self.SAMPLED, *budget, "--plan").stdout
                self.assertRegex(text, r"\ntraining   12 batches of about \d+ vertices and ")
                self.assertRegex(text, r"\nstorage    reads .*, writes .*, in [\d.e-]+ s at ")
                self.train("--epochs", 2, *budget, "--force")
                plan = json.loads((self.path / "run/plan.json").read_text())["forecast"]
                line = metrics(self.path / "run")[1]  # hot rows are here
                for way in ("bytes_read", "bytes_written"):
                    said = plan[f"{way}_per_epoch"]
                    self.assertAlmostEqual(line[way], said, delta=0.15 * line[way])
                self.assertEqual(
                    self.summary()["plan_predicted_bytes"],
                    plan["bytes_read_per_epoch"] + plan["bytes_written_per_epoch"],
                )
                made = [s for p in line["passes"] for s in p.get("superbatches", ())]
                self.assertEqual(sum(s["batches"] for s in made), 12 + 8)
                for way in ("read", "written"):
                    for of in made:
                        self.assertLessEqual(of[f"bytes_{way}"], 1.02 * of[f"planned_{way}"])

    def test_a_plan_of_a_graph_that_is_not_there(self):
        graph = "vertices=111M,edges=1.6G,features=128,classes=172,train=1.2M"
        options = ("--model", "sage", "--fanouts", "25,10", "--batch-size", 1000)

        def plan(counts, memory):
            command = ("ooc-train", "--plan", "--json", "--graph", counts, *options)
            printed = json.loads(self.succeed(*command, "--host-memory", memory).stdout)
            return {"fixed_bytes": printed["fixed_bytes"], **printed["forecast"]}

        forecast = plan(graph, "16GiB")
        training = forecast["training"]
        self.assertNotIn("evaluation", forecast)
        self.assertEqual((training["batches"], training["superbatches"]), (1200, 1))
        self.assertAlmostEqual(training["batch_vertices"], 170e3, delta=20e3)
        self.assertAlmostEqual(training["edge_bytes"], 2 * 5.2e9, delta=1e9)
        self.assertAlmostEqual(training["input_bytes"], 111e6 * (512 + 16), delta=2e9)
        less = plan(graph, "8GiB")
        self.assertGreater(less["training"]["cold_bytes"], training["cold_bytes"])
        self.assertGreater(less["seconds"], forecast["seconds"])
        # In little there is no memory for any batch that fan-outs allow.
        self.assertLess(plan(graph, "1100MiB")["fixed_bytes"], less["fixed_bytes"] - (50 << 20))
        self.assertEqual(less["fixed_bytes"], forecast["fixed_bytes"])
        half = plan(f"{graph},feature-bytes=2", "16GiB")["training"]
        self.assertLess(half["input_bytes"], 0.6 * training["input_bytes"])
        self.assertGreater(half["hot_share"], training["hot_share"])
        text = self.succeed("ooc-train", "--plan", "--graph", graph, *options).stdout
        self.assertIn("1200 batches of 1000 seeds, fan-outs 25,10\n", text)
        self.fail_with(2, "feature-bytes=3.*feature-bytes=4.2", "ooc-train", "--plan", "--graph",
                       f"{graph},feature-bytes=3", *options)  # fmt: skip
        self.fail_with(4, "the least that works is", "ooc-train", "--plan", "--graph", graph,
                       *options, "--host-memory", "600MiB")  # fmt: skip
        self.assertEqual(os.listdir(self.path), ["x.ooc"])

    def test_inference_scores_as_the_run_does(self):
        self.train("--epochs", 15)
        infer = ("ooc-infer", "x.ooc", "--what", "classes", "--force", "-o", "out.npy")
        self.assertNotEqual(self.summary()["sampled"]["test"], self.summary()["test"])
        self.train("--epochs", 15, "--eval-fanouts", "-1,-1", run="all")
        self.train("--epochs", 15, "--eval-fanouts", "exact", run="exact")
        for run in ("run", "all", "exact"):
            result = self.succeed(*infer, "--run", run).stdout
            self.assertIn(f"test accuracy {self.summary(run)['test']:.4f}\n", result)
            self.assertIn(f"valid accuracy {self.summary(run)['best_valid']:.4f}\n", result)
        self.assertEqual(np.load(self.path / "out.npy").shape, (2000,))
        for run in ("all", "exact"):  # what they say of every epoch is what says the summary
            self.assertNotIn("sampled", self.summary(run))
        valid = [[line["valid"] for line in metrics(self.path / run)] for run in ("all", "exact")]
        np.testing.assert_allclose(*valid, atol=0.003)
        passes = metrics(self.path / "exact")[0]["passes"]
        self.assertEqual(passes[-1]["name"], "exact evaluation")

    def test_several_runs_are_those_of_their_seeds(self):
        self.train("--epochs", 2, "--runs", 2)
        for seed in (0, 1):
            self.train("--epochs", 2, "--seed", seed, run=f"seed-{seed}")
            self.assertEqual(curve(self.path / f"run/seed-{seed}"),
                             curve(self.path / f"seed-{seed}"))  # fmt: skip
        self.assertNotEqual(curve(self.path / "seed-0"), curve(self.path / "seed-1"))
        tests = [self.summary(f"seed-{seed}")["test"] for seed in (0, 1)]
        self.assertAlmostEqual(self.summary()["test"], sum(tests) / 2)


class SampledMemoryTest(ProgramTest):
    def least_of(self, *command):
        pattern = r"the least that works is (\d+) MiB, for batches of up to \d+ vertices"
        result = self.fail_with(4, pattern, *command, "--host-memory", "1MiB")
        return int(re.search(pattern, result.stderr)[1])

    def test_a_budget_too_small_names_one_that_works_and_is_kept(self):
        self.succeed(
            *("ooc-prep", "generate", "sbm", "--vertices", 150000, "--edges", 300000),
            *("--features", 64, "--classes", 5, "-o", "x.ooc", "--quiet"),
        )
        train = ("ooc-train", "x.ooc", "--fanouts", "3,2", "--batch-size", 1000, "--hidden", 8,
                 "--threads", 2, "--epochs", 1, "--quiet", "--run-dir")  # fmt: skip
        least = self.least_of(*train, "refused")
        self.fail_with(4, f"the least that works is {least} MiB", *train, "planned", "--plan",
                       "--host-memory", f"{least - 2}MiB")  # fmt: skip
        self.succeed(*train, "run", "--host-memory", f"{least}MiB")
        summary = json.loads((self.path / "run/summary.json").read_text())
        self.assertGreater(summary["bytes_written_per_epoch"], 0)
        self.assertEqual(set(os.listdir(self.path / "run")), RUN_FILES | {"checkpoint-1.h5"})
        self.succeed(*train, "ample")
        self.assertEqual(curve(self.path / "run"), curve(self.path / "ample"))
        self.assertLessEqual(summary["peak_host_bytes"], least * MIB)
        self.assertEqual(set(os.listdir(self.path)), {"x.ooc", "run", "ample"})


class SampledResumeTest(ProgramTest):
    EPOCHS = 20

    def setUp(self):
        super().setUp()
        self.succeed(
            *("ooc-prep", "generate", "sbm", "--vertices", 3000, "--edges", 18000),
            *("--features", 32, "--classes", 4, "-o", "x.ooc", "--quiet"),
        )

    def options(self, run, epochs=EPOCHS):
        return (
            *("x.ooc", "--run-dir", run, "--epochs", epochs, "--hidden", 16, "--norm", "batch"),
            *("--fanouts", "5,3", "--batch-size", 64, "--checkpoint-every", 7, "--seed", 5),
            *("--checkpoint-batches", 5),
        )

    def start(self, *arguments):
        command = [programs.BIN / "ooc-train", *map(str, arguments)]
        process = subprocess.Popen(
            command, cwd=self.path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for_epoch(self, process, epoch):
        """False if the run ended before."""
        file = self.path / "run" / "metrics.jsonl"
        while process.poll() is None:
            if file.exists() and file.read_text().count("\n") >= epoch:
                return True
            time.sleep(0.001)
        return False

    def check_same(self):
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"))
        whole, resumed = (
            json.loads((self.path / run / "summary.json").read_text()) for run in ("whole", "run")
        )
        for key in ("best_valid", "best_epoch", "test", "last_test", "epochs", "metrics"):
            self.assertEqual(resumed[key], whole[key], key)

    def test_interrupted_and_resumed_it_is_the_same_run(self):
        self.succeed("ooc-train", *self.options("whole"))
        arguments = self.options("run")
        interrupted = 0
        for epoch, number in ((2, signal.SIGINT), (6, signal.SIGTERM), (11, signal.SIGINT)):
            process = self.start(*arguments)
            if self.wait_for_epoch(process, epoch):
                process.send_signal(number)
            _, errors = process.communicate(timeout=120)
            if process.returncode == 130:
                interrupted += 1
                self.assertRegex(errors, r"interrupted after epoch \d+, run; continue with ")
                self.assertFalse((self.path / "run" / "summary.json").exists())
                self.assertNotIn("scratch", os.listdir(self.path / "run"))
            arguments = ("--resume", "run")
        self.succeed("ooc-train", "--resume", "run")
        self.assertGreater(interrupted, 0, "no signal arrived in time")
        self.check_same()

    def test_killed_and_resumed_it_is_the_same_run(self):
        begin = time.monotonic()
        self.succeed("ooc-train", *self.options("whole"))
        duration = time.monotonic() - begin
        arguments = self.options("run")
        moments = random.Random(7)
        killed = inside = 0
        for number in range(KILLS):
            process = self.start(*arguments)
            while not (self.path / "run" / "config.toml").exists() and process.poll() is None:
                time.sleep(0.001)
            if number == 0:
                self.wait_for_epoch(process, 1)  # so that there is time for others
            time.sleep(moments.uniform(0, 2 * duration / KILLS))
            process.kill()
            killed += process.wait() == -signal.SIGKILL
            inside += any("-batch-" in name for name in os.listdir(self.path / "run"))
            arguments = ("--resume", "run")
        self.succeed("ooc-train", "--resume", "run")
        self.assertGreater(killed, KILLS // 2, "it is done too soon")
        self.assertGreater(inside, 0, "never was there a checkpoint inside an epoch")
        self.check_same()
        self.assertNotIn("scratch", os.listdir(self.path / "run"))

    def test_more_epochs_continue_a_finished_run(self):
        self.succeed("ooc-train", *self.options("whole", 12))
        self.succeed("ooc-train", *self.options("run", 8))
        self.assertIn("finished already", self.succeed("ooc-train", "--resume", "run").stderr)
        self.succeed("ooc-train", "--resume", "run", "--epochs", 12, "--host-memory", "400MiB")
        self.check_same()

    def test_what_may_not_change_is_refused(self):
        self.succeed("ooc-train", *self.options("run", 2))
        self.succeed("ooc-train", *self.options("full", 2)[:7])
        config = (self.path / "run/config.toml").read_text()
        self.succeed("ooc-train", "--resume", "run", "--fanouts", "5,3", "--batch-size", 64)
        for wrong, error in (
            (("--fanouts", "5,4"), 'fanouts "5,4" is not what the run was started with.*"5,3"'),
            (("--batch-size", 65), r"batch-size 65 is not what .*\(64\)"),
            (("--replace",), "replace true is not what the run was started with"),
            (("--eval-fanouts", "-1,-1"), "eval-fanouts .* is not what the run was started with"),
            (("--devices", "cpu:2"), both("--devices cpu:2")),
            (("--simulate",), both("--simulate")),
            (("--trace", "t.json"), both("--trace")),
        ):
            with self.subTest(wrong):
                self.fail_with(2, error, "ooc-train", "--resume", "run", *wrong)
        self.assertEqual((self.path / "run/config.toml").read_text(), config)
        self.fail_with(2, "fanouts .* is not what the run was started with",
                       "ooc-train", "--resume", "full", "--fanouts", "5,3")  # fmt: skip


if __name__ == "__main__":
    programs.main()
