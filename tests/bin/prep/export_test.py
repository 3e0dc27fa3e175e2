"""ooc-prep export, and the reader of storage/format/README.md's format in plain Python: both give
back what was imported, after the transforms that were asked for, as NumPy computes them."""

import itertools
import os
import signal
import subprocess
import time

import numpy as np
import programs
from comparing import SPLITS, ComparingTest, normalise, read_dataset, sort_edges, transform_edges
from programs import ProgramTest, flip_byte, write_graph

UNDIRECTED = ((), ("--undirected",))
SELF_LOOPS = ("keep", "add-remaining", "drop")
COALESCE = ("keep", "first")
NORMS = ("none", "row", "l2", "standard")
ORDERS = ("natural", "random", "degree", "balanced", "metis")


def write_random_graph(directory, seed, vertices=70):
    """Directed, with parallel edges, self loops, isolated and unlabelled vertices, zero rows."""
    random = np.random.default_rng(seed)
    directory.mkdir()
    features = random.normal(size=(vertices, int(random.choice([3, 8, 33])))).astype(np.float32)
    features[[4, 9]] = 0
    features[:, 1] = 2
    labels = random.integers(0, 4, vertices)
    labels[:10] = -1
    parts = np.array_split(random.permutation(np.arange(10, vertices - 5)), 3)
    arrays = {
        "edges": random.integers(0, 40, (200, 2)),
        "features": features,
        "labels": labels,
        **dict(zip(SPLITS, parts)),
    }
    for name, array in arrays.items():
        np.save(directory / f"{name}.npy", array)
    return arrays


class ExportTest(ComparingTest):
    def test_every_combination_of_options(self):
        combinations = itertools.product(UNDIRECTED, SELF_LOOPS, COALESCE, NORMS, ORDERS)
        for number, (undirected, loops, coalesce, norm, order) in enumerate(combinations):
            if number % 4 == 0:  # a new graph now and then
                raw = write_random_graph(self.path / f"raw{number}", number)
                directory = self.path / f"raw{number}"
            with self.subTest(undirected=undirected, loops=loops, coalesce=coalesce, norm=norm,
                              order=order):  # fmt: skip
                self.succeed(
                    "ooc-prep", "import", directory, "-o", "x.ooc", *undirected, "--self-loops",
                    loops, "--coalesce", coalesce, "--feature-norm", norm, "--order", order,
                    "--block-rows", 16 if number % 3 else 64, "--force", "--quiet",
                )  # fmt: skip
                arrays = self.exported("x.ooc", "out", "--force")
                self.compare(
                    arrays,
                    transform_edges(raw["edges"], 70, bool(undirected), loops, coalesce),
                    normalise(raw["features"], norm),
                    raw["labels"],
                    {name: raw[name] for name in SPLITS},
                )
                self.compare_reader("x.ooc", arrays)

    def test_an_export_imports_again_to_the_same_export(self):
        write_random_graph(self.path / "raw", 5)
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--order", "random", "--quiet")
        first = self.exported("x.ooc", "one")
        self.succeed("ooc-prep", "import", "one", "-o", "y.ooc", "--order", "degree", "--quiet")
        second = self.exported("y.ooc", "two")
        self.assertEqual(first.keys(), second.keys())
        for name in first:
            put = sort_edges if name == "edges" else np.asarray
            np.testing.assert_array_equal(put(first[name]), put(second[name]))

    def test_little_memory_gives_the_same_arrays(self):
        random = np.random.default_rng(1)
        (self.path / "raw").mkdir()
        np.save(self.path / "raw/edges.npy", random.integers(0, 30000, (90000, 2)))
        features = random.normal(size=(30000, 20)).astype(np.float32)
        np.save(self.path / "raw/features.npy", features)
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--order", "random", "--quiet")
        arrays = self.exported("x.ooc", "out", "--memory", "1MiB")
        np.testing.assert_array_equal(arrays["features"], features)
        np.testing.assert_array_equal(
            sort_edges(arrays["edges"]), sort_edges(np.load(self.path / "raw/edges.npy"))
        )
        self.fail_with(
            4, "export needs 1 MiB.*64 KiB allowed; raise --memory", "ooc-prep", "export",
            "x.ooc", "-o", "two", "--memory", "64KiB",
        )  # fmt: skip

    def test_force_replaces_exports_only(self):
        self.prepare()
        self.exported("graph.ooc")
        self.fail_with(
            2, "output exists, out; use --force", "ooc-prep", "export", "graph.ooc", "-o", "out"
        )
        self.exported("graph.ooc", "out", "--force")
        (self.path / "out" / "thesis.tex").write_text("years of work")
        self.fail_with(
            2, "there is more, out", "ooc-prep", "export", "graph.ooc", "-o", "out", "--force"
        )
        self.assertEqual(sorted(os.listdir(self.path)), ["graph.ooc", "out", "raw"])
        self.assertTrue((self.path / "out" / "thesis.tex").exists())

    def test_a_damaged_dataset_leaves_nothing(self):
        self.prepare()
        flip_byte(self.path / "graph.ooc" / "features", 4100)
        self.fail_with(
            3, "graph.ooc/features, offset 4096", "ooc-prep", "export", "graph.ooc", "-o", "out"
        )
        self.assertEqual(sorted(os.listdir(self.path)), ["graph.ooc", "raw"])

    def test_a_full_disk_leaves_nothing(self):
        self.prepare(vertices=3000, features=64)
        message, options = self.small_disk(300_000)
        self.fail_with(
            1, message, "ooc-prep", "export", "graph.ooc", "-o", "small/out", **options
        )
        self.assertEqual(os.listdir(self.path / "small"), [])

    def test_an_interruption_leaves_nothing(self):
        self.succeed(
            "ooc-prep", "generate", "rmat", "--vertices", 100000, "--edges", 400000, "--features",
            128, "--classes", 4, "-o", "x.ooc", "--quiet",
        )  # fmt: skip
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(
                [programs.BIN / "ooc-prep", "export", "x.ooc", "-o", "out"], cwd=self.path,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            while not (self.path / "out.partial" / "edges.npy").exists():
                self.assertIsNone(process.poll(), "it was done before it could be interrupted")
                time.sleep(0.001)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, errors)
            self.assertEqual(sorted(os.listdir(self.path)), ["x.ooc"])


