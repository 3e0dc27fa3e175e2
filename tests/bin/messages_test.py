"""What a user meets on the first day: files as others write them, and what is said of them."""

import gzip
import os

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
                     r"1199145600; .*--edge-weights, --edge-types, --edge-features",
                     "--edges", "raw/e.txt")

    def test_counts_that_differ_are_both_named(self):
        np.save(self.raw / "edge_weights.npy", np.ones(7, np.float32))
        edges = len(np.load(self.raw / "edges.npy"))
        self.refused(f"7 rows but {edges} edges, raw/edge_weights.npy", "raw")

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
            os.symlink(f"disk/{name}", self.path / name)
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
