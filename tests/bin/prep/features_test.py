"""ooc-prep import: features that a graph lacks, and a column of ids among those it has."""

import csv
import re

import numpy as np
import programs
from programs import ProgramTest, write_graph


class FeaturesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(5)
        self.raw = write_graph(self.path / "raw")
        self.x = np.load(self.raw / "features.npy")
        self.edges = ("--edges", "raw/edges.npy")

    def write(self, name, *columns, header=None):
        with open(self.path / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([header] * bool(header))
            writer.writerows(zip(*columns))

    def warnings(self, *arguments):
        """What import says, also with --quiet."""
        result = self.succeed("ooc-prep", "import", *self.edges, *arguments, "-o", "x.ooc",
                              "--force", "--quiet", "--undirected")  # fmt: skip
        return result.stderr

    def exported(self, *arguments):
        self.succeed("ooc-prep", "import", *arguments, "-o", "x.ooc", "--force", "--quiet")
        self.succeed("ooc-prep", "verify", "x.ooc")
        self.succeed("ooc-prep", "export", "x.ooc", "-o", "out", "--force", "--quiet")
        return np.load(self.path / "out/features.npy"), np.load(self.path / "out/edges.npy")

    def test_a_column_of_ids_is_told(self):
        names = [f"f{i}" for i in range(8)]
        told = "the first column of {} seems to hold ids, and is read as features: if it does, {}"
        big = np.sort(self.random.choice(2**28, 60, replace=False)) + 2**27
        for ids in (np.arange(60), self.random.permutation(60), big):
            self.write("x.csv", ids, *self.x.T)
            self.assertIn(told.format("x.csv", "give --id 1, or choose the columns of features, "
                                      "such as x.csv:2-9"), self.warnings("--features", "x.csv"))
        self.write("x.csv", self.random.integers(0, 9, 60), *self.x.T, header=["node_id", *names])
        self.assertIn("give --id node_id, or", self.warnings("--features", "x.csv"))
        self.assertEqual(self.warnings("--features", "x.csv:2-9"), "")
        self.write("x.csv", self.random.permutation(60), *self.x.T, header=["node_id", *names])
        self.assertEqual(self.warnings("--features", "x.csv", "--id", "node_id"), "")
        np.save(self.path / "x.npy", np.c_[self.random.permutation(60), self.x])
        for norm in ("none", "standard"):
            self.assertIn(told.format("x.npy", "save it apart for --ids FILE"),
                          self.warnings("--features", "x.npy", "--feature-norm", norm))
        np.save(self.path / "x.npy", np.c_[self.random.integers(0, 60, 60), self.x])
        self.assertEqual(self.warnings("--features", "x.npy"), "")
        self.assertEqual(self.warnings("--features", "raw/features.npy"), "")

    def test_a_column_of_ids_beside_labels_is_told(self):
        y = np.load(self.raw / "labels.npy")
        self.write("y.csv", np.arange(60) * 7 + 230425980, y + 1, header=["txId", "class"])
        self.fail_with(3, "the first column of the labels seems to hold ids, y.csv; if it does, "
                       "give --id txId, or choose the columns of labels, such as y.csv:2",
                       "ooc-prep", "import", *self.edges, "--labels", "y.csv", "-o", "x.ooc")
        self.write("y.csv", self.random.permutation(60), y + 0.5)
        self.assertIn("the first column of y.csv seems to hold ids, and is read as labels: if it "
                      "does, give --id 1, or", self.warnings("--labels", "y.csv"))  # fmt: skip
        self.assertEqual(self.warnings("--labels", "y.csv:2"), "")
        self.assertEqual(self.warnings("--labels", "y.csv", "--id", 1), "")

    def test_degrees_as_features(self):
        edges = self.random.integers(0, 60, (300, 2))
        edges[:5, 1] = edges[:5, 0]
        edges = edges[(edges != 17).all(axis=1)]
        np.save(self.path / "e.npy", edges)
        for options in ((), ("--undirected",), ("--self-loops", "drop", "--coalesce", "first")):
            for order in ("natural", "random", "degree"):
                x, stored = self.exported("--edges", "e.npy", "--features", "degrees", "--vertices",
                                          60, "--order", order, *options)  # fmt: skip
                ends = [np.bincount(stored[:, end], minlength=60) for end in (1, 0)]
                np.testing.assert_allclose(x, np.log1p(np.stack(ends, axis=1)), rtol=1e-6)
        scaled, _ = self.exported("--edges", "e.npy", "--features", "degrees", "--vertices", 60,
                                  "--feature-norm", "standard", "--self-loops", "drop",
                                  "--coalesce", "first")  # fmt: skip
        np.testing.assert_allclose(scaled, (x - x.mean(axis=0)) / x.std(axis=0), atol=1e-5)

    def test_random_features(self):
        read = [self.exported(*self.edges, "--vertices", 60, "--features", "random:5", *options)[0]
                for options in ((), ("--order", "random", "--block-rows", 16), ("--seed", 1))]
        self.assertEqual(read[0].shape, (60, 5))
        np.testing.assert_array_equal(read[0], read[1])
        self.assertFalse((read[0] == read[2]).any())
        wide, _ = self.exported(*self.edges, "--vertices", 60, "--features", "random:500")
        self.assertLess(abs(wide.mean()), 4 / np.sqrt(wide.size))
        self.assertLess(abs(wide.std() - 1), 4 / np.sqrt(2 * wide.size))
        self.assertLess(np.abs(np.corrcoef(wide.T) - np.eye(500)).max(), 0.75)
        for wrong in ("random:", "random:0", "random:many"):
            self.fail_with(2, f"--features {wrong} is not possible", "ooc-prep", "import",
                           *self.edges, "--features", wrong, "-o", "y.ooc")  # fmt: skip
        self.fail_with(2, "--seed, but nothing is random", "ooc-prep", "import", *self.edges,
                       "--seed", 1, "-o", "y.ooc")  # fmt: skip

    def test_a_graph_without_features_trains(self):
        """The message names what to do, and it works."""
        (self.raw / "features.npy").unlink()
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet")
        training = ("ooc-train", "x.ooc", "--run-dir", "run", "--epochs", 3, "--hidden", 8)
        found = self.fail_with(3, "training needs them, x.ooc; .*--features", *training)
        named = re.search("--features FILE, (degrees) or (random):N", found.stderr).groups()
        for features in (named[0], f"{named[1]}:4"):
            for names in ((), ("--id", "name")):
                edges, labels = "raw/edges.npy", "raw/labels.npy"
                if names:
                    edges, labels = "e.csv", "y.csv"
                    self.write(edges, *[[f"v{v}" for v in column]
                                        for column in np.load(self.raw / "edges.npy").T])
                    self.write(labels, [f"v{v}" for v in range(60)],
                               np.load(self.raw / "labels.npy"), header=["name", "class"])
                self.succeed("ooc-prep", "import", "--edges", edges, "--labels", labels, *names,
                             "--features", features, "-o", "x.ooc", "--force", "--quiet",
                             "--split", "60/20/20")  # fmt: skip
                self.succeed(*training, "--force")

    def test_a_file_of_that_name(self):
        self.x.tofile(self.path / "degrees")
        x, _ = self.exported(*self.edges, "--features", "./degrees:float32x8")
        np.testing.assert_array_equal(x, self.x)
        x, _ = self.exported(*self.edges, "--features", "./degrees", "--raw-dtype", "float32",
                             "--raw-columns", 8)  # fmt: skip
        np.testing.assert_array_equal(x, self.x)


if __name__ == "__main__":
    programs.main()