class ReaderTest(ProgramTest):
    def test_the_reader_refuses_damage(self):
        write_graph(self.path / "raw")
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet")
        read_dataset(self.path / "x.ooc")
        for name, offset in (("edges.in", 50), ("ids", 700), ("labels", 4100), ("splits", -70)):
            path = self.path / "x.ooc" / name
            at = offset % path.stat().st_size
            flip_byte(path, at)
            with self.subTest(file=name), self.assertRaisesRegex(ValueError, name):
                read_dataset(self.path / "x.ooc")
            flip_byte(path, at)


class VerifyTest(ProgramTest):
    def test_one_fault_is_the_error_and_several_are_listed(self):
        self.prepare()
        flip_byte(self.path / "graph.ooc" / "ids", 4100)
        self.fail_with(3, "chunk 0 .*graph.ooc/ids, offset 4096", "ooc-prep", "verify", "graph.ooc")
        flip_byte(self.path / "graph.ooc" / "labels", 200)
        result = self.run_program("ooc-prep", "verify", "graph.ooc", "--quiet")
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr, r"\Aooc-prep: error: 2 faults, the first: [^\n]+\n\Z")
        self.assertEqual(len(result.stdout.splitlines()), 2)
        self.assertRegex(result.stdout, "a gap .*graph.ooc/labels, offset 200; ")

    def test_a_foreign_file_is_named(self):
        self.prepare()
        (self.path / "graph.ooc" / "notes.txt").write_text("mine")
        result = self.succeed("ooc-prep", "verify", "graph.ooc")
        self.assertIn("warning: graph.ooc/notes.txt is no file of this dataset", result.stderr)


if __name__ == "__main__":
    programs.main()
