"""Labels of every kind, from arrays to scores: values, labels in part, weights of classes, several
metrics. Metrics and losses are scikit-learn's of what ooc-infer writes, to 1e-9."""

import json

import numpy as np
import programs
from programs import ProgramTest, write_graph
from sklearn import metrics as sk

SPLITS = ("train", "valid", "test")
EPOCHS = 4


def rmse(labels, values):
    return sk.mean_squared_error(labels, values, squared=False)


def macro_f1(labels, scores):
    return sk.f1_score(labels, scores > 0, zero_division=0)


VALUE_METRICS = {"rmse": rmse, "mae": sk.mean_absolute_error, "r2": sk.r2_score}
COLUMN_METRICS = {
    "macro_f1": macro_f1,
    "rocauc": sk.roc_auc_score,
    "ap": sk.average_precision_score,
}


def by_column(metric, labels, outputs, needs_both=False):
    """The mean over the columns of a metric of their labelled entries."""
    found = []
    for column, output in zip(labels.T, outputs.T):
        there = ~np.isnan(column)
        if not there.any() or (needs_both and len(np.unique(column[there])) < 2):
            continue
        found.append(metric(column[there], output[there]))
    return np.mean(found)


def softplus(x):
    return np.logaddexp(0, x)


class LabelsTest(ProgramTest):
    def import_graph(self, labels, *arguments, name="x.ooc", **options):
        """Returns what import prints and warns of."""
        write_graph(self.path / "raw", **options)
        np.save(self.path / "raw/labels.npy", labels)
        return self.succeed(
            "ooc-prep", "import", "raw", "-o", name, "--undirected", "--force", *arguments
        )

    def rows(self, split):
        return np.load(self.path / f"raw/{split}_idx.npy")

    def train(self, run, *arguments, dataset="x.ooc"):
        return self.succeed(
            *("ooc-train", dataset, "--run-dir", run, "--hidden", 8, "--epochs", EPOCHS),
            *("--dropout", 0, "--force", *arguments),
        )

    def lines(self, run):
        text = (self.path / run / "metrics.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def summary(self, run):
        return json.loads((self.path / run / "summary.json").read_text())

    def infer(self, *arguments, dataset="x.ooc"):
        result = self.succeed("ooc-infer", dataset, "-o", "out.npy", "--force", *arguments)
        return np.load(self.path / "out.npy"), result.stdout

    def last(self, run):
        """What the last epoch's model gives, in double."""
        out, _ = self.infer("--checkpoint", f"{run}/checkpoint-{EPOCHS}.h5")
        return out.astype(np.float64)

    def near(self, found, expected, limit=1e-9):
        self.assertLessEqual(abs(found - expected), limit * max(1, abs(expected)))


class RegressionTest(LabelsTest):
    def values(self, targets, vertices=150):
        random = np.random.default_rng(7)
        labels = 1000 + random.normal(size=(vertices, targets))
        labels[random.random(labels.shape) < 0.2] = np.nan
        labels[np.isnan(labels).all(axis=1)] = 999.5  # every vertex is in a split
        return labels.astype(np.float32)

    def test_metrics_and_losses_are_scikit_learns(self):
        labels = self.values(3)
        printed = self.import_graph(labels, "--order", "random", vertices=150).stdout
        self.assertRegex(printed, r"labels +values\ntargets +3\n")
        for loss in ("mse", "mae", "huber"):
            with self.subTest(loss=loss):
                self.train(loss, "--loss", loss, "--metric", "r2,rmse,mae")
                values, line = self.last(loss), self.lines(loss)[-1]
                for split in SPLITS:
                    rows = self.rows(split)
                    for name, metric in VALUE_METRICS.items():
                        expected = by_column(metric, labels[rows].astype(np.float64), values[rows])
                        self.near(line["metrics"][name][split], expected)
                    self.assertEqual(line[split], line["metrics"]["r2"][split])
                errors = (values - labels)[self.rows("valid")].astype(np.float64)
                errors = np.abs(errors[~np.isnan(errors)])
                expected = {
                    "mse": sk.mean_squared_error(errors, 0 * errors),
                    "mae": sk.mean_absolute_error(errors, 0 * errors),
                    "huber": np.where(errors <= 1, errors**2 / 2, errors - 0.5).mean(),
                }
                self.near(line["valid_loss"], expected[loss])

    def test_whole_numbers_are_values_where_one_says_so(self):
        labels = np.arange(60) % 7
        self.import_graph(labels)
        self.fail_with(
            *(2, "--task regression does not fit single-label .*import .* --label-kind values"),
            *("ooc-train", "x.ooc", "--task", "regression"),
        )
        self.import_graph(labels, "--label-kind", "values")
        self.train("run")
        self.assertEqual(self.summary("run")["metric"], "rmse")
        values, printed = self.infer("--run", "run")
        self.assertEqual((values.shape, values.dtype), ((60,), np.float32))
        score = rmse(labels[self.rows("test")], values.astype(np.float64)[self.rows("test")])
        self.assertIn(f"test rmse {score:.4f}\n", printed)
        self.succeed("ooc-prep", "export", "x.ooc", "-o", "arrays")
        exported = np.load(self.path / "arrays/labels.npy")
        self.assertEqual(exported.dtype, np.float32)
        np.testing.assert_array_equal(exported, labels)
        facts = json.loads(self.succeed("ooc-inspect", "x.ooc", "--json").stdout)
        self.assertEqual((facts["labels"], facts["targets"]), ("values", 1))
        self.assertEqual(facts["import"]["label_kind"], "values")
        self.succeed("ooc-prep", "verify", "x.ooc")

    def test_vertices_with_any_label_are_dealt_to_splits(self):
        labels = self.values(2, vertices=60)
        labels[::3] = np.nan
        labels[1::3, 0] = np.nan
        labels[1::3, 1] = 1
        write_graph(self.path / "raw")
        for split in SPLITS:
            (self.path / f"raw/{split}_idx.npy").unlink()
        np.save(self.path / "raw/labels.npy", labels)
        self.succeed(
            *("ooc-prep", "import", "raw", "-o", "x.ooc", "--split", "50/25/25", "--undirected"),
        )
        self.succeed("ooc-prep", "export", "x.ooc", "-o", "arrays")
        dealt = [np.load(self.path / f"arrays/{split}_idx.npy") for split in SPLITS]
        self.assertEqual([len(split) for split in dealt], [20, 10, 10])
        expected = np.flatnonzero(~np.isnan(labels).all(axis=1))
        np.testing.assert_array_equal(np.sort(np.concatenate(dealt)), expected)
        np.testing.assert_array_equal(np.load(self.path / "arrays/labels.npy"), labels)
        self.succeed("ooc-prep", "verify", "x.ooc")
        self.train("run")

    def test_the_lowest_error_is_the_best(self):
        labels = self.values(1)[:, 0] - 1000
        self.import_graph(labels, vertices=150)
        for metric in ("rmse", "mae", "r2"):
            self.train(metric, "--metric", metric, "--lr", 0.3, "--epochs", 900, "--patience", 3)
            valid = [line["valid"] for line in self.lines(metric)]
            best = (max if metric == "r2" else min)(valid)
            self.assertEqual(valid.index(best) + 1 + 3, len(valid))
            self.assertEqual(self.summary(metric)["best_valid"], best)
            self.assertEqual(self.summary(metric)["best_epoch"], valid.index(best) + 1)

    def test_a_planted_model_is_found(self):
        vertices, degree, noise = 3000, 6, 0.6
        random = np.random.default_rng(5)
        write_graph(self.path / "raw", vertices=vertices, degree=degree, features=6, seed=5)
        edges = np.load(self.path / "raw/edges.npy")
        x = np.load(self.path / "raw/features.npy").astype(np.float64)
        adjacency = np.eye(vertices)
        adjacency[edges[:, 0], edges[:, 1]] = adjacency[edges[:, 1], edges[:, 0]] = 1
        factors = 1 / np.sqrt(adjacency.sum(axis=1))
        hop = factors[:, None] * adjacency * factors
        clean = hop @ (hop @ x) @ random.normal(size=(6, 2)) + [0.5, -2]
        clean = (clean - clean.mean(axis=0)) / clean.std(axis=0) + [0.5, -2]
        labels = clean + noise * random.normal(size=clean.shape)
        given = labels.copy()
        given[random.random(vertices) < 0.1, 1] = np.nan
        np.save(self.path / "raw/labels.npy", given)
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--undirected", "--quiet")
        self.train("run", "--model", "sgc", "--epochs", 200, "--lr", 0.05, "--metric", "r2")
        rows = self.rows("test")
        ceiling = by_column(sk.r2_score, given[rows], clean[rows])
        self.assertTrue(0.6 < ceiling < 0.85, ceiling)
        self.assertGreater(self.summary("run")["test"], ceiling - 0.02)
        values, _ = self.infer("--run", "run")
        self.assertGreater(sk.r2_score(clean[rows], values[rows]), 0.97)


class MaskedTest(LabelsTest):
    def bits(self, vertices=150, classes=5):
        write_graph(self.path / "raw", vertices=vertices, seed=3)
        x = np.load(self.path / "raw/features.npy")
        random = np.random.default_rng(4)
        labels = (x @ random.normal(size=(x.shape[1], classes)) > 1).astype(np.float64)
        labels[random.random(labels.shape) < 0.3] = np.nan
        labels[np.isnan(labels).all(axis=1), 0] = 1
        labels[:, 3] = np.where(np.isnan(labels[:, 3]), np.nan, 0)  # a class without a vertex
        labels[self.rows("test"), 4] = np.nan
        labels[self.rows("test"), 0] = np.arange(len(self.rows("test"))) % 2
        return labels

    def test_missing_entries_play_no_part(self):
        labels = self.bits()
        printed = self.import_graph(labels, "--order", "random", vertices=150, seed=3).stdout
        self.assertRegex(printed, r"labels +multi\nclasses +5\n")
        self.assertRegex(printed, rf"missing_labels +{np.isnan(labels).sum()}\n")
        self.train("run", "--metric", "macro_f1,rocauc,ap,micro_f1,accuracy")
        line, logits = self.lines("run")[-1], self.last("run")
        for split in SPLITS:
            rows = self.rows(split)
            found = line["metrics"]
            for name, metric in COLUMN_METRICS.items():
                both = name != "macro_f1"
                self.near(found[name][split], by_column(metric, labels[rows], logits[rows], both))
            there = ~np.isnan(labels[rows])
            truth, predicted = labels[rows][there], logits[rows][there] > 0
            self.near(found["micro_f1"][split], sk.f1_score(truth, predicted))
            self.near(found["accuracy"][split], sk.accuracy_score(truth, predicted))
        self.check_loss("run", labels, logits, np.ones(5))

    def check_loss(self, run, labels, logits, weights):
        """torch.nn.BCEWithLogitsLoss, of labelled entries. Exponentials are of single precision."""
        rows = self.rows("valid")
        y, x = labels[rows], logits[rows]
        losses = weights * y * softplus(-x) + (1 - y) * softplus(x)
        self.near(self.lines(run)[-1]["valid_loss"], np.nanmean(losses), 1e-6)

    def test_ones_count_their_weight(self):
        labels = self.bits()
        self.import_graph(labels, vertices=150, seed=3)
        train = labels[self.rows("train")]
        ones, zeros = np.nansum(train, axis=0), np.nansum(1 - train, axis=0)
        balanced = np.where(ones > 0, zeros / np.maximum(ones, 1), 1)
        for text, weights in (("balanced", balanced), ("1,2,0.5,0,3", [1, 2, 0.5, 0, 3])):
            self.train("run", "--pos-weight", text)
            self.check_loss("run", labels, self.last("run"), np.array(weights))
        config = (self.path / "run/config.toml").read_text()
        self.assertIn('class-weights = "1,2,0.5,0,3"\n', config)
        again = self.succeed("ooc-train", "--resume", "run", "--class-weights", "1,2,0.5,0,3")
        self.assertIn("finished already", again.stderr)
        self.fail_with(
            *(2, "class-weights .1,2,1,0,3. is not what the run was started with"),
            *("ooc-train", "--resume", "run", "--pos-weight", "1,2,1,0,3"),
        )

    def test_a_dataset_comes_back_and_is_checked(self):
        labels = self.bits()
        self.import_graph(labels, "--order", "degree", vertices=150, seed=3)
        self.succeed("ooc-prep", "verify", "x.ooc")
        self.succeed("ooc-prep", "export", "x.ooc", "-o", "arrays")
        exported = np.load(self.path / "arrays/labels.npy")
        np.testing.assert_array_equal(exported, np.nan_to_num(labels, nan=-1))


class ClassesTest(LabelsTest):
    def test_one_hot_labels_are_noticed(self):
        classes = np.arange(60) % 3
        one_hot = np.eye(3)[classes]
        warned = self.import_graph(one_hot, "--quiet")
        self.assertRegex(warned.stderr, r"every labelled row of raw/labels.npy has exactly one 1.*")
        self.assertIn("--label-kind one-hot", warned.stderr)
        quiet = self.import_graph(one_hot, "--label-kind", "multi", "--quiet")
        self.assertEqual(quiet.stderr, "")
        self.import_graph(classes, name="plain.ooc")
        self.import_graph(one_hot, "--label-kind", "one-hot")
        self.train("run")
        self.train("plain", dataset="plain.ooc")
        for one, plain in zip(self.lines("run"), self.lines("plain")):
            self.assertEqual(one["loss"], plain["loss"])

    def test_weights_of_classes(self):
        labels = np.repeat([0, 1, 2, 0, 0], 30)
        self.import_graph(labels, vertices=150)
        train = np.bincount(labels[self.rows("train")])
        for text, weights in (("balanced", train.sum() / (3 * train)), ("3,0,0.25", [3, 0, 0.25])):
            with self.subTest(weights=text):
                self.train("run", "--class-weights", text)
                rows, logits = self.rows("valid"), self.last("run")
                shares = np.exp(logits - logits.max(axis=1, keepdims=True))
                shares /= shares.sum(axis=1, keepdims=True)
                loss = sk.log_loss(
                    labels[rows],
                    shares[rows],
                    labels=[0, 1, 2],
                    sample_weight=np.array(weights)[labels[rows]],
                )
                self.near(self.lines("run")[-1]["valid_loss"], loss, 1e-6)

    def test_two_classes_with_one_logit(self):
        labels = (np.arange(150) % 5 == 0).astype(np.int64)
        self.import_graph(labels, vertices=150)
        train = labels[self.rows("train")]
        for text, weight in (("balanced", (train == 0).sum() / train.sum()), ("2.5", 2.5)):
            self.train("run", "--task", "binary", "--pos-weight", text, "--metric", "ap,rocauc")
            rows, logits = self.rows("valid"), self.last("run")[:, 0]
            y, x = labels[rows], logits[rows]
            losses = weight * y * softplus(-x) + (1 - y) * softplus(x)
            self.near(self.lines("run")[-1]["valid_loss"], losses.mean(), 1e-6)
            found = self.lines("run")[-1]["metrics"]
            self.near(found["ap"]["valid"], sk.average_precision_score(y, x))
            self.near(found["rocauc"]["valid"], sk.roc_auc_score(y, x))


class MetricsTest(LabelsTest):
    def setUp(self):
        super().setUp()
        self.prepare("x.ooc", classes=2)

    def test_all_are_reported_and_the_first_one_picks(self):
        result = self.train("run", "--metric", "rocauc,macro_f1,accuracy", "--epochs", 20)
        lines, summary = self.lines("run"), self.summary("run")
        best = max(range(20), key=lambda i: lines[i]["metrics"]["rocauc"]["valid"])
        self.assertEqual(summary["best_epoch"], best + 1)
        expected = ""
        for metric in ("macro_f1", "accuracy", "rocauc"):  # the last lines are the first one's
            at_best, at_last = lines[best]["metrics"][metric], lines[-1]["metrics"][metric]
            figures = {key: at_best[key] for key in ("valid", "test")}
            self.assertEqual(
                summary["metrics"][metric], {**figures, "last_test": at_last["test"]}
            )
            first = metric == "rocauc"
            expected += f"{'best_' if first else ''}valid {metric} {at_best['valid']:.4f}"
            expected += f" epoch {best + 1}\n" if first else "\n"
            expected += f"test {metric} {at_best['test']:.4f}\n"
        self.assertEqual(result.stdout, expected)
        self.assertEqual(summary["test"], summary["metrics"]["rocauc"]["test"])
        facts = json.loads(self.succeed("ooc-inspect", "run/best.h5", "--json").stdout)
        self.assertEqual(facts["best_macro_f1"], lines[best]["metrics"]["macro_f1"])

    def test_several_runs_have_the_mean_of_each(self):
        result = self.train("run", "--metric", "accuracy,rocauc", "--runs", 3, "--epochs", 5)
        summary = self.summary("run")
        for metric, figure, label in (
            ("accuracy", "valid", "best_valid"),
            ("accuracy", "test", "test"),
            ("rocauc", "valid", "valid"),
            ("rocauc", "test", "test"),
        ):
            of_runs = [run["metrics"][metric][figure] for run in summary["seeds"]]
            mean, deviation = np.mean(of_runs), np.std(of_runs, ddof=1)
            self.near(summary["metrics"][metric][figure], mean)
            self.near(summary["metrics"][metric][f"{figure}_deviation"], deviation)
            self.assertIn(f"{label} {metric} {mean:.4f} +- {deviation:.4f} runs 3\n", result.stdout)

    def test_infer_scores_by_what_is_asked_for(self):
        self.train("run")
        logits, printed = self.infer("--run", "run", "--metric", "ap,accuracy")
        truth = np.load(self.path / "raw/labels.npy")
        score = logits[:, 1].astype(np.float64) - logits[:, 0]
        expected = ""
        for name, metric in (
            ("ap", lambda y, s: sk.average_precision_score(y, s)),
            ("accuracy", lambda y, s: sk.accuracy_score(y, s > 0)),
        ):
            for split in SPLITS:
                rows = self.rows(split)
                expected += f"{split} {name} {metric(truth[rows], score[rows]):.4f}\n"
        self.assertEqual(printed, expected + "out.npy: 60 rows\n")
        for name in SPLITS:
            (self.path / f"raw/{name}_idx.npy").unlink()
        self.succeed("ooc-prep", "import", "raw", "-o", "bare.ooc", "--undirected", "--quiet")
        self.assertEqual(self.infer("--run", "run", dataset="bare.ooc")[1], "out.npy: 60 rows\n")
        self.fail_with(
            *(3, "--metric, but it has no labels and splits, bare.ooc; leave it out"),
            *("ooc-infer", "bare.ooc", "--run", "run", "-o", "o.npy", "--metric", "ap"),
        )

    def test_labels_that_the_model_does_not_know_are_not_scored(self):
        self.train("run")
        write_graph(self.path / "more", classes=5)
        self.succeed("ooc-prep", "import", "more", "-o", "more.ooc", "--undirected", "--quiet")
        infer = ("ooc-infer", "more.ooc", "--run", "run", "-o", "o.npy", "--quiet")
        why = ("it has single-label labels of 5 classes, the model was trained on single-label "
               "labels of 2 classes")  # fmt: skip
        result = self.succeed(*infer)
        self.assertEqual(result.stdout, "o.npy: 60 rows\n")
        warning = "ooc-infer: warning: the splits of more.ooc are not scored"
        self.assertEqual(result.stderr, f"{warning}: {why}\n")
        self.fail_with(3, f"--metric, but {why}, more.ooc; ", *infer, "--metric", "ap", "--force")


if __name__ == "__main__":
    programs.main()
