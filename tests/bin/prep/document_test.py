"""docs/formats.md: each command of its table, on files that NumPy and SciPy write, makes the
dataset that they say."""

import csv
import gzip
import pathlib
import re
import shlex

import h5py
import numpy as np
import programs
import scipy.io
import scipy.sparse
from comparing import ComparingTest, sort_edges
from programs import write_graph

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs/formats.md"
PARTS = ("train", "valid", "test")
WORDS = np.array(["Agents", "Machine Learning", "Theory"])

CASES = {}


def commands():
    """What one has, and the command, of each row of the table after the marker."""
    table = DOCUMENT.read_text(encoding="utf-8").split("<!-- commands -->\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]
    return {row[0]: re.fullmatch("`ooc-prep (.*)`", row[1]).group(1) for row in rows}


def case(what):
    """Registers what writes the files of one row, and returns what of the graph is expected."""

    def register(function):
        assert what not in CASES
        CASES[what] = function
        return function

    return register


class Graph:
    """60 vertices with edges, features, labels and splits; writes them into the directory."""

    def __init__(self, path):
        self.path = path
        write_graph(path / "graph", degree=8)
        arrays = {file.stem: np.load(file) for file in (path / "graph").iterdir()}
        self.edges, self.x, self.y = (arrays[part] for part in ("edges", "features", "labels"))
        self.splits = {part: arrays[f"{part}_idx"] for part in PARTS}
        self.random = np.random.default_rng(7)
        self.weights = self.random.integers(1, 100, len(self.edges)) / 4
        self.ids = self.random.permutation(60) * 9 + 100  # of the vertices, where they have some
        self.names = np.array([f"v{i}" for i in self.ids])

    def save(self, **arrays):
        for name, array in arrays.items():
            np.save(self.path / f"{name}.npy", array)

    def write(self, name, *columns, header=None, delimiter=",", comments=()):
        with open(self.path / name, "w", newline="", encoding="utf-8") as file:
            file.writelines(f"{comment}\n" for comment in comments)
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([header] * bool(header))
            writer.writerows(zip(*columns))

    def matrix(self):
        return scipy.sparse.coo_matrix((self.weights, self.edges.T), (60, 60))


@case("arrays under the usual names")
def _(graph):
    return {"features": graph.x, "labels": graph.y, "splits": graph.splits}


@case("PyTorch Geometric's arrays")
def _(graph):
    masks = {f"{part}_mask": np.isin(np.arange(60), graph.splits[split])
             for part, split in zip(("train", "val", "test"), PARTS)}  # fmt: skip
    graph.save(edge_index=graph.edges.T, x=graph.x, y=graph.y, **masks)
    return {"features": graph.x, "labels": graph.y, "splits": graph.splits}


@case("OGB's download")
def _(graph):
    files = {"raw/edge": graph.edges, "raw/node-feat": graph.x, "raw/node-label": graph.y[:, None],
             "raw/num-node-list": [[60]]}  # fmt: skip
    files |= {f"split/time/{part}": graph.splits[part][:, None] for part in PARTS}
    for name, rows in files.items():
        path = graph.path / f"ogbn_arxiv/{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            np.savetxt(file, rows, "%.9g", ",")
    return {"features": graph.x, "labels": graph.y, "splits": graph.splits}


@case("IGB's download")
def _(graph):
    for name in ("paper", "paper__cites__paper"):
        (graph.path / name).mkdir()
    graph.x.tofile(graph.path / "paper/node_feat.npy")
    np.save(graph.path / "paper/node_label_19.npy", graph.y.astype(np.float32))
    np.save(graph.path / "paper__cites__paper/edge_index.npy", graph.edges)
    return {"features": graph.x, "labels": graph.y, "counts": (36, 12, 12)}


@case("headerless arrays")
def _(graph):
    graph.edges.astype(np.int32).tofile(graph.path / "e.bin")
    graph.x.tofile(graph.path / "x.bin")
    graph.y.tofile(graph.path / "y.bin")
    return {"features": graph.x, "labels": graph.y}


@case("HDF5")
def _(graph):
    with h5py.File(graph.path / "g.h5", "w") as file:
        file["edges"], file["nodes/x"], file["nodes/y"] = graph.edges, graph.x, graph.y
    return {"features": graph.x, "labels": graph.y}


@case("an archive of arrays")
def _(graph):
    np.savez_compressed(graph.path / "graph.npz", edges=graph.edges, node_features=graph.x,
                        node_labels=graph.y)  # fmt: skip
    return {"features": graph.x, "labels": graph.y}


@case("SciPy's sparse features")
def _(graph):
    x = np.where(graph.x > 1, graph.x, 0)
    scipy.sparse.save_npz(graph.path / "x.npz", scipy.sparse.csr_matrix(x))
    graph.save(edges=graph.edges)
    return {"features": x}


@case("SciPy's adjacency matrix")
def _(graph):
    scipy.sparse.save_npz(graph.path / "a.npz", graph.matrix().tocsc())
    return {"weights": graph.weights}


@case("an archive with `adj_indptr` and so on")
def _(graph):
    arrays = {"labels": graph.y}
    for name, matrix in (("adj", graph.matrix()), ("attr", scipy.sparse.csr_matrix(graph.x))):
        csr = matrix.tocsr()
        arrays |= {f"{name}_{part}": getattr(csr, part)
                   for part in ("data", "indices", "indptr", "shape")}  # fmt: skip
    np.savez(graph.path / "cora.npz", **arrays)
    return {"features": graph.x, "labels": graph.y}


@case("sources and destinations apart")
def _(graph):
    np.savez(graph.path / "graph.npz", src_li=graph.edges[:, 0], dst_li=graph.edges[:, 1])
    return {}


@case("Matrix Market")
def _(graph):
    scipy.io.mmwrite(graph.path / "web.mtx", graph.matrix(), symmetry="general")
    return {"weights": graph.weights}


@case("SNAP's lists")
def _(graph):
    text = "# Directed graph: soc.txt\n# FromNodeId\tToNodeId\n"
    text += "".join(f"{a}\t{b}\n" for a, b in graph.ids[graph.edges])
    (graph.path / "soc.txt.gz").write_bytes(gzip.compress(text.encode()))
    return {"ids": graph.ids}


@case("KONECT's lists")
def _(graph):
    graph.write("out.txt", *(graph.edges + 1).T, graph.weights, [1136073600] * len(graph.edges),
                delimiter=" ", comments=("% sym weighted", f"% {len(graph.edges)} 60 60"))
    return {"ids": np.arange(60) + 1, "weights": graph.weights}


@case("tables, row i is vertex i")
def _(graph):
    graph.write("edges.csv", *graph.edges.T, header=["source", "target"])
    graph.write("features.csv", *graph.x.T, header=[f"x{i}" for i in range(8)])
    graph.write("labels.csv", graph.y)
    return {"features": graph.x, "labels": graph.y}


@case("tables with ids of vertices")
def _(graph):
    rows = [graph.random.permutation(60) for _ in range(2)]
    classes = np.where(graph.y == 0, -1, graph.y)
    words = np.array(["unknown", "1", "2"])[graph.y]
    graph.write("edges.csv", *graph.ids[graph.edges].T, header=["txId1", "txId2"])
    graph.write("features.csv", graph.ids[rows[0]], *graph.x[rows[0]].T)
    graph.write("labels.csv", graph.ids[rows[1]], words[rows[1]], header=["txId", "class"])
    return {"ids": graph.ids, "features": graph.x, "labels": classes}


@case("names in tables of more columns")
def _(graph):
    rows = graph.random.permutation(60)
    graph.write("payments.csv", np.arange(len(graph.edges)), *graph.names[graph.edges].T,
                graph.weights, header=["when", "payer", "payee", "amount"])  # fmt: skip
    graph.write("accounts.csv", graph.names[rows], ["?"] * 60, *graph.x[rows, :3].T,
                graph.y[rows] % 2, header=["account", "remark", "a", "b", "c", "fraud"])
    return {"ids": graph.names, "features": graph.x[:, :3], "labels": graph.y % 2,
            "weights": graph.weights}  # fmt: skip


@case("Cora as LINQS has it")
def _(graph):
    rows = graph.random.permutation(60)
    words = (graph.x > 0).astype(int)
    graph.write("cites.txt", *graph.ids[graph.edges].T, delimiter="\t")
    graph.write("content.txt", graph.ids[rows], *words[rows].T, WORDS[graph.y[rows]],
                delimiter="\t")  # fmt: skip
    return {"ids": graph.ids, "features": words, "labels": graph.y, "class_names": WORDS}


@case("ids from 1")
def _(graph):
    graph.write("edges.tsv", *(graph.edges + 1).T, delimiter="\t")
    graph.save(x=graph.x)
    return {"ids": np.arange(60) + 1, "features": graph.x}


@case("a list of ids beside arrays")
def _(graph):
    graph.save(edges=graph.ids[graph.edges], x=graph.x, y=graph.y, ids=graph.ids)
    return {"ids": graph.ids, "features": graph.x, "labels": graph.y}


@case("names in arrays")
def _(graph):
    graph.save(edges=graph.names[graph.edges], x=graph.x, topics=WORDS[graph.y].astype("S"),
               names=graph.names)  # fmt: skip
    return {"ids": graph.names, "features": graph.x, "labels": graph.y, "class_names": WORDS}


@case("several splits side by side")
def _(graph):
    masks = {}
    for name, part in zip(("train_masks", "val_masks", "test_masks"), PARTS):
        masks[name] = graph.random.random((60, 4)) < 0.2  # of other splits
        masks[name][:, 2] = np.isin(np.arange(60), graph.splits[part])
    np.savez(graph.path / "g.npz", edges=graph.edges, y=graph.y, **masks)
    return {"labels": graph.y, "splits": graph.splits}


@case("names of classes in lines")
def _(graph):
    graph.save(edges=graph.edges)
    graph.write("labels.txt", WORDS[graph.y])
    return {"labels": graph.y, "class_names": WORDS}


@case("classes in numbers, and their names")
def _(graph):
    graph.save(edges=graph.edges, y=graph.y)
    graph.write("names.txt", WORDS[::-1])
    return {"labels": graph.y, "class_names": WORDS[::-1]}


@case("one-hot classes")
def _(graph):
    y = np.eye(3, dtype=np.int64)[graph.y]
    y[11] = 0
    graph.save(edges=graph.edges, y=y)
    return {"labels": np.where(np.arange(60) == 11, -1, graph.y)}


@case("several labels a vertex")
def _(graph):
    y = graph.random.integers(0, 2, (60, 5)).astype(np.float32)
    y[3, 2] = np.nan
    graph.save(edges=graph.edges, y=y)
    return {"labels": np.where(np.isnan(y), -1, y)}


@case("numbers to predict")
def _(graph):
    graph.save(edges=graph.edges, values=graph.x[:, :2].astype(np.float64))
    return {"labels": graph.x[:, :2]}


@case("edges that carry data")
def _(graph):
    types = graph.random.integers(0, 4, len(graph.edges))
    data = graph.random.random((len(graph.edges), 3), dtype=np.float32)
    graph.save(edges=graph.edges, w=graph.weights, t=types, f=data)
    return {"weights": graph.weights, "types": types, "edge_features": data}


@case("each edge once")
def _(graph):
    graph.save(edges=graph.edges)
    return {"edges": np.concatenate([graph.edges, graph.edges[:, ::-1]])}


@case("gaps in features")
def _(graph):
    x = graph.x.copy()
    x[[4, 9], [1, 7]] = np.nan
    graph.write("x.csv", *[["" if np.isnan(value) else value for value in column]
                           for column in x.T])  # fmt: skip
    graph.save(edges=graph.edges)
    return {"features": np.where(np.isnan(x), np.nanmean(x.astype(np.float64), axis=0), x)}


@case("no features")
def _(graph):
    graph.save(edges=graph.edges, y=graph.y)
    degrees = [np.bincount(graph.edges[:, end], minlength=60) for end in (1, 0)]
    return {"features": np.log1p(np.stack(degrees, axis=1)), "labels": graph.y,
            "counts": (36, 12, 12)}  # fmt: skip


@case("no features, and degrees say nothing")
def _(graph):
    graph.save(edges=graph.edges, y=graph.y)
    return {"shape": (60, 16), "labels": graph.y, "counts": (36, 12, 12)}


class DocumentTest(ComparingTest):
    def test_every_command_makes_what_it_says(self):
        documented = commands()
        self.assertEqual(list(documented), list(CASES), "the table and the cases have other rows")
        for what, command in documented.items():
            with self.subTest(what):
                path = self.path
                self.path = path / re.sub(r"\W+", "-", what)
                graph = Graph(self.path)
                expected = CASES[what](graph)
                self.succeed("ooc-prep", *shlex.split(command))
                self.succeed("ooc-prep", "verify", "g.ooc", "--quiet")
                self.succeed("ooc-prep", "export", "g.ooc", "-o", "out", "--quiet")
                self.check(graph, expected)
                self.path = path

    def test_what_is_not_read_is_refused(self):
        for name in ("g.graph", "g.parquet", "g.mat", "g.pkl", "g.pt", "g.json", "g.csv.zst",
                     "g.npy.gz"):  # fmt: skip
            (self.path / name).write_bytes(b"1 2\n2 3\n")
            self.fail_with(3, f"the kind of file is not known from its name, {name}; give one that "
                           "ends in .npy,", "ooc-prep", "import", "--edges", name, "-o", "x.ooc")
        (self.path / "g.txt").write_text("3 2\n2 3\n1\n1\n")  # METIS's
        self.fail_with(3, "1 fields where the first line has 2, g.txt, line 3", "ooc-prep",
                       "import", "--edges", "g.txt", "-o", "x.ooc")  # fmt: skip

    def read(self, name):
        """An array, or lines of fields."""
        file = self.path / "out" / f"{name}.npy"
        if file.exists():
            return np.load(file)
        lines = file.with_suffix(".csv" if name != "ids" else ".txt").read_text().splitlines()
        rows = np.array([line.split(",") for line in lines[name == "edges":]])
        return rows if name == "edges" else rows[:, 0]

    def check(self, graph, expected):
        out = self.path / "out"
        ids = expected.get("ids", np.arange(60))
        order = np.argsort(ids)
        if "ids" in expected:
            np.testing.assert_array_equal(self.read("ids"), ids[order])
        place = {name: vertex for vertex, name in enumerate(ids)}
        edges = np.array([[place[end] for end in edge] for edge in self.read("edges")])
        given = expected.get("edges", graph.edges)
        np.testing.assert_array_equal(sort_edges(edges), sort_edges(given))
        by_ends = np.lexsort((edges[:, 1], edges[:, 0])), np.lexsort((given[:, 1], given[:, 0]))
        for name, file in (("weights", "edge_weights"), ("types", "edge_types"),
                           ("edge_features", "edge_features")):  # fmt: skip
            self.assertEqual((out / f"{file}.npy").exists(), name in expected)
            if name in expected:
                np.testing.assert_allclose(self.read(file)[by_ends[0]],
                                           expected[name][by_ends[1]], rtol=1e-6)  # fmt: skip
        for name in ("features", "labels"):
            if name in expected:
                np.testing.assert_allclose(self.read(name), expected[name][order], rtol=2e-6)
        if "shape" in expected:
            self.assertEqual(self.read("features").shape, expected["shape"])
        self.assertEqual((out / "features.npy").exists(), "features" in expected
                         or "shape" in expected)  # fmt: skip
        self.assertEqual((out / "labels.npy").exists(), "labels" in expected)
        if "class_names" in expected:
            self.assertEqual((out / "class_names.txt").read_text().splitlines(),
                             list(expected["class_names"]))  # fmt: skip
        for number, part in enumerate(PARTS):
            splits, counts = expected.get("splits"), expected.get("counts")
            if splits:
                np.testing.assert_array_equal(self.read(f"{part}_idx"), np.sort(splits[part]))
            elif counts:
                self.assertEqual(len(self.read(f"{part}_idx")), counts[number])
            else:
                self.assertFalse(list(out.glob(f"{part}_idx.*")))


if __name__ == "__main__":
    programs.main()
