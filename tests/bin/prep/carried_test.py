"""What edges and vertices may carry, through import, verify, export and the reader in plain Python:
weights, types and features of edges, 16-bit features, labels in a matrix."""

import unittest

import numpy as np
import programs
from comparing import ComparingTest, read_dataset
from programs import write_graph

ORDERS = ("natural", "random", "degree", "balanced", "metis")


def records(edges, weights, types, features):
    """One sortable row an edge."""
    table = np.concatenate([edges, weights[:, None], types[:, None], features], axis=1)
    return table[np.lexsort(table.T[::-1])]


class CarriedTest(ComparingTest):
    def write_edge_data(self, vertices=60, edges=500, seed=4):
        random = np.random.default_rng(seed)
        raw = self.path / "raw"
        raw.mkdir(exist_ok=True)
        data = {
            "edges": random.integers(0, vertices, (edges, 2)),
            "edge_weights": random.integers(0, 64, edges).astype(np.float32) / 4,
            "edge_types": random.integers(0, 5, edges),
            "edge_features": random.normal(size=(edges, 3)).astype(np.float32),
        }
        for name, array in data.items():
            np.save(raw / f"{name}.npy", array)
        return data

    def carried(self, arrays):
        return records(
            arrays["edges"], arrays["edge_weights"], arrays["edge_types"], arrays["edge_features"]
        )

    def test_edges_keep_what_they_carry_in_every_order(self):
        data = self.write_edge_data()
        for order in ORDERS:
            with self.subTest(order=order):
                self.succeed(
                    "ooc-prep", "import", "raw", "-o", "x.ooc", "--vertices", 60, "--order", order,
                    "--block-rows", 16, "--force", "--quiet",
                )  # fmt: skip
                self.succeed("ooc-prep", "verify", "x.ooc")
                arrays = self.exported("x.ooc", "out", "--force")
                np.testing.assert_array_equal(self.carried(arrays), self.carried(data))
                read = read_dataset(self.path / "x.ooc")
                ids = read.ids[:, 0]
                for edges, ends in (
                    (read.edges_in, (read.edges_in.sources, read.edges_in.rows)),
                    (read.edges_out, (read.edges_out.rows, read.edges_out.sources)),
                ):
                    found = records(
                        ids[np.stack(ends, axis=1)], edges.weights, edges.types, edges.features
                    )
                    np.testing.assert_array_equal(found, self.carried(data))

    def test_merged_edges_carry_the_sum_and_reverse_edges_a_copy(self):
        edges = [[0, 1], [0, 1], [2, 0], [0, 1], [1, 2], [2, 1]]
        (self.path / "raw").mkdir()
        np.save(self.path / "raw/edges.npy", edges)
        np.save(self.path / "raw/edge_weights.npy", np.array([1, 2, 3, 4, 5, 6], np.float32))
        for how, merged in (("sum", 7), ("mean", 7 / 3), ("max", 4), ("first", 1)):
            self.succeed(
                "ooc-prep", "import", "raw", "-o", "x.ooc", "--undirected", "--coalesce", how,
                "--force", "--quiet",
            )  # fmt: skip
            arrays = self.exported("x.ooc", "out", "--force")
            found = {tuple(e): w for e, w in zip(arrays["edges"], arrays["edge_weights"])}
            expected = {(0, 1): merged, (1, 0): merged, (2, 0): 3, (0, 2): 3, (1, 2): 5, (2, 1): 6}
            self.assertEqual(found.keys(), expected.keys())
            for edge, weight in expected.items():
                self.assertAlmostEqual(found[edge], weight, places=6)

    def test_what_does_not_fit_the_edges_is_refused(self):
        self.write_edge_data()
        np.save(self.path / "raw/edge_weights.npy", np.zeros(499, np.float32))
        self.fail_with(
            3, r"499 rows but \d+ edges, raw/edge_weights.npy; give one row",
            "ooc-prep", "import", "raw", "-o", "x.ooc", "--vertices", 60,
        )  # fmt: skip
        self.assertFalse((self.path / "x.ooc").exists())

    def test_features_of_16_bits(self):
        write_graph(self.path / "raw")
        features = np.load(self.path / "raw/features.npy").astype(np.float32)
        for dtype, order in (("fp16", "natural"), ("fp16", "random"), ("bf16", "random")):
            self.succeed(
                "ooc-prep", "import", "raw", "-o", "x.ooc", "--dtype", dtype, "--order", order,
                "--force", "--quiet",
            )  # fmt: skip
            found = self.exported("x.ooc", "out", "--force")["features"]
            if dtype == "fp16":
                np.testing.assert_array_equal(found, features.astype(np.float16))
            else:  # round to nearest even in the upper half
                bits = features.view(np.uint32)
                rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
                np.testing.assert_array_equal(found, rounded.astype(np.uint32).view(np.float32))
        features[7, 3] = 1e6
        np.save(self.path / "raw/features.npy", features)
        self.fail_with(
            3, "1000000 is too large for fp16, raw/features.npy, row 7, column 3; store",
            "ooc-prep", "import", "raw", "-o", "y.ooc", "--dtype", "fp16",
        )  # fmt: skip

    def test_labels_in_a_matrix(self):
        write_graph(self.path / "raw")
        labels = np.random.default_rng(2).integers(0, 2, (60, 12)).astype(np.int8)
        unlabelled = np.setdiff1d(
            np.arange(60),
            np.concatenate([np.load(p) for p in (self.path / "raw").glob("*_idx.npy")]),
        )
        labels[unlabelled] = -1
        np.save(self.path / "raw/labels.npy", labels)
        for order in ORDERS:
            self.succeed(
                "ooc-prep", "import", "raw", "-o", "x.ooc", "--order", order, "--block-rows", 16,
                "--force", "--quiet",
            )  # fmt: skip
            self.succeed("ooc-prep", "verify", "x.ooc")
            np.testing.assert_array_equal(self.exported("x.ooc", "o", "--force")["labels"], labels)


if __name__ == "__main__":
    programs.main()
