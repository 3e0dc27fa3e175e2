"""ooc-prep import --remap-ids through the programs: every output is keyed by the user's ids."""

import json

import h5py
import numpy as np
import programs
from comparing import SPLITS, ComparingTest, read_dataset, sort_edges, transform_edges
from programs import write_graph

EXTREMES = [-(2**63), -7, 0, 2**63 - 1]


class RemapTest(ComparingTest):
    def setUp(self):
        super().setUp()
        self.write_inputs(self.path / "raw")

    def write_inputs(self, directory, vertices=90):
        """A graph, and the same one under ids that are spread over all 64 bits."""
        write_graph(self.path / "dense", vertices=vertices, degree=8)
        dense = {path.stem: np.load(path) for path in (self.path / "dense").iterdir()}
        used = np.unique(dense["edges"])
        assert len(used) == vertices
        loops = np.stack([used[:5], used[:5]], axis=1)
        dense["edges"] = np.concatenate([dense["edges"], dense["edges"][:9], loops])
        np.save(self.path / "dense/edges.npy", dense["edges"])
        random = np.random.default_rng(8)
        ids = random.choice(2**62, vertices - len(EXTREMES), replace=False) * 2 - 2**62
        self.ids = np.sort(np.concatenate([ids, EXTREMES]))
        self.arrays = {**dense, **{n: self.ids[dense[n]] for n in ("edges", *SPLITS)}}
        directory.mkdir()
        for name, array in self.arrays.items():
            np.save(directory / f"{name}.npy", array)

    def remap(self, *options, output="x.ooc"):
        rows = "--rows-sorted" if options[0] == "raw" else "--remap-ids"  # an export has ids.npy
        self.succeed("ooc-prep", "import", rows, "-o", output, "--quiet", *options)
        self.succeed("ooc-prep", "verify", output)
        return self.exported(output, output.replace(".ooc", "-out"))

    def test_an_export_has_the_ids_of_the_input(self):
        for order in ("natural", "random", "degree"):
            arrays = self.remap("raw", "--order", order, "--block-rows", 16, output=f"{order}.ooc")
            with self.subTest(order=order):
                np.testing.assert_array_equal(arrays["ids"], self.ids)
                expected = sort_edges(self.arrays["edges"])
                np.testing.assert_array_equal(sort_edges(arrays["edges"]), expected)
                for name in ("features", "labels", *SPLITS):
                    np.testing.assert_array_equal(arrays[name], self.arrays[name])
                read = read_dataset(self.path / f"{order}.ooc")
                facts = json.loads(self.succeed("ooc-inspect", f"{order}.ooc", "--json").stdout)
                self.assertEqual(facts["remapped_ids"], "integers")
                np.testing.assert_array_equal(read.original_ids[:, 0], self.ids[read.ids[:, 0]])

    def test_an_export_imports_again_to_the_same_export(self):
        first = self.remap("raw", "--order", "random")
        second = self.remap("x-out", output="y.ooc")
        self.assertEqual(first.keys(), second.keys())
        for name in first:
            put = sort_edges if name == "edges" else np.asarray
            np.testing.assert_array_equal(put(first[name]), put(second[name]))

    def test_transforms_are_those_of_the_dense_graph(self):
        options = ("--undirected", "--self-loops", "add-remaining", "--coalesce", "first")
        arrays = self.remap("raw", *options)
        dense = np.searchsorted(self.ids, self.arrays["edges"])
        expected = transform_edges(dense, len(self.ids), True, "add-remaining", "first")
        np.testing.assert_array_equal(sort_edges(np.searchsorted(self.ids, arrays["edges"])),
                                      expected)  # fmt: skip

    def test_text_and_what_edges_carry(self):
        edges = self.arrays["edges"]
        np.savetxt(self.path / "e.csv", edges, "%d", ",", header="from,to", comments="")
        weights = np.arange(len(edges), dtype=np.float32)
        np.save(self.path / "w.npy", weights)
        arrays = self.remap("--edges", "e.csv", "--edge-weights", "w.npy", "--block-rows", 16)
        np.testing.assert_array_equal(arrays["ids"], self.ids)
        read = read_dataset(self.path / "x.ooc").edges_in
        triples = zip(read.sources, read.rows, read.weights)
        dense = np.searchsorted(self.ids, edges)
        self.assertEqual(sorted(triples), sorted(zip(dense[:, 0], dense[:, 1], weights)))

    def test_inference_is_keyed_by_the_ids(self):
        both = ("--undirected", "--coalesce", "first", "--quiet")
        self.succeed("ooc-prep", "import", "dense", "-o", "dense.ooc", *both)
        self.remap("raw", *both[:-1], "--order", "random", "--block-rows", 16)
        self.succeed("ooc-train", "dense.ooc", "--run-dir", "run", "--epochs", 5, "--hidden", 8)
        infer = ("ooc-infer", "x.ooc", "--run", "run", "-o")
        self.succeed("ooc-infer", "dense.ooc", "--run", "run", "-o", "dense.npy")
        self.assertFalse((self.path / "dense.ids.npy").exists())
        printed = self.succeed(*infer, "out.npy").stdout
        self.assertIn("out.ids.npy: their ids", printed)
        logits = np.load(self.path / "dense.npy")
        np.testing.assert_allclose(np.load(self.path / "out.npy"), logits, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(np.load(self.path / "out.ids.npy"), self.ids)
        self.succeed(*infer, "out.h5")
        with h5py.File(self.path / "out.h5") as file:
            self.assertEqual(sorted(file), ["data", "ids"])
            np.testing.assert_array_equal(file["ids"][...], self.ids)
            np.testing.assert_allclose(file["data"][...], logits, rtol=1e-4, atol=1e-4)
        (self.path / "new.ids.npy").write_text("mine")
        self.fail_with(2, "output exists, new.ids.npy", *infer, "new.npy")

    def test_what_is_refused(self):
        importing = ("ooc-prep", "import", "--rows-sorted", "-o", "no.ooc")
        np.save(self.path / "train.npy", self.ids[:3] + 1)
        files = ("--edges", "raw/edges.npy", "--labels", "raw/labels.npy")
        self.fail_with(
            3, r"vertex id -\d+ is in no edge, train.npy, row 0", *importing, *files, "--train",
            "train.npy",
        )  # fmt: skip
        self.fail_with(
            3, r"90 ids in the edges but the vertex count is 91 \(--vertices\), raw/edges.npy",
            *importing, "--edges", "raw/edges.npy", "--vertices", 91,
        )  # fmt: skip
        (self.path / "m.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n"
                                         "2 2 1\n1 2\n")  # fmt: skip
        self.fail_with(3, "numbers its rows already, m.mtx", *importing, "--edges", "m.mtx")
        np.save(self.path / "big.npy", np.array([[1, 2**63]], np.uint64))
        self.fail_with(3, "big.npy, row 0", *importing, "--edges", "big.npy")
        self.assertFalse((self.path / "no.ooc").exists())
        self.fail_with(3, "is negative", "ooc-prep", "import", "--edges", "raw/edges.npy", "-o",
                       "no.ooc")  # fmt: skip


if __name__ == "__main__":
    programs.main()
