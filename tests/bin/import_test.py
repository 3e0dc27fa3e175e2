"""ooc-prep import through the real program: good input, and every kind of bad one with its message
and exit code. After a failure nothing lies under the output's name or beside it."""

import json
import os
import signal
import subprocess
import time

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


class InterruptTest(ProgramTest):
    def test_an_interrupted_generation_leaves_nothing(self):
        process = subprocess.Popen(
            [
                *(programs.BIN / "ooc-prep", "generate", "rmat", "--vertices", "400000"),
                *("--edges", "8000000", "--features", "64", "--classes", "4", "-o", "x.ooc"),
            ],
            cwd=self.path,
            stderr=subprocess.PIPE,
            text=True,
        )
        # Once something lies on the disk the work has begun, and seconds of it are left.
        while process.poll() is None and not os.listdir(self.path):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertRegex(errors, r"ooc-prep: interrupted.*; [^\n]+\n\Z")
        self.assertEqual(os.listdir(self.path), [])


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
