"""ooc-prep import through the real program: good input, and every kind of bad one with its message
and exit code. After a failure nothing lies under the output's name or beside it."""

import gzip
import json
import os

import numpy as np
import programs
from programs import ProgramTest, flip_byte, write_graph


class ImportTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.raw = write_graph(self.path / "raw")

    def array(self, name):
        return np.load(self.raw / f"{name}.npy")

    def save(self, name, array):
        np.save(self.raw / f"{name}.npy", array)

    def refused(self, pattern, *arguments, code=3, **options):
        self.fail_with(
            code, pattern, "ooc-prep", "import", "raw", "-o", "x.ooc", *arguments, **options
        )
        left = sorted(os.listdir(self.path))
        self.assertEqual(left, ["raw"], "something was left behind")

    def imported(self, *arguments):
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", *arguments)
        return json.loads(self.succeed("ooc-inspect", "x.ooc", "--json").stdout)

    def test_a_directory_by_convention(self):
        facts = self.imported("--undirected")
        edges = self.array("edges")
        self.assertEqual(facts["vertices"], 60)
        self.assertEqual(facts["edges"], 2 * len(edges))
        self.assertTrue(facts["symmetric"])
        self.assertEqual((facts["features"], facts["classes"]), (8, 3))
        self.assertEqual((facts["train"], facts["valid"], facts["test"]), (20, 20, 20))
        text = self.succeed("ooc-prep", "verify", "x.ooc").stdout
        self.assertIn("60 vertices", text)

    def test_files_by_name(self):
        options = []
        for option, name in (
            ("edges", "edges"),
            ("features", "features"),
            ("labels", "labels"),
            ("train", "train_idx"),
            ("valid", "valid_idx"),
            ("test", "test_idx"),
        ):
            options += [f"--{option}", f"raw/{name}.npy"]
        self.succeed("ooc-prep", "import", *options, "-o", "x.ooc")
        self.succeed("ooc-prep", "verify", "x.ooc")

    def write_text(self, name, rows, packed=False):
        text = "".join(",".join(map(str, row)) + "\n" for row in rows).encode()
        (self.raw / name).write_bytes(gzip.compress(text) if packed else text)

    def test_text_packed_text_and_archives_give_the_same_dataset(self):
        edges, labels = self.array("edges"), self.array("labels")
        facts = self.imported()
        for name in ("edges", "labels", "features"):
            (self.raw / f"{name}.npy").rename(self.path / f"{name}.npy")
        self.write_text("edges.csv.gz", edges, packed=True)
        self.write_text("labels.csv", [["class"], *labels[:, None]])
        np.savez(self.raw / "arrays.npz", x=np.load(self.path / "features.npy"), other=edges)
        again = self.imported("--features", "raw/arrays.npz:x", "--force")
        self.assertEqual(again["file_bytes"], facts["file_bytes"])
        for key in ("vertices", "edges", "features", "classes", "train", "valid", "test"):
            self.assertEqual(again[key], facts[key])

    def test_an_error_in_text_names_its_line(self):
        self.raw.joinpath("edges.npy").unlink()
        self.write_text("edges.csv", [["source", "target"], [0, 1], [2, "x"]])
        self.refused(r"'x' is not a number, raw/edges\.csv, line 3, field 2; ")
        self.write_text("edges.csv", [[0, 1, 0.5], [1, 2, 0.5]])
        self.refused(r"two columns.*raw/edges\.csv.*; choose two, raw/edges.csv:1,2")

    def test_boolean_masks(self):
        for part in ("train", "valid", "test"):
            ids = self.array(f"{part}_idx")[: {"train": 20, "valid": 10, "test": 5}[part]]
            mask = np.zeros(60, bool)
            mask[ids] = True
            (self.raw / f"{part}_idx.npy").unlink()
            self.save(f"{part}_mask", mask)
        facts = self.imported()
        self.assertEqual([facts[part] for part in ("train", "valid", "test")], [20, 10, 5])

    def test_split_options_go_where_they_belong(self):
        for part, count in (("train", 20), ("valid", 7), ("test", 3)):
            np.save(self.path / f"{part}.npy", self.array(f"{part}_idx")[:count])
            (self.raw / f"{part}_idx.npy").unlink()
        options = [f"--{part}={self.path}/{part}.npy" for part in ("test", "train", "valid")]
        facts = self.imported(*options)
        self.assertEqual([facts[part] for part in ("train", "valid", "test")], [20, 7, 3])

    def test_a_label_that_makes_too_many_classes(self):
        labels = self.array("labels")
        labels[11] = 2_000_000_000
        self.save("labels", labels)
        self.refused(r"class 2000000000 .*labels\.npy, row 11; ")

    def test_a_pipe_is_refused(self):
        (self.raw / "edges.npy").unlink()
        os.mkfifo(self.raw / "edges.npy")
        self.refused(r"not a regular file.*edges\.npy")

    def test_a_directory_without_edges_is_named(self):
        (self.raw / "edges.npy").unlink()
        self.refused(r"no edges, raw; ")

    def test_names_that_are_not_utf8(self):
        name = os.fsdecode(b"Gr\xf6sse")
        self.raw.rename(self.path / name)
        self.succeed("ooc-prep", "import", name, "-o", "x.ooc", errors="surrogateescape")
        self.succeed("ooc-inspect", "x.ooc", "--json")

    def test_a_foreign_directory_in_the_way_is_kept(self):
        partial = self.path / "x.ooc.partial"
        partial.mkdir()
        (partial / "thesis.tex").write_text("years of work")
        self.fail_with(2, "x.ooc.partial; ", "ooc-prep", "import", "raw", "-o", "x.ooc")
        self.assertTrue((partial / "thesis.tex").exists())

    def test_counts_to_generate_have_bounds(self):
        sizes = ("--vertices", 70000, "--edges", 70000)
        for features, classes, wrong in ((1 << 20 | 1, 2, "--features"), (2, 65537, "--classes")):
            options = (*sizes, "--features", features, "--classes", classes, "-o", "y.ooc")
            self.fail_with(2, wrong, "ooc-prep", "generate", "sbm", *options)

    def test_generating_works_within_its_memory(self):
        options = ("--vertices", 300_000, "--edges", 3_000_000, "--features", 4, "--classes", 4)
        generate = ("ooc-prep", "generate", "rmat", *options, "--quiet")
        self.fail_with(4, r"--memory 60 MiB; give --memory \d+MiB or more", *generate, "-o",
                       "no.ooc", "--memory", "60MiB")  # fmt: skip
        self.assertFalse((self.path / "no.ooc").exists())
        self.succeed(*generate, "-o", "little.ooc", "--memory", "200MiB")
        self.succeed(*generate, "-o", "much.ooc", "--memory", "4GiB")
        for path in (self.path / "much.ooc").iterdir():
            little = self.path / "little.ooc" / path.name
            self.assertEqual(path.read_bytes(), little.read_bytes(), path.name)

    def test_what_was_found_is_printed(self):
        self.save("edges", np.array([[0, 1], [1, 0], [2, 2], [0, 1]]))
        out = self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc").stdout
        for fact in ("reciprocal", "self_loops", "duplicates", "without_in_edges", "unlabelled"):
            self.assertIn(fact, out)

    def test_no_reciprocal_edge_is_worth_a_warning(self):
        result = self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc")
        self.assertRegex(result.stderr, "warn.*--undirected")
        result = self.succeed("ooc-prep", "import", "raw", "-o", "y.ooc", "--undirected")
        self.assertNotIn("warn", result.stderr)

    def test_an_output_that_exists_needs_force(self):
        self.imported()
        before = sorted(os.listdir(self.path / "x.ooc"))
        self.fail_with(
            2, "output exists, x.ooc; use --force", "ooc-prep", "import", "raw", "-o", "x.ooc"
        )
        self.assertEqual(sorted(os.listdir(self.path / "x.ooc")), before)
        self.assertEqual(self.imported("--force", "--undirected")["edges"] % 2, 0)
        self.assertEqual(sorted(os.listdir(self.path)), ["raw", "x.ooc"])

    def test_force_replaces_datasets_only(self):
        (self.path / "x.ooc").mkdir()
        (self.path / "x.ooc" / "thesis.tex").write_text("years of work")
        self.fail_with(
            2, "this is none, x.ooc", *("ooc-prep", "import", "raw", "-o", "x.ooc", "--force")
        )
        self.assertTrue((self.path / "x.ooc" / "thesis.tex").exists())

    def test_missing_input(self):
        self.fail_with(3, "nowhere", "ooc-prep", "import", "nowhere", "-o", "x.ooc")
        (self.raw / "edges.npy").unlink()
        self.refused("edges")
        self.fail_with(
            3, "none.npy", *("ooc-prep", "import", "--edges", "none.npy", "-o", "x.ooc")
        )

    def test_an_output_is_required(self):
        self.fail_with(2, "--output is missing", "ooc-prep", "import", "raw")

    def test_edges_of_a_wrong_type(self):
        self.save("edges", self.array("edges").astype(np.float64) + 0.5)
        self.refused(r"edges\.npy")

    def test_edges_of_a_wrong_shape(self):
        self.save("edges", np.zeros((5, 3), np.int64))
        self.refused(r"edges\.npy")
        self.save("edges", np.zeros((5, 2, 2), np.int64))
        self.refused(r"edges\.npy")

    def test_an_id_out_of_range_is_named_with_its_row(self):
        edges = self.array("edges")
        edges[17, 1] = 60
        self.save("edges", edges)
        self.refused(r"60.*edges\.npy.*row 17")
        edges[17, 1] = -4
        self.save("edges", edges)
        self.refused(r"-4.*edges\.npy.*row 17")

    def test_a_split_id_out_of_range(self):
        train = self.array("train_idx")
        train[3] = 600
        self.save("train_idx", train)
        self.refused(r"600.*train_idx\.npy")

    def test_rows_that_disagree(self):
        self.save("labels", self.array("labels")[:-1])
        self.refused(r"59.*60|60.*59")

    def test_features_that_are_not_finite(self):
        features = self.array("features")
        features[7, 3] = np.nan
        self.save("features", features)
        self.refused(r"features\.npy.*row 7")
        features[7, 3] = -np.inf
        self.save("features", features)
        self.refused(r"features\.npy.*row 7")

    def test_features_of_a_wrong_type(self):
        self.save("features", np.full((60, 8), "x"))
        self.refused(r"features\.npy")

    def test_a_class_below_minus_one(self):
        labels = self.array("labels")
        labels[11] = -2
        self.save("labels", labels)
        self.refused(r"-2.*labels\.npy.*row 11")

    def test_an_unlabelled_vertex_in_a_split(self):
        labels = self.array("labels")
        labels[self.array("valid_idx")[0]] = -1
        self.save("labels", labels)
        self.refused(r"valid_idx\.npy")

    def test_an_empty_split(self):
        self.save("train_idx", np.zeros(0, np.int64))
        self.refused(r"train_idx\.npy")

    def test_a_vertex_in_two_splits(self):
        valid = self.array("valid_idx")
        valid[0] = self.array("train_idx")[0]
        self.save("valid_idx", valid)
        self.refused(rf"{valid[0]}")

    def test_truncated_arrays(self):
        for name in ("edges", "features", "labels", "train_idx"):
            path = self.raw / f"{name}.npy"
            whole = path.read_bytes()
            path.write_bytes(whole[:-5])
            self.refused(rf"{name}\.npy")
            path.write_bytes(whole[:7])
            self.refused(rf"{name}\.npy")
            path.write_bytes(b"")
            self.refused(rf"{name}\.npy")
            path.write_bytes(whole)

    def test_a_file_that_is_not_what_its_name_says(self):
        (self.raw / "features.npy").write_bytes(b"PK\x03\x04" + b"\0" * 100)
        self.refused(r"features\.npy")

    def test_two_files_for_one_part(self):
        self.save("x", self.array("features"))
        self.refused(r"features\.npy.*x\.npy|x\.npy.*features\.npy")

    def test_no_space_left(self):
        self.save("features", np.ones((60, 100_000), np.float32))
        what, options = self.small_disk(2 << 20)
        self.fail_with(
            *(1, f"{what}.*small/x.ooc", "ooc-prep", "import", "raw", "-o", "small/x.ooc"),
            **options,
        )
        self.assertEqual(os.listdir(self.path / "small"), [])


class DatasetTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.prepare("x.ooc")

    def test_a_dataset_of_a_newer_format(self):
        manifest = self.path / "x.ooc" / "manifest.json"
        text = manifest.read_text()
        version = json.loads(text)["version"]
        manifest.write_text(text.replace(f'"version": {version}', f'"version": {version + 1}'))
        for program in (["ooc-prep", "verify"], ["ooc-inspect"], ["ooc-train"]):
            self.fail_with(3, "newer.*manifest.json; use a newer ooc", *program, "x.ooc")

    def test_corruption_anywhere_is_found(self):
        """verify reads everything; training at least what it uses."""
        for file in sorted((self.path / "x.ooc").iterdir()):
            size = file.stat().st_size
            for offset in {0, size // 2, size - 1} - ({size - 1} if file.suffix else set()):
                flip_byte(file, offset)
                self.fail_with(3, file.name, "ooc-prep", "verify", "x.ooc")
                flip_byte(file, offset)
        self.succeed("ooc-prep", "verify", "x.ooc", "--quiet")

    def test_training_refuses_a_corrupt_chunk(self):
        flip_byte(self.path / "x.ooc" / "features", 4096 + 10)
        self.fail_with(3, "x.ooc/features", "ooc-train", "x.ooc", "--epochs", "2")

    def test_missing_and_truncated_files(self):
        labels = self.path / "x.ooc" / "labels"
        whole = labels.read_bytes()
        labels.write_bytes(whole[:-100])
        self.fail_with(3, "x.ooc/labels", "ooc-prep", "verify", "x.ooc")
        labels.unlink()
        self.fail_with(3, "x.ooc/labels", "ooc-train", "x.ooc")


if __name__ == "__main__":
    programs.main()
