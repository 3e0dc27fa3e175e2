"""ooc-prep import where tables say whose their rows are: ids of their own, in any order."""

import csv

import numpy as np
import programs
from comparing import SPLITS, ComparingTest, normalise
from programs import write_graph


class RowsTest(ComparingTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(3)

    def write_csv(self, name, header, *columns):
        with open(self.path / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([header] * bool(header))
            writer.writerows(zip(*[np.asarray(column, dtype=object) for column in columns]))

    def dense(self, **options):
        write_graph(self.path / "dense", **options)
        return {path.stem: np.load(path) for path in (self.path / "dense").iterdir()}

    def import_and_export(self, *options):
        self.succeed("ooc-prep", "import", *options, "-o", "x.ooc", "--force", "--quiet")
        self.succeed("ooc-prep", "verify", "x.ooc")
        self.succeed("ooc-prep", "export", "x.ooc", "-o", "out", "--force", "--quiet")
        arrays = {path.stem: np.load(path) for path in (self.path / "out").glob("*.npy")}
        if "ids" not in arrays:
            arrays["ids"] = np.array((self.path / "out/ids.txt").read_text().split())
        return arrays

    def check_rows(self, arrays, ids, dense):
        """`ids`: of the rows of `dense`."""
        order = np.argsort(ids)
        np.testing.assert_array_equal(arrays["ids"], ids[order])
        np.testing.assert_array_equal(arrays["features"], dense["features"][order])
        np.testing.assert_array_equal(arrays["labels"], dense["labels"][order])

    def test_named_accounts_in_shuffled_tables_learn_as_sorted_ones_do(self):
        count, alone = 3000, 40
        dense = self.dense(vertices=count, degree=12)
        dense["edges"] = dense["edges"][(dense["edges"] >= alone).all(axis=1)]  # accounts apart
        numbers = self.random.permutation(count)  # so that names are in no order of the vertices
        names = np.array([f"acct-{n:04d}" for n in numbers])
        rows = [self.random.permutation(count) for _ in range(2)]
        self.write_csv("trades.csv", ["when", "payer", "payee"],
                       np.arange(len(dense["edges"])), *names[dense["edges"]].T)  # fmt: skip
        self.write_csv("accounts.csv", ["account", *(f"x{i}" for i in range(8))],
                       names[rows[0]], *dense["features"][rows[0]].T)  # fmt: skip
        self.write_csv("classes.csv", ["class", "account"], dense["labels"][rows[1]],
                       names[rows[1]])  # fmt: skip
        splits = []
        for split in SPLITS:
            self.write_csv(f"{split}.csv", None, names[dense[split]])
            splits += [f"--{split[:-4]}", f"{split}.csv"]
        tables = ("--edges", "trades.csv:payer,payee", "--features", "accounts.csv", "--labels",
                  "classes.csv", *splits, "--undirected")  # fmt: skip
        self.fail_with(2, r"nothing says whose the rows of accounts.csv are, .*--ids FILE .*--id "
                       r"COLUMN .*--rows-sorted", "ooc-prep", "import", *tables, "--remap-ids",
                       "-o", "x.ooc")  # fmt: skip
        self.check_rows(self.import_and_export(*tables, "--id", "account"), names, dense)
        np.save(self.path / "dense/edges.npy", dense["edges"])
        self.succeed("ooc-prep", "import", "dense", "-o", "dense.ooc", "--undirected", "--quiet",
                     "--vertices", count)  # fmt: skip
        logits = []
        for dataset in ("dense.ooc", "x.ooc"):
            self.succeed("ooc-train", dataset, "--run-dir", "run", "--epochs", 30, "--hidden", 16,
                         "--seed", 5, "--force", "--quiet")  # fmt: skip
            self.succeed("ooc-infer", dataset, "--run", "run", "-o", "out.npy", "--force")
            logits.append(np.load(self.path / "out.npy"))
        ids = (self.path / "out.ids.txt").read_text().split()
        place = {name: i for i, name in enumerate(ids)}
        by_vertex = logits[1][[place[name] for name in names]]
        test = dense["test_idx"]
        scores = [(x.argmax(axis=1) == dense["labels"])[test].mean()
                  for x in (logits[0], by_vertex)]  # fmt: skip
        self.assertGreater(scores[0], 0.8)
        self.assertLess(abs(scores[0] - scores[1]), 0.03)

    def test_an_id_column_without_a_header_and_labels_of_some(self):
        dense = self.dense()
        ids = self.random.choice(2**40, 60, replace=False)
        some = self.random.permutation(60)[:45]
        rows = self.random.permutation(60)
        self.write_csv("features.csv", None, ids[rows], *dense["features"][rows].T)
        self.write_csv("labels.csv", ["txId", "class"], ids[some], dense["labels"][some])
        self.write_csv("edges.csv", ["txId1", "txId2"], *ids[dense["edges"]].T)
        options = ("--edges", "edges.csv", "--features", "features.csv", "--labels", "labels.csv",
                   "--id", 1)  # fmt: skip
        expected = dict(dense, labels=np.full(60, -1))
        expected["labels"][some] = dense["labels"][some]
        for order in ("natural", "random"):
            self.check_rows(self.import_and_export(*options, "--order", order), ids, expected)
        self.write_csv("labels.csv", ["txId", "class"], [*ids[some], 7, 5, 6, 8], [0] * 49)
        self.fail_with(3, r"vertex ids 5, 6, 7 are not in features.csv:1, labels.csv:1; list every",
                       "ooc-prep", "import", *options, "-o", "y.ooc")  # fmt: skip
        self.write_csv("labels.csv", ["txId", "class"], ids[[4, 9, 4]], [0, 1, 2])
        self.fail_with(3, f"vertex id {ids[4]} is there twice, labels.csv:1, line 4",
                       "ooc-prep", "import", *options, "-o", "y.ooc")  # fmt: skip

    def test_a_list_of_ids_serves_arrays_and_keeps_vertices_without_edges(self):
        dense = self.dense()
        ids = np.sort(self.random.choice(2**40, 64, replace=False) - 2**39)
        alone = 4
        rows = self.random.permutation(64)
        features = np.concatenate([dense["features"], np.ones((alone, 8), np.float32)])
        labels = np.concatenate([dense["labels"], np.full(alone, -1)])
        (self.path / "raw").mkdir()
        for name, array in {
            "edges": ids[dense["edges"]], "ids": ids[rows], "features": features[rows],
            "labels": labels[rows], "train_idx": ids[dense["train_idx"]],
            "valid_mask": np.isin(rows, dense["valid_idx"]),
        }.items():  # fmt: skip
            np.save(self.path / f"raw/{name}.npy", array)
        arrays = self.import_and_export("raw", "--remap-ids")
        self.check_rows(arrays, ids, {"features": features, "labels": labels})
        for split in ("train_idx", "valid_idx"):
            np.testing.assert_array_equal(arrays[split], ids[np.sort(dense[split])])
        again = self.import_and_export("out", "--remap-ids")
        for name, array in arrays.items():
            np.testing.assert_array_equal(np.sort(again[name], axis=0), np.sort(array, axis=0))
        result = self.run_program("ooc-prep", "import", "raw", "-o", "y.ooc")
        self.assertNotEqual(result.returncode, 0)  # ids.npy alone doesn't say what edges hold
        np.save(self.path / "ids.npy", ids[rows][:-1])
        refused = ("ooc-prep", "import", "raw", "-o", "y.ooc", "--ids")
        self.fail_with(3, r"64 rows but the vertex count is 63 \(the rows of ids.npy\), raw/feat",
                       *refused, "ids.npy")  # fmt: skip
        np.save(self.path / "ids.npy", np.where(np.isin(rows, [3, 9, 8, 5]), 1, ids)[rows])
        self.fail_with(3, "vertex id 1 is there twice, ids.npy, row", *refused, "ids.npy")
        other = ids[rows].copy()
        other[np.isin(rows, [3, 9, 8])] = [-(2**50), 2**50, 2**51]
        np.save(self.path / "ids.npy", other)
        self.fail_with(3, f"vertex ids {ids[3]}, {ids[8]}, {ids[9]} are not in ids.npy, "
                       "raw/edges.npy; list every vertex", *refused, "ids.npy")  # fmt: skip
        self.fail_with(2, "several of --ids, --id and --rows-sorted", *refused, "ids.npy",
                       "--rows-sorted")  # fmt: skip
        self.fail_with(2, "--id 1, but raw/features.npy is no text", *refused[:-1], "--id", 1)

    def test_rows_by_id_stand_every_order_and_every_second_reading(self):
        dense = self.dense()
        ids = self.random.permutation(60) * 5
        np.save(self.path / "ids.npy", ids)
        np.save(self.path / "edges.npy", ids[dense["edges"]])
        np.save(self.path / "x.npy", dense["features"])
        order = np.argsort(ids)
        labels = {"multi": (self.random.random((60, 3)) < 0.5).astype(np.int8),
                  "values": self.random.random((60, 2)).astype(np.float32)}  # fmt: skip
        for kind, array in labels.items():
            np.save(self.path / "y.npy", array)
            for norm in ("none", "standard"):
                for arrangement in ("natural", "random", "degree"):
                    arrays = self.import_and_export(
                        *("--edges", "edges.npy", "--features", "x.npy", "--labels", "y.npy"),
                        *("--ids", "ids.npy", "--order", arrangement, "--block-rows", 16),
                        *("--feature-norm", norm))
                    np.testing.assert_array_equal(arrays["labels"], array[order])
                    x = normalise(dense["features"], norm)[order]
                    np.testing.assert_allclose(arrays["features"], x, rtol=1e-5, atol=1e-5)

    def test_headers_and_ids_of_unusual_signs(self):
        (self.path / "e.csv").write_text('"a#1",b\nb,#2\n#2,"a#1"\n')
        (self.path / "f.csv").write_text("id,2019,2020\nb,1,2\n#2,3,4\na#1,5,6\n")
        (self.path / "y.csv").write_text("#2,NA\nb,y\na#1,n\n")
        for column in ("1", "id"):
            arrays = self.import_and_export("--edges", "e.csv", "--features", "f.csv", "--id",
                                            column)  # fmt: skip
            np.testing.assert_array_equal(arrays["features"], [[3, 4], [5, 6], [1, 2]])
            self.assertEqual(list(arrays["ids"]), ["#2", "a#1", "b"])
        arrays = self.import_and_export("--edges", "e.csv", "--features", "f.csv", "--labels",
                                        "y.csv", "--id", 1)  # fmt: skip
        np.testing.assert_array_equal(arrays["labels"], [-1, 0, 1])
        (self.path / "t_mask.csv").write_text("b,1\na#1,0\n#2,0\n")
        arrays = self.import_and_export("--edges", "e.csv", "--features", "f.csv", "--labels",
                                        "y.csv", "--id", 1, "--train", "t_mask.csv")  # fmt: skip
        self.assertEqual((self.path / "out/train_idx.csv").read_text(), "b\n")
        (self.path / "w.csv").write_text("a,b,NA\nb,c,2\nc,a,3\n")
        self.fail_with(3, "'NA' is not a number, w.csv:3, line 1", "ooc-prep", "import", "--edges",
                       "w.csv:1,2", "--edge-weights", "w.csv:3", "--remap-ids", "-o", "y.ooc")

    def test_memory_changes_nothing(self):
        count = 300_000
        ids = self.random.permutation(count) * 7 + 1
        np.save(self.path / "i.npy", ids)
        np.save(self.path / "x.npy", np.stack([ids] * 40, axis=1).astype(np.float32))
        np.save(self.path / "e.npy", ids.reshape(-1, 2))
        for memory in ("190MiB", "2GiB"):
            self.succeed("ooc-prep", "import", "--edges", "e.npy", "--features", "x.npy", "--ids",
                         "i.npy", "-o", f"{memory}.ooc", "--memory", memory, "--quiet", "--order",
                         "random")  # fmt: skip
        little, much = (self.path / f"{memory}.ooc" for memory in ("190MiB", "2GiB"))
        for path in little.iterdir():
            self.assertEqual(path.read_bytes(), (much / path.name).read_bytes(), path.name)
        features = self.exported("190MiB.ooc")["features"]
        np.testing.assert_array_equal(features[:, 0], np.sort(ids).astype(np.float32))
        np.testing.assert_array_equal(features[:, 39], features[:, 0])

    def test_one_table_has_everything(self):
        dense = self.dense()
        names = np.array([f"p{n}" for n in self.random.permutation(60)])
        self.write_csv("papers.csv", ["paper", *(f"w{i}" for i in range(8)), "topic"],
                       names, *dense["features"].T, dense["labels"])  # fmt: skip
        self.write_csv("cites.csv", ["citing", "cited", "times"], *names[dense["edges"]].T,
                       np.arange(len(dense["edges"])))  # fmt: skip
        arrays = self.import_and_export(
            *("--edges", "cites.csv:1-2", "--edge-weights", "cites.csv:times"),
            *("--features", "papers.csv:2-9", "--labels", "papers.csv:topic", "--id", "paper"))
        self.check_rows(arrays, names, dense)
        self.assertEqual(sorted(arrays["edge_weights"]), list(range(len(dense["edges"]))))
        self.fail_with(3, "there is no column 'author', papers.csv; give a number from 1 to 10, or "
                       "a name in the first line: paper,w0", "ooc-prep", "import", "--edges",
                       "cites.csv:1-2", "--features", "papers.csv:2-9", "--id", "author", "-o",
                       "y.ooc")  # fmt: skip


if __name__ == "__main__":
    programs.main()
