"""Every real graph below $OOC_DATA_DIR through import and export, compared with its files."""

import itertools
import json
import os
import pathlib

import numpy as np
import programs
import scipy.sparse
from comparing import SPLITS, ComparingTest, normalise, transform_edges

ORDERS = ("natural", "random", "degree", "balanced")
BATCH_ROWS = 1000  # sparse features are made dense this many rows at a time


def load(directory, name):
    """NAME.npy, NAME.npz as SciPy's sparse matrix, or None."""
    if (directory / f"{name}.npy").exists():
        return np.load(directory / f"{name}.npy")
    if (directory / f"{name}.npz").exists():
        return scipy.sparse.load_npz(directory / f"{name}.npz")
    return None


CARRIED = ("edge_weights", "edge_types", "edge_features")


class RealGraphsTest(ComparingTest):
    def compare_features(self, features, expected):
        self.assertEqual(features.shape, expected.shape)
        for begin in range(0, len(features), BATCH_ROWS):
            rows = expected[begin : begin + BATCH_ROWS]
            rows = normalise(rows.toarray() if scipy.sparse.issparse(rows) else rows, "row")
            np.testing.assert_allclose(features[begin : begin + BATCH_ROWS], rows, 2e-6, 1e-7)

    def test_each_comes_back(self):
        root = pathlib.Path(os.environ.get("OOC_DATA_DIR", "nowhere"))
        graphs = [path for path in root.glob("*") if (path / "edges.npy").exists()]
        if not graphs:
            self.skipTest("OOC_DATA_DIR names no directory of graphs")
        for graph, order in zip(sorted(graphs), itertools.cycle(ORDERS)):
            with self.subTest(graph=graph.name, order=order):
                self.compare_graph(graph, order)

    def compare_graph(self, graph, order):
        result = self.run_program(
            "ooc-prep", "import", graph, "-o", "x.ooc", "--undirected", "--feature-norm", "row",
            "--order", order, "--force", "--quiet",
        )  # fmt: skip
        self.assertEqual(result.returncode, 0, result.stderr)
        splits = {name: load(graph, name) for name in SPLITS}
        arrays = self.exported("x.ooc", "out", "--force")
        carried = [name for name in CARRIED if (graph / f"{name}.npy").exists()]
        facts = json.loads(self.succeed("ooc-inspect", "x.ooc", "--json").stdout)
        self.compare(
            arrays,
            transform_edges(load(graph, "edges"), facts["vertices"], undirected=True),
            load(graph, "features"),
            load(graph, "labels"),
            {name: ids for name, ids in splits.items() if ids is not None},
            len(carried),
        )
        self.compare_carried(graph, arrays, carried)
        self.compare_reader("x.ooc", arrays)

    def compare_carried(self, graph, arrays, carried):
        """What was given is there: each edge of the input with what it carries, as often."""
        if not carried:
            return

        def records(edges, columns):
            columns = [np.asarray(column, np.float32).reshape(len(edges), -1) for column in columns]
            table = np.concatenate([np.asarray(edges), *columns], axis=1)
            return np.unique(table, axis=0, return_counts=True)

        given, times = records(load(graph, "edges"), [load(graph, name) for name in carried])
        found, found_times = records(arrays["edges"], [arrays[name] for name in carried])
        there = {row.tobytes(): count for row, count in zip(found, found_times)}
        for row, count in zip(given, times):
            self.assertGreaterEqual(there.get(row.tobytes(), 0), count)


if __name__ == "__main__":
    programs.main()
