"""ooc-prep import of NumPy's arrays of strings: names of classes, ids, edges."""

import csv
import json

import numpy as np
import programs
from comparing import SPLITS, ComparingTest, sort_edges
from programs import write_graph

TYPES = ("<U11", ">U11", "|S11")


class StringsTest(ComparingTest):
    def setUp(self):
        super().setUp()
        write_graph(self.path / "dense", vertices=90, degree=8)
        self.dense = {path.stem: np.load(path) for path in (self.path / "dense").iterdir()}
        names = np.random.default_rng(2).permutation(90)
        self.names = np.array([f"v{n}" if n % 3 else f"Émile {n}" for n in names])
        (self.path / "raw").mkdir()

    def save(self, name, array, kind=None):
        """As a type that UTF-8 is encoded for where it has bytes."""
        array = np.asarray(array)
        if kind == "|S11":
            array = np.char.encode(array.astype("U"), "utf-8")
        np.save(self.path / name, array if kind is None else array.astype(kind))

    def rows(self, name):
        with open(self.path / "out" / name, newline="", encoding="utf-8") as file:
            return list(csv.reader(file))

    def test_names_of_classes(self):
        classes = np.array(["Theory", "Case Based", "Größe"])
        order = np.argsort(np.char.encode(classes, "utf-8"))
        places = np.argsort(order)[self.dense["labels"]]
        words = classes[self.dense["labels"]].astype("<U11")
        words[4], words[7], places[[4, 7]] = "", "unknown", -1
        for kind in TYPES:
            self.save("y.npy", words, kind)
            np.savez(self.path / "y.npz", y=np.load(self.path / "y.npy"))
            np.savez_compressed(self.path / "z.npz", y=np.load(self.path / "y.npy")[:, None],
                                x=self.dense["features"])  # fmt: skip
            for file in ("y.npy", "y.npz", "z.npz:y"):
                self.succeed("ooc-prep", "import", "--edges", "dense/edges.npy", "--labels", file,
                             "-o", "x.ooc", "--force", "--quiet")  # fmt: skip
                facts = json.loads(self.succeed("ooc-inspect", "x.ooc", "--json").stdout)
                self.assertEqual(facts["class_names"], list(classes[order]))
                self.succeed("ooc-prep", "export", "x.ooc", "-o", "out", "--force", "--quiet")
                np.testing.assert_array_equal(np.load(self.path / "out/labels.npy"), places)
        self.save("y.npy", np.where(words == "Theory", "?x", words))
        self.succeed("ooc-prep", "import", "--edges", "dense/edges.npy", "--labels", "y.npy",
                     "--unlabelled", "?x", "-o", "x.ooc", "--force")  # fmt: skip
        facts = json.loads(self.succeed("ooc-inspect", "x.ooc", "--json").stdout)
        self.assertEqual(facts["class_names"], ["Case Based", "Größe"])

    def test_ids_edges_and_lists(self):
        names, dense = self.names, self.dense
        order = np.argsort(np.char.encode(names, "utf-8"))
        for kind in TYPES:
            self.save("raw/edges.npy", names[dense["edges"]], kind)
            self.save("raw/ids.npy", names, kind)
            for name in SPLITS:
                self.save(f"raw/{name}.npy", names[dense[name]], kind)
            for name in ("features", "labels"):
                self.save(f"raw/{name}.npy", dense[name])
            self.succeed("ooc-prep", "import", "raw", "--remap-ids", "-o", "x.ooc", "--force",
                         "--quiet")  # fmt: skip
            self.succeed("ooc-prep", "verify", "x.ooc")
            self.succeed("ooc-prep", "export", "x.ooc", "-o", "out", "--force", "--quiet")
            lines = (self.path / "out/ids.txt").read_text(encoding="utf-8").split("\n")
            self.assertEqual(lines, [*names[order], ""])
            for name in ("features", "labels"):
                back = np.load(self.path / f"out/{name}.npy")
                np.testing.assert_array_equal(back, dense[name][order])
            place = {name: i for i, name in enumerate(names)}
            edges = np.array([[place[end] for end in row] for row in self.rows("edges.csv")[1:]])
            np.testing.assert_array_equal(sort_edges(edges), sort_edges(dense["edges"]))
            for name in SPLITS:
                ids = [place[row[0]] for row in self.rows(f"{name}.csv")]
                self.assertEqual(sorted(ids), sorted(dense[name]))
        # Numbers in edges that are text, and a list of strings.
        np.savetxt(self.path / "e.csv", dense["edges"] + 100, fmt="%d", delimiter=",")
        self.save("i.npy", (np.arange(90) + 100).astype("U"))
        self.succeed("ooc-prep", "import", "--edges", "e.csv", "--ids", "i.npy", "--features",
                     "raw/features.npy", "-o", "x.ooc", "--force", "--quiet")  # fmt: skip
        self.succeed("ooc-prep", "export", "x.ooc", "-o", "out", "--force", "--quiet")
        order = np.argsort((np.arange(90) + 100).astype("U"))
        np.testing.assert_array_equal(np.load(self.path / "out/features.npy"),
                                      dense["features"][order])  # fmt: skip

    def test_what_is_refused(self):
        importing = ("ooc-prep", "import", "-o", "y.ooc", "--edges")
        self.save("e.npy", self.names[self.dense["edges"]])
        self.fail_with(3, "the array's type '<U8' is not supported, e.npy; .*--remap-ids",
                       *importing, "e.npy")  # fmt: skip
        self.save("i.npy", self.names[:-1])
        self.fail_with(3, f"vertex id '{self.names[-1]}' is not in i.npy, e.npy, row \\d+, column "
                       r"\d", *importing, "e.npy", "--ids", "i.npy")  # fmt: skip
        self.save("i.npy", np.where(self.names == self.names[5], self.names[3], self.names))
        self.fail_with(3, f"vertex id '{self.names[3]}' is there twice, i.npy, row 5; ",
                       *importing, "e.npy", "--ids", "i.npy")  # fmt: skip
        self.save("i.npy", np.where(self.names == self.names[5], "", self.names))
        self.fail_with(3, "an empty id, i.npy, row 5; ", *importing, "e.npy", "--ids", "i.npy")
        self.save("i.npy", np.where(self.names == self.names[5], "a\nb", self.names))
        self.fail_with(3, "control characters, i.npy, row 5; ", *importing, "e.npy", "--ids",
                       "i.npy")  # fmt: skip
        self.save("i.npy", self.names.astype(">U8"))
        whole = (self.path / "i.npy").read_bytes()
        at = len(whole) - 90 * 8 * 4 + 5 * 8 * 4
        (self.path / "i.npy").write_bytes(whole[:at] + b"\x00\x11\x00\x00" + whole[at + 4:])
        self.fail_with(3, "no UTF-8, .* i.npy, row 5; ", *importing, "e.npy", "--ids", "i.npy")
        self.fail_with(3, "numbers where other files' ids are strings, dense/labels.npy; ",
                       *importing, "e.npy", "--ids", "dense/labels.npy")  # fmt: skip
        self.save("e.npy", np.asfortranarray(self.names[self.dense["edges"]]))
        self.fail_with(3, "strings in Fortran order, e.npy, .*ascontiguousarray", *importing,
                       "e.npy", "--remap-ids")  # fmt: skip
        np.save(self.path / "o.npy", self.names.astype(object))
        self.fail_with(3, "Python objects, o.npy; .*strings, x.astype", *importing,
                       "dense/edges.npy", "--labels", "o.npy")  # fmt: skip
        self.fail_with(3, "strings lie where features are needed, i.npy; ", *importing,
                       "dense/edges.npy", "--features", "i.npy")  # fmt: skip


if __name__ == "__main__":
    programs.main()
