"""ooc-prep import of layouts and formats of others, written by the libraries they come from."""

import gzip
import json
import shutil
import unittest

import numpy as np
import programs
from programs import ProgramTest, write_graph


class FormatsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.raw = write_graph(self.path / "raw")

    def array(self, name):
        return np.load(self.raw / f"{name}.npy")

    def imported(self, *arguments):
        result = self.succeed("ooc-prep", "import", *arguments, "-o", "x.ooc", "--force")
        self.succeed("ooc-prep", "verify", "x.ooc")
        facts = json.loads(self.succeed("ooc-inspect", "x.ooc", "--json").stdout)
        return facts, result.stderr

    def refused(self, code, pattern, *arguments):
        self.fail_with(code, pattern, "ooc-prep", "import", *arguments, "-o", "x.ooc")
        self.assertFalse((self.path / "x.ooc").exists())

    def same_as_by_convention(self, *arguments):
        expected, _ = self.imported("raw")
        facts, _ = self.imported(*arguments)
        for key in ("file_bytes", "vertices", "edges", "features", "classes", "train", "test"):
            self.assertEqual(facts[key], expected[key], key)
        return facts

    def write_gzip(self, path, array, style):
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            np.savetxt(file, array, delimiter=",", fmt=style)

    def test_one_of_several_splits(self):
        """Masks of ten splits, as the heterophilous graphs and WikiCS have them."""
        splits = np.random.default_rng(1).integers(0, 4, (60, 10))
        masks = {f"{part}_masks": splits == i for i, part in enumerate(("train", "val", "test"))}
        masks["test_masks"] = masks["test_masks"][:, 7]  # one test mask beside several others
        transposed = {name: mask.T for name, mask in masks.items()}
        np.savez(self.path / "rows.npz", **masks)
        np.savez_compressed(self.path / "columns.npz", **transposed)
        np.save(self.path / "numbers.npy", splits.T)
        np.save(self.path / "square_mask.npy", np.eye(60, dtype=bool))
        graph = [f"--{part}=raw/{part}.npy" for part in ("edges", "features", "labels")]
        for name in ("rows", "columns"):
            given = [f"--{option}={name}.npz:{part}_masks" for option, part in
                     (("train", "train"), ("valid", "val"), ("test", "test"))]  # fmt: skip
            with self.subTest(name):
                self.imported(*graph, *given, "--split-index", 7)
                self.succeed("ooc-prep", "export", "x.ooc", "-o", name, "--quiet")
                for i, part in enumerate(("train", "valid", "test")):
                    found = np.load(self.path / name / f"{part}_idx.npy")
                    np.testing.assert_array_equal(found, np.flatnonzero(splits[:, 7] == i))
                shutil.rmtree(self.path / "x.ooc")
                self.refused(3, "holds 10 splits, .*choose one with --split-index, from 0 to 9",
                             *graph, *given)
                self.refused(2, "--split-index 10, but there are 10 splits, .*from 0 to 9",
                             *graph, *given, "--split-index", 10)
        self.refused(3, "needs one column, not 60, numbers.npy, shape .10, 60.; .*name it [*]_mask",
                     *graph, "--train=numbers.npy")
        self.refused(2, "--split-index, but no mask holds several", "raw", "--split-index", 0)
        self.refused(3, "a square mask", *graph, "--train=square_mask.npy", "--split-index", 0)

    def test_igb(self):
        """<size>/processed, with features that are headerless under a .npy name."""
        paper = self.path / "tiny" / "processed" / "paper"
        cites = self.path / "tiny" / "processed" / "paper__cites__paper"
        paper.mkdir(parents=True)
        cites.mkdir()
        self.array("features").astype("float32").tofile(paper / "node_feat.npy")
        np.save(paper / "node_label_19.npy", self.array("labels").astype("float32"))
        np.save(cites / "edge_index.npy", self.array("edges"))
        files = (
            "--edges=tiny/processed/paper__cites__paper/edge_index.npy",
            "--features=tiny/processed/paper/node_feat.npy",
            "--labels=tiny/processed/paper/node_label_19.npy",
        )
        splits = [f"--{part}=raw/{part}_idx.npy" for part in ("train", "valid", "test")]
        raw = ("--raw-dtype=float32", "--raw-columns=8")
        self.same_as_by_convention(*files, *splits, *raw)
        facts, _ = self.imported(*files, *raw, "--split=60/20/20", "--split-seed=3")
        self.assertEqual([facts[part] for part in ("train", "valid", "test")], [36, 12, 12])
        (self.path / "x.ooc").rename(self.path / "y.ooc")
        self.refused(2, "go together", *files, "--raw-dtype=float32")
        self.refused(3, "first bytes are not NumPy's, tiny/processed/paper/node_feat.npy", *files)
        self.refused(2, "no input is headerless", "raw", *raw)

    def test_ogb(self):
        ogb = self.path / "ogbn_small"
        self.write_gzip(ogb / "raw" / "edge.csv.gz", self.array("edges"), "%d")
        self.write_gzip(ogb / "raw" / "node-feat.csv.gz", self.array("features"), "%.9g")
        self.write_gzip(ogb / "raw" / "node-label.csv.gz", self.array("labels")[:, None], "%d")
        self.write_gzip(ogb / "raw" / "num-node-list.csv.gz", [60], "%d")
        for part in ("train", "valid", "test"):
            path = ogb / "split" / "time" / f"{part}.csv.gz"
            self.write_gzip(path, self.array(f"{part}_idx"), "%d")
        self.same_as_by_convention("--ogb", "ogbn_small")
        (self.path / "x.ooc").rename(self.path / "y.ooc")
        (ogb / "split" / "random").mkdir()
        self.refused(3, "several splits.*--split-name random or time", "--ogb", "ogbn_small")
        self.refused(2, "both DIR and --ogb", "raw", "--ogb", "ogbn_small")
        self.refused(2, "--split-name without --ogb", "raw", "--split-name", "time")
        self.imported("--ogb", "ogbn_small", "--split-name", "time")

    def test_papers100m(self):
        raw = self.path / "papers" / "raw"
        raw.mkdir(parents=True)
        labels = self.array("labels").astype("float32")[:, None]
        labels[self.array("test_idx")] = np.nan
        np.savez_compressed(
            raw / "data.npz",
            edge_index=self.array("edges").T,
            node_feat=self.array("features"),
            node_year=np.zeros((60, 1)),
            num_nodes_list=np.array([60]),
            num_edges_list=np.array([len(self.array("edges"))]),
        )
        np.savez_compressed(raw / "node-label.npz", node_label=labels)
        facts, _ = self.imported("--ogb", "papers")
        self.assertEqual((facts["vertices"], facts["features"]), (60, 8))
        self.assertEqual(facts["edges"], len(self.array("edges")))

    def test_headerless_hdf5_and_matrix_market_give_the_same_dataset(self):
        import h5py
        import scipy.io
        import scipy.sparse

        edges = self.array("edges")
        edges.astype("int32").tofile(self.path / "edges.bin")
        with h5py.File(self.path / "all.h5", "w") as file:
            file["features"] = self.array("features")
            file["labels"] = self.array("labels")
        values = np.arange(len(edges)) + 0.5
        matrix = scipy.sparse.coo_matrix((values, edges.T), (60, 60))
        scipy.io.mmwrite(self.path / "edges.mtx", matrix, symmetry="general")
        rest = ["--features=all.h5:/features", "--labels=all.h5:/labels"]
        rest += [f"--{part}=raw/{part}_idx.npy" for part in ("train", "valid", "test")]
        self.same_as_by_convention("--edges=edges.bin:int32x2", *rest)
        self.same_as_by_convention("--edges=edges.mtx", *rest)
        (self.path / "x.ooc").rename(self.path / "y.ooc")
        self.refused(3, "edges.bin:float32x128, or --raw-dtype", "--edges=edges.bin")
        self.refused(3, "holds 2 datasets, features, labels", "--edges=all.h5")

    def test_entries_of_scipys_matrices_are_edges(self):
        import scipy.sparse

        edges = self.array("edges")
        weights = np.arange(len(edges)) + 1.0
        matrix = scipy.sparse.coo_matrix((weights, edges.T), (60, 60))
        rest = [f"--{part}=raw/{part}_idx.npy" for part in ("train", "valid", "test")]
        rest += ["--features=raw/features.npy", "--labels=raw/labels.npy"]
        for style in ("csr", "csc", "coo"):
            scipy.sparse.save_npz(self.path / f"{style}.npz", matrix.asformat(style))
            self.same_as_by_convention(f"--edges={style}.npz", *rest)
            self.succeed("ooc-prep", "import", f"--edges={style}.npz",
                         f"--edge-weights={style}.npz:data", "-o", "w.ooc", "--force")  # fmt: skip
            self.succeed("ooc-prep", "export", "w.ooc", "-o", "w", "--force")
            back = np.load(self.path / "w/edges.npy")
            dense = np.asarray(matrix.todense())[back[:, 0], back[:, 1]]
            np.testing.assert_array_equal(np.load(self.path / "w/edge_weights.npy"), dense)
        csr = matrix.tocsr()
        np.savez(self.path / "all.npz", adj_data=csr.data, adj_indices=csr.indices,
                 adj_indptr=csr.indptr, adj_shape=csr.shape, src=edges[:, 0], dst=edges[:, 1],
                 short=edges[1:, 1])  # fmt: skip
        self.same_as_by_convention("--edges=all.npz:adj", *rest)
        self.same_as_by_convention("--edges=all.npz:src,dst", *rest)
        (self.path / "x.ooc").rename(self.path / "y.ooc")
        self.refused(3, f"{len(edges)} sources but {len(edges) - 1} destinations",
                     "--edges=all.npz:src,short")  # fmt: skip
        scipy.sparse.save_npz(self.path / "wide.npz", scipy.sparse.csr_matrix((60, 7)))
        self.refused(3, "a matrix of 60 rows and 7 columns where edges", "--edges=wide.npz")
        np.savez(self.path / "bad.npz", adj_indices=csr.indices, adj_shape=csr.shape,
                 adj_indptr=csr.indptr[::-1])  # fmt: skip
        self.refused(3, "indptr does not start at 0", "--edges=bad.npz:adj")

    def test_split(self):
        for part in ("train", "valid", "test"):
            (self.raw / f"{part}_idx.npy").rename(self.path / f"{part}.npy")
        first, _ = self.imported("raw", "--split", "50/30/20")
        self.assertEqual([first[part] for part in ("train", "valid", "test")], [30, 18, 12])
        splits = (self.path / "x.ooc" / "splits").read_bytes()
        self.imported("raw", "--split", "50/30/20")
        self.assertEqual((self.path / "x.ooc" / "splits").read_bytes(), splits)
        self.imported("raw", "--split", "50/30/20", "--split-seed", "1")
        self.assertNotEqual((self.path / "x.ooc" / "splits").read_bytes(), splits)
        (self.path / "x.ooc").rename(self.path / "y.ooc")
        self.refused(2, "--split 50/50/20 is 120 percent", "raw", "--split", "50/50/20")
        self.refused(2, "train.npy splits already", "raw", "--split=60/20/20", "--train=train.npy")
        self.refused(2, "--split-seed without --split", "raw", "--split-seed", "1")


if __name__ == "__main__":
    programs.main()
