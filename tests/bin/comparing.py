"""What import makes of arrays, computed with NumPy alone, and the comparison of it with what
ooc-prep export and the reader in plain Python give back."""

import pathlib
import sys

import numpy as np
from programs import ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "storage/dataset"))
from read_dataset import read_dataset  # noqa: E402

SPLITS = ("train_idx", "valid_idx", "test_idx")


def transform_edges(edges, vertices, undirected=False, self_loops="keep", coalesce="keep"):
    """[E, 2] int64, sorted: first coalesce, then the missing reverse edges, then self loops."""
    edges = np.asarray(edges, np.int64).reshape(-1, 2)
    if coalesce == "first":
        edges = np.unique(edges, axis=0)
    if undirected:
        keys = edges @ [vertices, 1]
        missing = np.setdiff1d(edges[:, ::-1] @ [vertices, 1], keys)
        edges = np.concatenate([edges, np.stack(np.divmod(missing, vertices), axis=1)])
    loops = edges[:, 0] == edges[:, 1]
    if self_loops == "drop":
        edges = edges[~loops]
    if self_loops == "add-remaining":
        without = np.setdiff1d(np.arange(vertices), edges[loops, 0])
        edges = np.concatenate([edges, np.stack([without, without], axis=1)])
    return sort_edges(edges)


def sort_edges(edges):
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def normalise(features, norm):
    """In double; what would be divided by zero stays."""
    x = features.astype(np.float64)
    if norm == "standard":
        deviation = x.std(axis=0)
        constant = x.max(axis=0) == x.min(axis=0)
        return np.where(constant, 0, (x - x.mean(axis=0)) / np.where(constant, 1, deviation))
    scale = {
        "none": lambda: np.ones(len(x)),
        "row": lambda: np.abs(x).sum(axis=1),
        "l2": lambda: np.sqrt((x * x).sum(axis=1)),
    }[norm]()
    return x / np.where(scale == 0, 1, scale)[:, None]


class ComparingTest(ProgramTest):
    def exported(self, dataset, directory="out", *options):
        self.succeed("ooc-prep", "export", dataset, "-o", directory, "--quiet", *options)
        paths = (self.path / directory).iterdir()
        return {path.stem: np.load(path, mmap_mode="r") for path in paths}

    def compare(self, arrays, expected_edges, expected_features, labels, splits, carried=0):
        """`carried`: how many arrays there are of what the edges carry."""
        np.testing.assert_array_equal(sort_edges(arrays["edges"]), expected_edges)
        self.assertEqual(arrays["edges"].dtype, np.int64)
        if expected_features is None:
            self.assertNotIn("features", arrays)
        else:
            self.assertEqual(arrays["features"].dtype, np.float32)
            self.compare_features(arrays["features"], expected_features)
        if labels is not None:
            np.testing.assert_array_equal(arrays["labels"], labels)
        for name, ids in splits.items():
            np.testing.assert_array_equal(arrays[name], np.sort(ids))
        count = 1 + (expected_features is not None) + (labels is not None) + len(splits) + carried
        self.assertEqual(len(arrays), count)

    def compare_features(self, features, expected):
        np.testing.assert_allclose(features, expected, 2e-6, 1e-7)

    def compare_reader(self, dataset, arrays):
        """The reader finds what was exported, in the dataset's own order, and both directions."""
        read = read_dataset(self.path / dataset)
        ids = read.ids[:, 0]
        np.testing.assert_array_equal(np.sort(ids), np.arange(len(ids)))
        edges = np.stack([ids[read.edges_in.sources], ids[read.edges_in.rows]], axis=1)
        np.testing.assert_array_equal(edges, arrays["edges"])  # in the same order, too
        out = np.stack([ids[read.edges_out.rows], ids[read.edges_out.sources]], axis=1)
        np.testing.assert_array_equal(sort_edges(out), sort_edges(edges))
        if "features" in arrays:
            for begin in range(0, len(ids), 4096):  # wide features are large
                rows = slice(begin, begin + 4096)
                expected = arrays["features"][ids[rows]]
                np.testing.assert_array_equal(read.features[rows], expected)
        if "labels" in arrays:
            labels = arrays["labels"] if arrays["labels"].ndim == 2 else arrays["labels"][:, None]
            np.testing.assert_array_equal(read.labels.astype(labels.dtype), labels[ids])
        for split, name in enumerate(SPLITS, 1):
            members = np.sort(ids[read.splits[:, 0] == split]) if name in arrays else []
            np.testing.assert_array_equal(arrays.get(name, []), members)
        loops = edges[:, 0] == edges[:, 1]
        for column, ends in enumerate((edges[~loops, 1], edges[~loops, 0], edges[loops, 0])):
            degrees = np.bincount(ends, minlength=len(ids))[ids]
            np.testing.assert_array_equal(read.degrees[:, column], degrees)
