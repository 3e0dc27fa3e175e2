"""ooc-prep import --remap-ids where ids are strings: every output is keyed by them."""

import csv
import gzip
import json
import re

import h5py
import numpy as np
import programs
from comparing import SPLITS, ComparingTest, read_dataset, sort_edges
from programs import write_graph

AWKWARD = ["Smith, John", 'say "hi"', "a;b", "#tag", "x y", "Émile", "日本", "7", "07", "id"]


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


class NamesTest(ComparingTest):
    def setUp(self):
        super().setUp()
        write_graph(self.path / "dense", vertices=90, degree=8)
        self.dense = {path.stem: np.load(path) for path in (self.path / "dense").iterdir()}
        assert len(np.unique(self.dense["edges"])) == 90
        names = AWKWARD + [f"v{i}" for i in range(90 - len(AWKWARD))]
        self.names = np.array(sorted(names, key=str.encode), dtype=object)
        (self.path / "raw").mkdir()
        self.write_names("edges", self.names[self.dense["edges"]], ["from", "to"])
        for name in SPLITS:
            self.write_names(name, self.names[self.dense[name]][:, None])
        for name in ("features", "labels"):
            np.save(self.path / f"raw/{name}.npy", self.dense[name])

    def write_names(self, name, rows, header=None):
        with open(self.path / f"raw/{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL if header is None else 0)
            writer.writerows([header] * (header is not None) + rows.tolist())

    def remap(self, source="raw", *options, output="x.ooc"):
        rows = "--rows-sorted" if source == "raw" else "--remap-ids"  # an export has ids.txt
        self.succeed("ooc-prep", "import", source, rows, "-o", output, "--quiet", *options)
        self.succeed("ooc-prep", "verify", output)
        directory = self.path / output.replace(".ooc", "-out")
        self.succeed("ooc-prep", "export", output, "-o", directory, "--quiet")
        return directory

    def places(self, rows):
        place = {name: i for i, name in enumerate(self.names)}
        return np.array([[place[name] for name in row] for row in rows])

    def test_an_export_has_the_ids_of_the_input(self):
        for order in ("natural", "random", "degree"):
            out = self.remap("raw", "--order", order, "--block-rows", 16, output=f"{order}.ooc")
            with self.subTest(order=order):
                lines = (out / "ids.txt").read_text(encoding="utf-8").split("\n")
                self.assertEqual(lines, [*self.names, ""])
                header, *edges = read_csv(out / "edges.csv")
                self.assertEqual(header, ["source", "destination"])
                np.testing.assert_array_equal(sort_edges(self.places(edges)),
                                              sort_edges(self.dense["edges"]))  # fmt: skip
                for name in SPLITS:
                    found = self.places(read_csv(out / f"{name}.csv"))[:, 0]
                    np.testing.assert_array_equal(found, np.sort(self.dense[name]))
                for name in ("features", "labels"):
                    np.testing.assert_array_equal(np.load(out / f"{name}.npy"), self.dense[name])
                facts = json.loads(self.succeed("ooc-inspect", f"{order}.ooc", "--json").stdout)
                self.assertEqual(facts["remapped_ids"], "strings")
                read = read_dataset(self.path / f"{order}.ooc")
                np.testing.assert_array_equal(read.original_ids, self.names[read.ids[:, 0]])

    def test_an_export_imports_again_to_the_same_export(self):
        first = self.remap("raw", "--order", "random")
        second = self.remap("x-out", output="y.ooc")
        names = sorted(path.name for path in first.iterdir())
        self.assertEqual(names, sorted(path.name for path in second.iterdir()))
        for name in names:
            given, again = (first / name).read_bytes(), (second / name).read_bytes()
            if name == "edges.csv":
                given, again = sorted(given.splitlines()), sorted(again.splitlines())
            self.assertEqual(given, again, name)
        self.succeed("ooc-prep", "export", "x.ooc", "-o", "x-out", "--force", "--memory", "1MiB")

    def test_what_edges_carry_stays_with_them(self):
        edges = self.dense["edges"]
        (self.path / "e.tsv.gz").write_bytes(gzip.compress(
            "".join(f"n{a:02}\tn{b:02}\n" for a, b in edges).encode()))  # fmt: skip
        np.save(self.path / "w.npy", np.arange(len(edges), dtype=np.float32))
        self.succeed("ooc-prep", "import", "--edges", "e.tsv.gz", "--edge-weights", "w.npy",
                     "--remap-ids", "-o", "w.ooc", "--block-rows", 16)  # fmt: skip
        read = read_dataset(self.path / "w.ooc").edges_in
        triples = sorted(zip(read.sources, read.rows, read.weights))
        self.assertEqual(triples, sorted(zip(edges[:, 0], edges[:, 1], np.arange(len(edges)))))
        self.succeed("ooc-prep", "export", "w.ooc", "-o", "w")
        back = [(int(a[1:]), int(b[1:])) for a, b in read_csv(self.path / "w/edges.csv")[1:]]
        np.testing.assert_array_equal(edges[np.load(self.path / "w/edge_weights.npy").astype(int)],
                                      back)  # fmt: skip

    def test_inference_is_keyed_by_the_ids(self):
        both = ("--undirected", "--coalesce", "first", "--quiet")
        self.succeed("ooc-prep", "import", "dense", "-o", "dense.ooc", *both)
        self.remap("raw", *both[:-1], "--order", "random", "--block-rows", 16)
        self.succeed("ooc-train", "dense.ooc", "--run-dir", "run", "--epochs", 5, "--hidden", 8)
        self.succeed("ooc-infer", "dense.ooc", "--run", "run", "-o", "dense.npy")
        infer = ("ooc-infer", "x.ooc", "--run", "run", "-o")
        self.assertIn("out.ids.txt: their ids", self.succeed(*infer, "out.npy").stdout)
        logits = np.load(self.path / "dense.npy")
        np.testing.assert_allclose(np.load(self.path / "out.npy"), logits, rtol=1e-4, atol=1e-4)
        ids = (self.path / "out.ids.txt").read_text(encoding="utf-8")
        self.assertEqual(ids.split("\n"), [*self.names, ""])
        self.succeed(*infer, "out.h5")
        with h5py.File(self.path / "out.h5") as file:
            self.assertEqual(sorted(file), ["data", "ids"])
            self.assertEqual(file["ids"].asstr()[...].tolist(), list(self.names))
        (self.path / "new.ids.txt").write_text("mine")
        self.fail_with(2, "output exists, new.ids.txt", *infer, "new.npy")
        self.assertFalse((self.path / "new.npy").exists())

    def test_the_table_of_ids_is_charged(self):
        with open(self.path / "many.csv", "w") as file:
            file.writelines(f"{'some vertex with a long name':.<80}{i},{(i * 7) % 400_000}\n"
                            for i in range(400_000))  # fmt: skip
        importing = ("ooc-prep", "import", "--edges", "many.csv", "--remap-ids", "--quiet")
        found = self.fail_with(4, r"the ids \S+ MiB, .*give --memory \d+MiB or more",
                               *importing, "-o", "no.ooc", "--memory", "200MiB")  # fmt: skip
        self.assertFalse((self.path / "no.ooc").exists())
        wanted = re.search(r"--memory (\d+)MiB or more", found.stderr).group(1)
        self.succeed(*importing, "-o", "little.ooc", "--memory", f"{wanted}MiB")
        self.succeed(*importing, "-o", "much.ooc", "--memory", "4GiB")
        for path in (self.path / "much.ooc").iterdir():
            little = self.path / "little.ooc" / path.name
            self.assertEqual(path.read_bytes(), little.read_bytes(), path.name)

    def test_what_is_refused(self):
        importing = ("ooc-prep", "import", "--remap-ids", "-o", "no.ooc", "--edges")
        (self.path / "e.csv").write_text("alice,bob\nbob,carol\n")
        (self.path / "bad.csv").write_text("alice,bob\nbob,\n")
        self.fail_with(3, "an empty id, bad.csv, line 2, field 2", *importing, "bad.csv")
        (self.path / "three.csv").write_text("alice,bob,0.5\nbob,carol,1\n")
        self.fail_with(3, "edges need two columns", *importing, "three.csv")
        self.fail_with(3, r"3 ids in the edges but the vertex count is 4 \(--vertices\), e.csv",
                       *importing, "e.csv", "--vertices", 4)  # fmt: skip
        (self.path / "t.txt").write_text("alice\neve\n")
        np.save(self.path / "y.npy", np.zeros(3, np.int64))
        self.fail_with(3, "vertex id 'eve' is in no edge, t.txt, line 2", *importing, "e.csv",
                       "--labels", "y.npy", "--train", "t.txt", "--rows-sorted")  # fmt: skip
        (self.path / "p.csv").write_text("payer,payee\nalice,bob\n")
        (self.path / "x.csv").write_text("name,x\nbob,1\nalice,2\n")
        self.fail_with(3, "vertex ids 'payer', 'payee' are not in x.csv:name, p.csv, line 1, field "
                       "1; .*; if the first line is a header, name its columns, FILE:COLUMN,COLUMN",
                       *importing, "p.csv", "--features", "x.csv", "--id", "name")  # fmt: skip
        self.assertFalse((self.path / "no.ooc").exists())
        self.fail_with(3, "'bob' is not a number", "ooc-prep", "import", "--edges", "e.csv", "-o",
                       "no.ooc")  # fmt: skip


if __name__ == "__main__":
    programs.main()
