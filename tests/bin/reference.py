"""What import makes of arrays, computed with NumPy alone; the reference of the tests of export."""

import numpy as np
import scipy.sparse


def load_array(directory, name):
    """NAME.npy, or NAME.npz as SciPy's sparse matrix made dense; None where there is neither."""
    if (directory / f"{name}.npy").exists():
        return np.load(directory / f"{name}.npy")
    if (directory / f"{name}.npz").exists():
        return scipy.sparse.load_npz(directory / f"{name}.npz").toarray()
    return None


def transform_edges(edges, vertices, undirected=False, self_loops="keep", coalesce="keep"):
    """[E, 2] int64, sorted: first coalesce, then the missing reverse edges, then self loops."""
    edges = np.asarray(edges, np.int64).reshape(-1, 2)
    if coalesce == "first":
        edges = np.unique(edges, axis=0)
    if undirected:
        there = {(u, v) for u, v in edges.tolist()}
        missing = sorted({(v, u) for u, v in there if u != v} - there)
        edges = np.concatenate([edges, np.array(missing, np.int64).reshape(-1, 2)])
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
