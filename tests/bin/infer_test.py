"""ooc-infer through the real program."""

import csv
import json
import os
import platform
import re
import unittest

import h5py
import numpy as np
import programs
from programs import ProgramTest, write_graph


class InferTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.prepare("x.ooc", vertices=90)
        self.succeed("ooc-train", "x.ooc", "--run-dir", "run", "--epochs", 20, "--hidden", 8)

    def infer(self, *arguments, dataset="x.ooc", output="out.npy"):
        self.succeed("ooc-infer", dataset, "--run", "run", "-o", output, "--force", *arguments)
        return np.load(self.path / output) if output.endswith(".npy") else None

    def test_shapes_and_types(self):
        logits = self.infer()
        self.assertEqual((logits.shape, logits.dtype), ((90, 3), np.float32))
        classes = self.infer("--what", "classes")
        self.assertEqual((classes.shape, classes.dtype), ((90,), np.int64))
        np.testing.assert_array_equal(classes, logits.argmax(axis=1))
        embeddings = self.infer("--what", "embeddings")
        self.assertEqual((embeddings.shape, embeddings.dtype), ((90, 8), np.float32))

    def test_accuracy_is_that_of_the_output(self):
        result = self.succeed(
            "ooc-infer", "x.ooc", "--run", "run", "-o", "out.npy", "--what", "classes"
        )
        classes = np.load(self.path / "out.npy")
        test = np.load(self.path / "raw/test_idx.npy")
        labels = np.load(self.path / "raw/labels.npy")
        accuracy = (classes[test] == labels[test]).mean()
        self.assertIn(f"test accuracy {accuracy:.4f}", result.stdout)

    def test_hdf5_holds_the_same(self):
        logits = self.infer()
        self.infer(output="out.h5")
        with h5py.File(self.path / "out.h5") as file:
            (name,) = file.keys()
            np.testing.assert_array_equal(file[name][...], logits)

    def test_probabilities_are_the_softmax_of_logits(self):
        logits = self.infer().astype(np.float64)
        exps = np.exp(logits - logits.max(axis=1, keepdims=True))
        found = self.infer("--what", "probabilities")
        np.testing.assert_allclose(found, exps / exps.sum(axis=1, keepdims=True), rtol=1e-6)

    def read_csv(self, name="out.csv"):
        with open(self.path / name, newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        return header, [row[0] for row in rows], [row[1:] for row in rows]

    def test_a_table_holds_the_same(self):
        for what, head in (("logits", "logit"), ("embeddings", "embedding")):
            array = self.infer("--what", what)
            self.infer("--what", what, output="out.csv")
            header, ids, rows = self.read_csv()
            self.assertEqual(header, ["id"] + [f"{head}_{j}" for j in range(array.shape[1])])
            self.assertEqual(ids, [str(i) for i in range(90)])
            np.testing.assert_array_equal(np.array(rows, np.float32), array)
        self.infer("--what", "classes", output="out.csv")
        header, _, rows = self.read_csv()
        self.assertEqual(header, ["id", "class"])
        np.testing.assert_array_equal(np.array(rows, int)[:, 0],
                                      self.infer("--what", "classes"))  # fmt: skip

    def test_a_table_has_the_names_of_the_input(self):
        names = np.array(["a, b", "c", 'd "e"'], dtype=object)
        numbers = np.random.default_rng(1).permutation(90) * 3 - 50
        ids = {"integers": numbers, "strings": np.array([f"v {n}" for n in numbers], dtype=object)}
        labels = names[np.load(self.path / "raw/labels.npy")]
        edges = np.load(self.path / "raw/edges.npy")
        for kind, of in ids.items():
            with self.subTest(kind):
                with open(self.path / "e.csv", "w", newline="") as file:
                    csv.writer(file).writerows(of[edges])
                with open(self.path / "v.csv", "w", newline="") as file:
                    writer = csv.writer(file)
                    writer.writerow(["id", "class", *(f"x{j}" for j in range(8))])
                    features = np.load(self.path / "raw/features.npy")
                    writer.writerows([i, y, *x] for i, y, x in zip(of, labels, features.tolist()))
                self.succeed("ooc-prep", "import", "--edges", "e.csv", "--features", "v.csv:3-10",
                             "--labels", "v.csv:class", "--id", "id", "--split", "60/20/20",
                             "--undirected", "-o", "n.ooc", "--force", "--quiet")  # fmt: skip
                self.succeed("ooc-train", "n.ooc", "--run-dir", "named", "--force", "--epochs", 5)
                both = ("ooc-infer", "n.ooc", "--run", "named", "--force", "-o")
                self.succeed(*both, "c.csv", "--what", "classes")
                self.succeed(*both, "p.csv", "--what", "probabilities")
                header, found, classes = self.read_csv("c.csv")
                order = sorted(of, key=lambda i: i if kind == "integers" else i.encode())
                self.assertEqual(found, [str(i) for i in order])
                header, found, rows = self.read_csv("p.csv")
                self.assertEqual(header, ["id", *names])
                self.assertEqual(found, [str(i) for i in order])
                best = names[np.array(rows, float).argmax(axis=1)]
                self.assertEqual([row[0] for row in classes], list(best))
                facts = json.loads(self.succeed("ooc-inspect", "named/best.h5", "--json").stdout)
                self.assertEqual(facts["class_names"], list(names))
                self.fail_with(2, "output exists, c.csv", *both[:4], "-o", "c.csv")
        # Another import numbers other names.
        text = (self.path / "v.csv").read_text().replace(",c,", ",z,")
        (self.path / "v.csv").write_text(text)
        self.succeed("ooc-prep", "import", "--edges", "e.csv", "--features", "v.csv:3-10",
                     "--labels", "v.csv:class", "--id", "id", "--split", "60/20/20",
                     "--undirected", "-o", "z.ooc", "--quiet")  # fmt: skip
        result = self.succeed("ooc-infer", "z.ooc", "--run", "named", "-o", "z.csv")
        self.assertIn("of z.ooc are not scored: its classes are others than the model's",
                      result.stderr)  # fmt: skip
        self.assertNotIn("accuracy", result.stdout)

    def test_rows_after_layers_are_the_same_in_any_memory(self):
        self.succeed("ooc-prep", "generate", "sbm", "--vertices", 20000, "--edges", 60000,
                     "--features", 64, "--classes", 5, "-o", "large.ooc", "--quiet")  # fmt: skip
        self.succeed("ooc-train", "large.ooc", "--hidden", 64, "--layers", 3, "--epochs", 1,
                     "--run-dir", "large", "--quiet")  # fmt: skip
        infer = ("ooc-infer", "large.ooc", "--run", "large", "--what", "embeddings", "--layer",
                 "all", "--threads", 2)  # fmt: skip
        self.succeed(*infer, "-o", "all.npy")
        refused = self.run_program(*infer, "-o", "little.h5", "--host-memory", "1MiB")
        self.assertEqual(refused.returncode, 4)
        least = re.search(r"give (\d+) MiB or more", refused.stderr)[1]
        result = self.succeed(*infer, "-o", "little.h5", "--host-memory", f"{least}MiB", "--json")
        outputs = [f"little.layer{i}.h5" for i in (1, 2, 3)]
        self.assertEqual(json.loads(result.stdout)["output"], outputs)
        for i, columns in enumerate((64, 64, 5), 1):
            expected = np.load(self.path / f"all.layer{i}.npy")
            self.assertEqual(expected.shape, (20000, columns))
            with h5py.File(self.path / f"little.layer{i}.h5") as file:
                np.testing.assert_array_equal(file["data"][...], expected)
        self.fail_with(2, "output exists, all.layer1.npy", *infer, "-o", "all.npy")
        self.fail_with(2, "--layer without --what", *infer[:4], "--layer", 1, "-o", "y.npy")

    def test_results_are_in_the_order_of_the_input(self):
        logits = self.infer()
        for order in ("random", "degree", "balanced"):
            self.succeed(
                *("ooc-prep", "import", "raw", "-o", f"{order}.ooc", "--undirected", "--quiet"),
                *("--order", order, "--block-rows", 32),
            )
            np.testing.assert_allclose(
                self.infer(dataset=f"{order}.ooc"), logits, rtol=1e-4, atol=1e-4
            )

    def test_a_run_without_a_model_says_so(self):
        failed = self.run_program("ooc-train", "x.ooc", "--run-dir", "none", "--optimizer", "sgd",
                                  "--lr", 1e30)
        self.assertEqual(failed.returncode, 1, failed.stderr)
        self.fail_with(3, "the run has no model yet, none; .*ooc-train --resume none",
                       "ooc-infer", "x.ooc", "--run", "none", "-o", "none.npy")

    def test_a_graph_the_model_has_not_seen(self):
        write_graph(self.path / "other", vertices=33, seed=5)
        self.succeed("ooc-prep", "import", "other", "-o", "other.ooc", "--undirected", "--quiet")
        self.assertEqual(self.infer(dataset="other.ooc").shape, (33, 3))

    def test_rates_of_the_machine_are_measured_once(self):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.path / "cache")}
        command = ("ooc-infer", "x.ooc", "--run", "run", "-o", "out.npy", "--force")
        self.succeed(*command, env=environment)
        (rates,) = (self.path / "cache/ooc").glob("rates-*.json")
        self.assertGreater(json.loads(rates.read_text())["gather"], 0)
        before = rates.stat().st_mtime_ns
        self.succeed(*command, env=environment)
        self.assertEqual([rates], list((self.path / "cache/ooc").iterdir()))
        self.assertEqual(before, rates.stat().st_mtime_ns)

    @unittest.skipUnless(platform.machine() == "x86_64", "the kernels have other names")
    def test_kernels_of_openblas_have_rates_of_their_own(self):
        for kernels in ("Nehalem", "Sandybridge"):
            environment = {**os.environ, "XDG_CACHE_HOME": str(self.path / "cache"),
                           "OPENBLAS_CORETYPE": kernels}
            self.succeed("ooc-infer", "x.ooc", "--run", "run", "-o", "out.npy", "--force",
                         env=environment)
        self.assertEqual(2, len(list((self.path / "cache/ooc").glob("rates-*.json"))))

    def test_scratch_is_made_where_it_is_missing(self):
        self.infer("--scratch", "new/scratch")
        self.assertEqual([], os.listdir(self.path / "new/scratch"))

    def test_what_is_refused(self):
        model = ("--run", "run")
        self.infer()
        output = ("-o", "out.npy")
        self.fail_with(
            2, "output exists, out.npy; use --force", "ooc-infer", "x.ooc", *model, *output
        )
        output = ("-o", "new.npy")
        self.fail_with(2, "no model", "ooc-infer", "x.ooc", *output)
        self.fail_with(
            *(2, "two models", "ooc-infer", "x.ooc", *model, "--checkpoint", "c.h5"), *output
        )
        self.fail_with(2, r"out\.txt.*\.npy", "ooc-infer", "x.ooc", *model, "-o", "out.txt")
        self.fail_with(3, "none.h5", "ooc-infer", "x.ooc", "--checkpoint", "none.h5", *output)
        self.fail_with(3, "not a run", "ooc-infer", "x.ooc", "--run", "x.ooc", *output)
        write_graph(self.path / "wide", features=9)
        self.succeed("ooc-prep", "import", "wide", "-o", "wide.ooc", "--undirected", "--quiet")
        self.fail_with(
            3, "9 feature columns.*on 8.*, wide.ooc; ", "ooc-infer", "wide.ooc", *model, *output
        )
        self.assertFalse((self.path / "new.npy").exists())


if __name__ == "__main__":
    programs.main()
