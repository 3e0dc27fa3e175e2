"""Inference by sampled batches through the real program."""

import os

import numpy as np
import programs
from programs import ProgramTest, write_graph


class SampledInferenceTest(ProgramTest):
    def infer(self, *arguments, dataset="x.ooc"):
        result = self.succeed("ooc-infer", dataset, "--run", "run", "--force", "-o", "out.npy",
                              *arguments)  # fmt: skip
        return result.stdout, np.load(self.path / "out.npy")

    def setUp(self):
        super().setUp()
        raw = write_graph(self.path / "raw", vertices=3000, degree=10)
        for name, order in (("x.ooc", "natural"), ("y.ooc", "random")):
            self.succeed("ooc-prep", "import", raw, "-o", name, "--undirected", "--quiet",
                         "--order", order)  # fmt: skip
        self.succeed("ooc-train", "x.ooc", "--model", "sage", "--hidden", 8, "--fanouts", "5,3",
                     "--norm", "batch", "--epochs", 4, "--run-dir", "run", "--quiet")  # fmt: skip

    def test_all_edges_by_batches_are_all_edges(self):
        for dataset in ("x.ooc", "y.ooc"):
            scores, exact = self.infer(dataset=dataset)
            batches, rows = self.infer("--fanouts", "-1,-1", "--batch-size", 700, dataset=dataset)
            np.testing.assert_allclose(rows, exact, rtol=1e-4, atol=1e-5)
            self.assertEqual(batches, scores)
        embeddings = ("--what", "embeddings", "--metric", "macro_f1")
        scores, exact = self.infer(*embeddings)
        batches, rows = self.infer(*embeddings, "--fanouts", "-1,-1", "--batch-size", 3000)
        np.testing.assert_allclose(rows, exact, rtol=1e-4, atol=1e-5)
        self.assertEqual(batches, scores)

    def test_samples_are_the_same_for_any_memory_and_threads(self):
        _, exact = self.infer()
        _, rows = self.infer("--fanouts", "5,3", "--threads", 1)
        self.assertGreater(np.abs(rows - exact).max(), 1e-3)
        np.testing.assert_array_equal(self.infer("--fanouts", "5,3", "--threads", 3)[1], rows)
        little = self.infer("--fanouts", "5,3", "--host-memory", "300MiB")[1]
        np.testing.assert_array_equal(little, rows)
        self.assertGreater(np.abs(self.infer("--fanouts", "5,2")[1] - rows).max(), 1e-3)
        classes = self.infer("--fanouts", "5,3", "--what", "classes")[1]
        np.testing.assert_array_equal(classes, rows.argmax(axis=1))
        self.assertEqual(set(os.listdir(self.path)), {"raw", "x.ooc", "y.ooc", "run", "out.npy"})

    def test_all_edges_with_a_chance_are_all_that_count(self):
        weights = np.random.default_rng(3).random(len(np.load(self.path / "raw/edges.npy")))
        np.save(self.path / "w.npy", np.where(weights < 0.5, 0, weights).astype(np.float32))
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--force", "--quiet",
                     "--edge-weights", "w.npy")  # fmt: skip
        self.succeed("ooc-train", "x.ooc", "--hidden", 8, "--fanouts", "5,3", "--weighted",
                     "--epochs", 1, "--run-dir", "run", "--force", "--quiet")  # fmt: skip
        _, exact = self.infer()
        _, rows = self.infer("--fanouts", "1000,1000")
        np.testing.assert_allclose(rows, exact, rtol=1e-4, atol=1e-5)
        self.assertGreater(np.abs(self.infer("--fanouts", "2,2")[1] - exact).max(), 1e-2)

    def test_what_is_refused(self):
        infer = ("ooc-infer", "x.ooc", "--run", "run", "-o", "out.npy")
        for wrong, error in (
            (("--fanouts", "5"), "--fanouts 5 has 1 number, and sage gathers 2 times"),
            (("--fanouts", "5,0"), "--fanouts cannot be '5,0'"),
            (("--batch-size", 10), "--batch-size without --fanouts"),
            (("--fanouts", "5,3", "--batch-size", 2**63 - 1), "--batch-size cannot be '9.*807'"),
            (("--fanouts", "5,3", "--devices", "cpu:2"), "--fanouts with --devices cpu:2"),
        ):
            with self.subTest(wrong):
                self.fail_with(2, error, *infer, *wrong)
        self.fail_with(4, "the least that works is", *infer, "--fanouts", "5,3",
                       "--host-memory", "1MiB")  # fmt: skip
        weights = np.linspace(1, 2, len(np.load(self.path / "raw/edges.npy")), dtype=np.float32)
        np.save(self.path / "weights.npy", weights)
        self.succeed("ooc-prep", "import", "raw", "-o", "w.ooc", "--quiet",
                     "--edge-weights", "weights.npy")  # fmt: skip
        self.succeed("ooc-train", "w.ooc", "--fanouts", "5,3", "--weighted", "--edge-weights",
                     "ignore", "--epochs", 1, "--run-dir", "weighted", "--quiet")  # fmt: skip
        infer = ("ooc-infer", "x.ooc", "--run", "weighted", "-o", "out.npy")
        self.fail_with(3, "without weights of edges, the model was trained with --weighted, x.ooc",
                       *infer, "--fanouts", "5,3")  # fmt: skip
        self.assertFalse((self.path / "out.npy").exists())


if __name__ == "__main__":
    programs.main()
