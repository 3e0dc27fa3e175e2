"""Training on batches from a file through the real programs: that it is what sampling anew does
with the same batches, resumes to the same run, and says what it can't do."""

import json
import os
import shutil

import numpy as np
import programs
from programs import ProgramTest, write_graph
from train_test import RUN_FILES, curve, metrics

HOPS = ("--fanouts", "5,3", "--batch-size", 100)


class BatchesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        raw = write_graph(self.path / "raw", vertices=1500, degree=10)  # 5 batches a split
        self.succeed("ooc-prep", "import", raw, "-o", "x.ooc", "--undirected", "--quiet",
                     "--order", "random")  # fmt: skip

    def sample(self, *options, name="x.batches", dataset="x.ooc"):
        self.succeed("ooc-prep", "sample", dataset, *HOPS, "-o", name, "--quiet", *options)

    def train(self, data, run, *options):
        self.succeed("ooc-train", data, "--model", "sage", "--hidden", 8, "--norm", "batch",
                     "--run-dir", run, "--quiet", *options)  # fmt: skip
        return metrics(self.path / run)

    def test_the_epochs_that_were_sampled_are_those_of_sampling_anew(self):
        self.sample("--epochs", 2, "--seed", 3)
        stored = self.train("x.batches", "stored", "--epochs", 5, "--seed", 3, "--dropout", 0.5)
        anew = self.train("x.ooc", "anew", *HOPS, "--epochs", 5, "--seed", 3, "--dropout", 0.5)
        for epoch in (0, 1):
            self.assertEqual(stored[epoch]["loss"], anew[epoch]["loss"])
        self.assertEqual(stored[0]["valid"], anew[0]["valid"])  # evaluations of the first epoch
        self.assertEqual(len({line["loss"] for line in stored}), 5)
        self.assertNotEqual(stored[2]["loss"], anew[2]["loss"])
        # Nothing of the dataset is read.
        shutil.rmtree(self.path / "x.ooc")
        again = self.train("x.batches", "again", "--epochs", 5, "--seed", 3, "--dropout", 0.5,
                           "--threads", 1)  # fmt: skip
        self.assertEqual(curve(self.path / "again"), curve(self.path / "stored"))
        self.assertLess(again[0]["bytes_read"],
                        (self.path / "x.batches/batches").stat().st_size)  # fmt: skip
        self.assertEqual(set(os.listdir(self.path / "again")), RUN_FILES | {"checkpoint-5.h5"})

    def test_of_vertices_with_few_edges_that_have_a_chance(self):
        weights = np.random.default_rng(5).random(len(np.load(self.path / "raw/edges.npy")))
        np.save(self.path / "w.npy", np.where(weights < 0.8, 0, weights).astype(np.float32))
        self.succeed("ooc-prep", "import", "raw", "-o", "w.ooc", "--quiet", "--edge-weights",
                     "w.npy")  # fmt: skip
        self.sample("--weighted", "--seed", 3, dataset="w.ooc", name="w.batches")
        sums = ("--model", "gin", "--edge-weights", "ignore", "--seed", 3, "--epochs", 1)
        stored = self.train("w.batches", "stored", *sums)
        anew = self.train("w.ooc", "anew", *HOPS, "--weighted", *sums)
        self.assertEqual(stored[0]["loss"], anew[0]["loss"])

    def test_a_run_goes_on_where_it_was_and_serves_the_dataset(self):
        self.sample()
        self.train("x.batches", "whole", "--epochs", 6, "--class-weights", "balanced")
        self.train("x.batches", "run", "--epochs", 3, "--class-weights", "balanced")
        (self.path / "x.batches").rename(self.path / "moved.batches")
        self.fail_with(3, "the run's dataset is not there any more", "ooc-train", "--resume", "run")
        self.succeed("ooc-train", "moved.batches", "--resume", "run", "--epochs", 6, "--quiet")
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"))
        result = self.succeed("ooc-infer", "x.ooc", "--run", "run", "-o", "out.npy").stdout
        self.assertRegex(result, r"test accuracy 0\.\d+")
        self.sample("--seed", 9, name="others.batches")
        self.fail_with(2, "others.batches is not the dataset that the run was started with",
                       "ooc-train", "others.batches", "--resume", "run")  # fmt: skip
        self.fail_with(2, "x.ooc is not the dataset that the run was started with",
                       "ooc-train", "x.ooc", "--resume", "run")  # fmt: skip

    def test_the_plan_says_what_is_needed_and_least_memory_is_enough(self):
        self.sample("--epochs", 3)
        train = ("ooc-train", "x.batches", "--epochs", 1)
        text = self.succeed(*train, "--plan").stdout
        self.assertIn("5 batches of 100 seeds, fan-outs 5,3, sampled for 3 epochs\n", text)
        plan = json.loads(self.succeed(*train, "--plan", "--json").stdout)
        least = -(-plan["needed_bytes"] >> 20) + 1
        self.fail_with(4, "the least that works is", *train, "--host-memory", "1MiB")
        self.succeed(*train, "--host-memory", f"{least}MiB", "--run-dir", "run", "--threads", 2)
        line = metrics(self.path / "run")[0]
        self.assertLessEqual(line["peak_host_bytes"], least << 20)
        self.assertEqual(line["bytes_read"], plan["forecast"]["bytes_read_per_epoch"])

    def test_what_is_refused(self):
        self.sample()
        self.sample("--seeds", "valid", name="valid.batches")
        for wrong, error in (
            (("--fanouts", "5,4"), "sampled with --fanouts 5,3 --batch-size 100, x.batches"),
            ((*HOPS, "--replace"), "sampled with --fanouts 5,3 --batch-size 100, x.batches"),
            ((*HOPS, "--eval-fanouts", "exact"), "sampled with --fanouts 5,3 --batch-size 100"),
            (("--batch-size", 50), "sampled with --fanouts 5,3 --batch-size 100, x.batches"),
            (("--layers", 3), "--fanouts 5,3 has 2 numbers, and gcn gathers 3 times"),
            (("--devices", "cpu:2"), "--fanouts with --devices cpu:2"),
            (("--simulate",), "--simulate with --fanouts"),
        ):
            with self.subTest(wrong):
                self.fail_with(2, error, "ooc-train", "x.batches", "--run-dir", "run", *wrong)
        self.succeed("ooc-train", "x.batches", *HOPS, "--epochs", 1, "--run-dir", "same",
                     "--checkpoint-batches", 2)  # fmt: skip
        self.succeed("ooc-train", "x.ooc", "--epochs", 1, "--run-dir", "full", "--quiet")
        (self.path / "x.ooc").rename(self.path / "kept.ooc")
        shutil.copytree(self.path / "x.batches", self.path / "x.ooc")
        self.fail_with(3, "the run was trained on a dataset, there are batches now",
                       "ooc-train", "--resume", "full", "--epochs", 2)  # fmt: skip
        self.fail_with(3, "batches without training seeds, valid.batches; sample them with",
                       "ooc-train", "valid.batches", "--run-dir", "run")  # fmt: skip
        self.fail_with(3, "dataset not found", "ooc-train", "none.batches", "--run-dir", "run")
        with open(self.path / "x.batches/batches", "r+b") as file:
            file.seek(8192)
            byte = file.read(1)
            file.seek(8192)
            file.write(bytes([byte[0] ^ 1]))
        self.fail_with(3, r"checksum.*x\.batches/batches.*sample the batches again",
                       "ooc-train", "x.batches", "--run-dir", "damaged")  # fmt: skip
        self.assertFalse((self.path / "run").exists())

    def test_a_model_that_needs_the_whole_graph(self):
        raw = write_graph(self.path / "weighted", vertices=300)


        edges = np.load(raw / "edges.npy")
        np.save(raw / "weights.npy", np.linspace(0.5, 2, len(edges), dtype=np.float32))
        self.succeed("ooc-prep", "import", raw, "-o", "w.ooc", "--quiet",
                     "--edge-weights", raw / "weights.npy")  # fmt: skip
        self.sample(name="w.batches", dataset="w.ooc")
        self.fail_with(2, "gcn reads sums over all edges of the graph, which batches don't have",
                       "ooc-train", "w.batches", "--run-dir", "run")  # fmt: skip
        self.assertFalse((self.path / "run").exists())
        self.succeed("ooc-train", "w.batches", "--edge-weights", "ignore", "--epochs", 1,
                     "--run-dir", "run")  # fmt: skip


if __name__ == "__main__":
    programs.main()
