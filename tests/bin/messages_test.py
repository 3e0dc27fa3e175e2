"""What a user meets on the first day: files as others write them, and what is said of them."""

import gzip
import os
import shutil

import numpy as np
import programs
from programs import ProgramTest, write_graph


class MessagesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.raw = write_graph(self.path / "raw")

    def refused(self, pattern, *arguments, code=3):
        self.fail_with(code, pattern, "ooc-prep", "import", *arguments, "-o", "x.ooc")
        self.assertFalse((self.path / "x.ooc").exists())

    def test_tables_of_too_many_columns_show_their_first_line(self):
        (self.raw / "e.txt").write_text("# from KONECT\n0 1 0.5 1199145600\n1 2 1 1199145601\n")
        self.refused(r"two columns, source and destination, not 4, raw/e.txt, line 2: 0 1 0.5 "
                     r"1199145600; choose two, raw/e.txt:1,2; .* --edge-weights raw/e.txt:3",
                     "--edges", "raw/e.txt")
        self.succeed("ooc-prep", "import", "--edges", "raw/e.txt:1,2", "--edge-weights",
                     "raw/e.txt:3", "-o", "y.ooc")  # fmt: skip
        (self.raw / "x.txt").write_text("0\t0,1,0\t2\n1\t1,1,0\t1\n")
        self.refused("line 1, field 1; the line has tabs as well as other separators", "--edges",
                     "raw/e.txt:1,2", "--features", "raw/x.txt")  # fmt: skip

    def test_tables_with_columns_of_other_kinds_show_a_line_and_a_choice(self):
        (self.raw / "t.csv").write_text("id,name,x\n0,ann,1\n1,bob,0\n2,cem,1\n")
        (self.raw / "n.csv").write_text("7,4,1\n8,5,0\n9,6,1\n")
        np.savetxt(self.path / "e.csv", [[0, 1], [1, 2]], "%d", ",")
        given = ("--edges", "e.csv", "--vertices", 3)
        for part in ("features", "labels"):
            self.refused(r"'ann' is not a number, raw/t.csv, line 2, field 2: 0,ann,1; choose the "
                         "columns of numbers, raw/t.csv:1,3; names in edges need --remap-ids, a "
                         "column of ids is --id COLUMN, one of class names --labels raw/t.csv:2",
                         *given, f"--{part}", "raw/t.csv")
        for option, needed in (("--labels", "one class a vertex takes"),
                               ("--edge-weights", "edge weights need")):
            kind = ("--label-kind", "classes") if option == "--labels" else ()
            self.refused(f"{needed} one column, not 3, raw/n.csv, line 1: 7,4,1; choose it, "
                         "raw/n.csv:COLUMN; otherwise ", *given, *kind, option, "raw/n.csv")
        (self.raw / "f.csv").write_text("1,,3\n2,2,2\n")  # a number is missing
        self.refused("'' is not a number, raw/f.csv, line 1, field 2; correct the value",
                     "--edges", "e.csv", "--vertices", 2, "--features", "raw/f.csv")  # fmt: skip
        self.refused("7 in a matrix of labels, .* for one column of them raw/n.csv:COLUMN", *given,
                     "--labels", "raw/n.csv")
        self.succeed("ooc-prep", "import", *given, "--id", "id", "--features", "raw/t.csv:3",
                     "--labels", "raw/t.csv:2", "-o", "y.ooc")  # fmt: skip

    def test_counts_that_differ_are_both_named(self):
        np.save(self.raw / "edge_weights.npy", np.ones(7, np.float32))
        edges = len(np.load(self.raw / "edges.npy"))
        self.refused(f"7 rows but {edges} edges, raw/edge_weights.npy", "raw")

    def test_ids_with_gaps_are_told(self):
        (self.path / "one.tsv").write_text("1\t2\n2\t3\n3\t1\n")
        (self.path / "big.tsv").write_text("9001\t9002\n9003\t9001\n")
        for file, gaps, vertices in (("one.tsv", 1, 4), ("big.tsv", 9001, 9004)):
            for more in ((), ("--undirected",), ("--self-loops", "add-remaining")):
                result = self.succeed("ooc-prep", "import", "--edges", file, "-o", "x.ooc",
                                      "--force", "--quiet", *more)
                self.assertIn(f"{gaps} of the {vertices} vertices are in no edge", result.stderr)
                self.assertIn("import with --remap-ids", result.stderr)
            for more in (("--vertices", vertices), ("--remap-ids",)):
                result = self.succeed("ooc-prep", "import", "--edges", file, "-o", "x.ooc",
                                      "--force", "--quiet", *more)
                self.assertNotIn("in no edge", result.stderr)
        shutil.rmtree(self.path / "x.ooc")
        np.save(self.path / "x.npy", np.ones((3, 2), np.float32))
        self.refused(r"9001 is not below the vertex count 3 \(the rows of x.npy\), big.tsv, line 1"
                     "; ids go from 0 .*start at 1 .*--remap-ids",
                     "--edges", "big.tsv", "--features", "x.npy")
        (self.path / "far.tsv").write_text("230425980\t5530458\n")
        self.refused("does not fit 1 edges, far.tsv; give --remap-ids", "--edges", "far.tsv")

    def test_files_that_play_no_part_are_named(self):
        for part, name in (("features", "node_features"), ("labels", "label"), ("train_idx", "t")):
            os.rename(self.raw / f"{part}.npy", self.raw / f"{name}.npy")
        os.remove(self.raw / "valid_idx.npy")
        os.remove(self.raw / "test_idx.npy")
        (self.raw / "README.txt").write_text("A graph.\n")
        result = self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet")
        self.assertIn("nothing was taken from label.npy, node_features.npy, t.npy: ", result.stderr)
        result = self.succeed("ooc-prep", "import", "raw", "--features", "raw/node_features.npy",
                              "--labels", "raw/label.npy", "--train", "raw/t.npy", "-o", "y.ooc")
        self.assertNotIn("nothing was taken", result.stderr)
        result = self.succeed("ooc-prep", "import", "./raw", "--features", "raw/node_features.npy",
                              "--labels", "raw/../raw/label.npy", "--edges", self.raw / "edges.npy",
                              "--train", "raw/t.npy", "-o", "z.ooc")
        self.assertNotIn("nothing was taken", result.stderr)
        train = ("ooc-train", "z.ooc", "--epochs", 2, "--run-dir", "run", "--force", "--quiet")
        self.assertEqual(self.succeed(*train).stderr, "")
        self.assertIn("--patience 5 ends nothing: there are no validation vertices",
                      self.succeed(*train, "--patience", 5).stderr)

    def test_a_header_of_numbers_is_told(self):
        rows = np.load(self.raw / "features.npy")
        os.remove(self.raw / "features.npy")
        header = ",".join(map(str, range(rows.shape[1])))
        np.savetxt(self.raw / "features.csv", rows[1:], delimiter=",", header=header, comments="")
        result = self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet")
        self.assertRegex(result.stderr, r"first row of raw/features.csv is 0, 1, 2 .*take it out")
        shutil.rmtree(self.path / "x.ooc")
        np.savetxt(self.raw / "features.csv", rows, delimiter=",", header=header, comments="")
        self.refused("61 .*; the first row of the features is 0, 1, 2 .*take it out", "raw")

    def test_gzip_without_its_name_is_read(self):
        edges = "".join(f"{a},{b}\n" for a, b in np.load(self.raw / "edges.npy"))
        (self.path / "e.csv").write_bytes(gzip.compress(edges.encode()))
        self.succeed("ooc-prep", "import", "raw", "--edges", "e.csv", "-o", "x.ooc")
        self.succeed("ooc-prep", "import", "raw", "-o", "y.ooc")
        files = [(self.path / name / "edges.in").read_bytes() for name in ("x.ooc", "y.ooc")]
        self.assertEqual(*files)

    def test_utf_16_is_named(self):
        for encoding in ("utf-16", "utf-16-be"):
            mark = b"" if encoding == "utf-16" else b"\xfe\xff"
            (self.path / "e.csv").write_bytes(mark + "0,1\n1,2\n".encode(encoding))
            self.refused("the text is UTF-16, e.csv; save it as UTF-8", "--edges", "e.csv")

    def test_a_message_does_not_end_at_a_nul(self):
        (self.path / "e.csv").write_bytes(b"0,1\n1,\0\0002\n")
        self.refused("e.csv, line 2, field 2; correct the value", "--edges", "e.csv")

    def test_unknown_kinds_name_headerless_ones(self):
        np.load(self.raw / "edges.npy").astype("<i8").tofile(self.path / "edges.dat")
        self.refused("--raw-dtype and --raw-columns", "--edges", "edges.dat")
        np.load(self.raw / "features.npy").tofile(self.raw / "features.npy")
        self.refused("--raw-dtype and --raw-columns", "raw")

    def test_a_download_of_ogb_is_told(self):
        ogb = self.path / "ogbn_mag"
        (ogb / "raw").mkdir(parents=True)
        (ogb / "split").mkdir()
        self.refused("but a directory raw/, ogbn_mag; .*give --ogb ogbn_mag", "ogbn_mag")
        (ogb / "raw" / "nodetype-has-label.csv.gz").write_bytes(gzip.compress(b"paper\nTrue\n"))
        self.refused("heterogeneous dataset of OGB", "--ogb", "ogbn_mag")

    def test_a_damaged_manifest_is_one_line(self):
        self.prepare("x.ooc")
        manifest = self.path / "x.ooc" / "manifest.json"
        for text in (manifest.read_text()[:100], "", "[]", '{"format": 3}'):
            manifest.write_text(text)
            result = self.fail_with(3, "manifest", "ooc-inspect", "x.ooc")
            self.assertNotIn("exception", result.stderr)

    def test_parts_of_a_run_lead_to_it(self):
        self.prepare("x.ooc")
        self.succeed("ooc-train", "x.ooc", "--run-dir", "run", "--epochs", 2, "--hidden", 4)
        for file in ("metrics.jsonl", "config.toml", "summary.json"):
            self.fail_with(3, f"not a checkpoint, run/{file}; name the directory that it is in, r",
                           "ooc-inspect", f"run/{file}")
        self.fail_with(3, "it is in, x.ooc", "ooc-inspect", "x.ooc/manifest.json")
        self.fail_with(3, "name a dataset, a run", "ooc-inspect", "raw/edges.npy")

    def test_links_stay_links(self):
        (self.path / "disk").mkdir()
        for name in ("x.ooc", "run", "classes.npy", "arrays"):
            slash = "/" if name == "x.ooc" else ""  # as a shell completes names
            os.symlink(f"disk/{name}{slash}", self.path / name)
        for _ in range(2):
            self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--force")
            self.succeed("ooc-train", "x.ooc", "--run-dir", "run", "--epochs", 1, "--hidden", 4,
                         "--force")
            self.succeed("ooc-infer", "x.ooc", "--run", "run", "-o", "classes.npy", "--what",
                         "classes", "--force")
            self.succeed("ooc-prep", "export", "x.ooc", "-o", "arrays", "--force")
            for name in ("x.ooc", "run", "classes.npy", "arrays"):
                self.assertTrue((self.path / name).is_symlink(), name)
                self.assertTrue((self.path / "disk" / name).exists(), name)

    def test_words_of_other_libraries(self):
        self.prepare("x.ooc")
        self.succeed("ooc-train", "x.ooc", "--run-dir", "run", "--epochs", 2, "--hidden", 4,
                     "--model", "GraphSAGE", "--metric", "ACC", "--norm", "Batch")
        config = (self.path / "run" / "config.toml").read_text()
        self.assertIn("model = 'sage'", config)
        self.assertIn('metric = "accuracy"', config)
        self.succeed("ooc-train", "--resume", "run", "--model", "graphsage", "--metric", "acc")
        self.assertIn("sage", self.succeed("ooc-inspect", "--model", "SAGE").stdout)


if __name__ == "__main__":
    programs.main()
