"""Labels and features as tables of others have them: class names, words for nothing, gaps."""

import csv
import json

import numpy as np
import programs
from programs import ProgramTest, write_graph

NAMES = ["Case Based", "Neural Nets", "Rule, Learning", "Theory"]


class ClassNamesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.raw = write_graph(self.path / "raw", classes=4)
        self.labels = np.load(self.raw / "labels.npy")
        self.edges = ("--edges", "raw/edges.npy", "--features", "raw/features.npy")

    def write(self, name, *columns, header=None):
        with open(self.path / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([header] * bool(header))
            writer.writerows(zip(*columns))

    def imported(self, *arguments, output="x.ooc"):
        result = self.succeed("ooc-prep", "import", *arguments, "-o", output, "--force")
        facts = json.loads(self.succeed("ooc-inspect", output, "--json").stdout)
        self.succeed("ooc-prep", "export", output, "-o", "out", "--force", "--quiet")
        return facts, np.load(self.path / "out/labels.npy"), result

    def refused(self, code, pattern, *arguments):
        self.fail_with(code, pattern, "ooc-prep", "import", *arguments, "-o", "y.ooc")

    def test_names_are_numbered_in_their_order(self):
        words = np.array(NAMES, dtype=object)[self.labels]
        words[[3, 9]], words[20] = "unknown", ""
        expected = self.labels.copy()
        expected[[3, 9, 20]] = -1
        self.write("labels.csv", range(60), words, header=["id", "topic"])
        facts, labels, result = self.imported(*self.edges, "--labels", "labels.csv:topic")
        np.testing.assert_array_equal(labels, expected)
        self.assertEqual(facts["class_names"], NAMES)
        self.assertEqual(facts["classes"], 4)
        counts = {name: int((expected == i).sum()) for i, name in enumerate(NAMES)}
        self.assertEqual(facts["found"]["class_counts"], counts)
        self.assertIn(f"Theory          {counts['Theory']}\n", result.stdout)
        again, labels, _ = self.imported("out", output="again.ooc")  # labels.npy, class_names.txt
        np.testing.assert_array_equal(labels, expected)
        self.assertEqual(again["class_names"], NAMES)

    def test_one_column_of_names_needs_no_header(self):
        words = ["b", "a", "c"] * 20
        self.write("labels.txt", words)
        facts, labels, _ = self.imported(*self.edges, "--labels", "labels.txt")
        np.testing.assert_array_equal(labels, [1, 0, 2] * 20)
        self.write("labels.txt", words, header=["label"])
        facts, again, _ = self.imported(*self.edges, "--labels", "labels.txt")
        np.testing.assert_array_equal(again, labels)

    def test_names_of_several_words(self):
        names = ["Case Based", "Neural Nets", "Of Rules", "Theory"]
        words = np.array(names, dtype=object)[self.labels]
        words[[3, 9]] = "unknown"
        for file, header in (("y.txt", None), ("y.csv", ["label"])):
            for lines in (words, np.array(words)[::-1]):
                self.write(file, lines, header=header)
                facts, labels, _ = self.imported(*self.edges, "--labels", file)
                self.assertEqual(facts["class_names"], names)
                found = np.array([*facts["class_names"], "unknown"], dtype=object)[labels]
                np.testing.assert_array_equal(found, lines)
        (self.path / "y.txt").write_text("Case Based\n7 Theory\n" * 30)
        self.refused(3, "rows but the vertex count is 60", *self.edges, "--labels", "y.txt")
        np.savetxt(self.path / "m.txt", np.eye(4)[self.labels], "%d")
        facts, labels, _ = self.imported(*self.edges, "--labels", "m.txt")
        self.assertEqual(labels.shape, (60, 4))

    def test_numbers_with_words_for_no_label_stay_numbers(self):
        words = [str(label) for label in self.labels]
        expected = self.labels.copy()
        for place, word in ((5, "unknown"), (6, "NaN"), (7, "n/a"), (8, "-1")):
            words[place], expected[place] = word, -1
        self.write("y.csv", words, header=["y"])
        facts, labels, _ = self.imported(*self.edges, "--labels", "y.csv")
        np.testing.assert_array_equal(labels, expected)
        self.assertNotIn("class_names", facts)
        words[30], expected[30] = "later", -1
        self.write("y.csv", words, header=["y"])
        facts, labels, _ = self.imported(*self.edges, "--labels", "y.csv", "--unlabelled", "later")
        np.testing.assert_array_equal(labels, expected)
        facts, _, _ = self.imported(*self.edges, "--labels", "y.csv")
        self.assertEqual(facts["class_names"], ["-1", "0", "1", "2", "3", "later"])
        _, _, result = self.imported(*self.edges, "--labels", "y.csv")
        self.assertIn("'later' in line 32 of y.csv is no number, so all labels are taken as names",
                      result.stderr)  # fmt: skip
        words[30], expected[self.labels == 2] = "2", -1
        self.write("y.csv", words, header=["y"])
        expected[30] = -1 if self.labels[30] == 2 else -1
        facts, labels, _ = self.imported(*self.edges, "--labels", "y.csv", "--unlabelled", "2")
        np.testing.assert_array_equal(labels, expected)

    def test_first_lines_that_look_like_headers(self):
        for text, names, labels in (
            ("y\nn\ny\n", ["n", "y"], [1, 0, 1]),
            ("y\nn\nn\nn\n", ["n"], [0, 0, 0]),  # a header, as nothing else says y
            ("unknown\n1\n0\n", None, [-1, 1, 0]),
            ("0.5\n1.5\n2.25\n", None, [0.5, 1.5, 2.25]),
            ("value\n0.5\n1.5\n2.25\n", None, [0.5, 1.5, 2.25]),
        ):
            with self.subTest(text):
                (self.path / "y.csv").write_text(text)
                np.save(self.path / "e.npy", np.array([[0, 1], [1, 2]]))
                facts, found, _ = self.imported("--edges", "e.npy", "--labels", "y.csv")
                np.testing.assert_array_equal(found, labels)
                self.assertEqual(facts.get("class_names"), names)
        (self.path / "y.csv").write_text("species\ncat\ndog\ncat\n")
        _, _, result = self.imported("--edges", "e.npy", "--labels", "y.csv")
        self.assertIn("the first label in y.csv is in no other row: if it is a header",
                      result.stderr)  # fmt: skip
        (self.path / "y.csv").write_text("label\n0\n\n1\n")
        self.refused(3, "an empty line among values, y.csv, line 4; write NaN", "--edges", "e.npy",
                     "--labels", "y.csv")  # fmt: skip

    def test_names_that_do_not_fit(self):
        self.write("names.txt", NAMES[:3])
        self.refused(3, "class 3, but 3 names of classes, raw/labels.npy", *self.edges, "--labels",
                     "raw/labels.npy", "--class-names", "names.txt")  # fmt: skip
        self.write("y.txt", ["a", "b", "c"] * 20)
        for text, refusal in (("a\n\nb\n", "an empty line, bad.txt, line 3"), ("", "no names of"),
                              ("a\nb\na\n", "two classes are called 'a'")):  # fmt: skip
            (self.path / "bad.txt").write_text(text)
            self.refused(3, refusal, *self.edges, "--labels", "raw/labels.npy", "--class-names",
                         "bad.txt")  # fmt: skip
        self.refused(3, "names of classes are text, raw/labels.npy", *self.edges, "--labels",
                     "raw/labels.npy", "--class-names", "raw/labels.npy")  # fmt: skip
        self.refused(2, "both y.txt and names.txt hold names", *self.edges, "--labels", "y.txt",
                     "--class-names", "names.txt")  # fmt: skip
        self.refused(2, "--label-kind values, but there are names", *self.edges, "--labels",
                     "y.txt", "--label-kind", "values")  # fmt: skip

    def test_one_class_of_nearly_all_is_told(self):
        labels = np.zeros(60, np.int64)
        labels[:5] = 1
        np.save(self.path / "y.npy", labels)
        warned = "91.7 % of the labelled vertices are of class 0: .*--metric ap --task binary "
        _, _, result = self.imported(*self.edges, "--labels", "y.npy")
        self.assertRegex(result.stderr, warned)
        labels[5] = 1
        np.save(self.path / "y.npy", labels)
        _, _, result = self.imported(*self.edges, "--labels", "y.npy")
        self.assertNotIn("of the labelled", result.stderr)

    def test_another_graph_is_normalised_as_the_first_one(self):
        self.succeed("ooc-prep", "import", "raw", "--feature-norm", "standard", "-o", "a.ooc")
        self.succeed("ooc-train", "a.ooc", "--run-dir", "run", "--epochs", 3, "--hidden", 8)
        x = np.load(self.raw / "features.npy").astype(np.float64)
        other = write_graph(self.path / "other", classes=4, seed=3)
        new = np.load(other / "features.npy").astype(np.float64)
        for source in ("run", "a.ooc"):
            self.succeed("ooc-prep", "import", "other", "--feature-norm-from", source, "-o",
                         "b.ooc", "--force")  # fmt: skip
            self.succeed("ooc-prep", "export", "b.ooc", "-o", "out", "--force")
            np.testing.assert_allclose(np.load(self.path / "out/features.npy"),
                                       (new - x.mean(axis=0)) / x.std(axis=0), rtol=1e-5, atol=1e-5)
        infer = ("--run", "run", "-o", "o.npy", "--force")
        self.succeed("ooc-infer", "b.ooc", *infer)
        for norm in ("standard", "none"):
            self.succeed("ooc-prep", "import", "other", "--feature-norm", norm, "-o", "c.ooc",
                         "--force")  # fmt: skip
            self.fail_with(3, f"features normalised as {norm}.*, those of the model's graph as "
                           "standard, in column 0 less .*, c.ooc; .*--feature-norm-from RUN",
                           "ooc-infer", "c.ooc", *infer)  # fmt: skip
        self.refused(2, "--feature-norm-from beside --feature-norm", "other",
                     "--feature-norm-from", "run", "--feature-norm", "row")  # fmt: skip
        np.save(other / "features.npy", new[:, :5].astype(np.float32))
        self.refused(3, "features of 5 columns, --feature-norm-from is of 8", "other",
                     "--feature-norm-from", "run")  # fmt: skip

    def test_missing_features(self):
        x = np.load(self.raw / "features.npy")
        x[3, 2] = x[7, 2] = x[8, 0] = np.nan
        means = np.nanmean(x.astype(np.float64), axis=0)
        self.write("x.csv", *[["" if np.isnan(v) else repr(float(v)) for v in col] for col in x.T],
                   header=[f"f{i}" for i in range(8)])  # fmt: skip
        np.save(self.path / "x.npy", x)
        edges = self.edges[:2]
        self.refused(3, "'' is not a number, x.csv, line 5, field 3", *edges, "--features", "x.csv")
        self.refused(3, "nan in the features, x.npy, row 3, column 2; .*--missing zero or mean",
                     *edges, "--features", "x.npy")  # fmt: skip
        for file in ("x.csv", "x.npy"):
            for missing, values in (("zero", np.zeros(8)), ("mean", means)):
                for norm in ("none", "standard"):
                    self.succeed("ooc-prep", "import", *edges, "--features", file, "--missing",
                                 missing, "--feature-norm", norm, "-o", "x.ooc", "--force")
                    self.succeed("ooc-prep", "export", "x.ooc", "-o", "out", "--force")
                    filled = np.where(np.isnan(x), values.astype(np.float32), x).astype(np.float64)
                    if norm == "standard":
                        filled = (filled - filled.mean(axis=0)) / filled.std(axis=0)
                    np.testing.assert_allclose(np.load(self.path / "out/features.npy"), filled,
                                               rtol=1e-5, atol=1e-6)  # fmt: skip


if __name__ == "__main__":
    programs.main()
