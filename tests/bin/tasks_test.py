"""What ooc-train learns and how: tasks, metrics, class weights, recipes, runs of several seeds.
Every metric is compared with its plain definition on the logits that ooc-infer writes."""

import json
import os
import signal
import statistics
import subprocess
import time
import tomllib

import h5py
import numpy as np
import programs
from programs import ProgramTest, write_graph

SPLITS = ("train", "valid", "test")


def write_multi_label(directory, classes=5):
    """write_graph() with labels that the features say something of; some vertices have none."""
    write_graph(directory, vertices=90, seed=3)
    random = np.random.default_rng(4)
    x = np.load(directory / "features.npy")
    labels = (x @ random.normal(size=(x.shape[1], classes)) > 1).astype(np.float64)
    labels[:, classes - 1] = 0  # a class without a vertex
    np.save(directory / "labels.npy", labels)
    return labels


def area(scores, truth):
    positive, negative = scores[truth], scores[~truth]
    pairs = positive[:, None] - negative[None, :]
    return ((pairs > 0) + 0.5 * (pairs == 0)).mean()


def average_precision(scores, truth):
    value, recall = 0, 0
    for threshold in np.unique(scores)[::-1]:
        above = scores >= threshold
        step = truth[above].sum() / truth.sum() - recall
        value += step * truth[above].mean()
        recall += step
    return value


def f1(truth, predicted):
    both = truth.sum() + predicted.sum()
    return 2 * (truth & predicted).sum() / both if both else 0.0


def expected_metric(name, truth, predicted, scores):
    """`truth` and `predicted`: [vertices, classes] bool; `scores`: of the classes ranked."""
    if name == "micro_f1":
        return f1(truth, predicted)
    if name == "macro_f1":
        return np.mean([f1(t, p) for t, p in zip(truth.T, predicted.T)])
    if name == "accuracy":
        return (truth == predicted).mean()
    ranked = truth if scores.shape[1] == truth.shape[1] else truth[:, 1:]
    rank = area if name == "rocauc" else average_precision
    return np.mean([rank(s, t) for s, t in zip(scores.T, ranked.T) if t.any() and not t.all()])


class TasksTest(ProgramTest):
    def train(self, dataset, run, *arguments):
        return self.succeed(
            *("ooc-train", dataset, "--run-dir", run, "--hidden", 8, "--epochs", 25),
            *("--dropout", 0, *arguments),
        )

    def summary(self, run):
        return json.loads((self.path / run / "summary.json").read_text())

    def infer(self, dataset, run, *arguments):
        result = self.succeed(
            *("ooc-infer", dataset, "--run", run, "-o", "out.npy", "--force", *arguments)
        )
        return np.load(self.path / "out.npy"), result.stdout

    def check_metric(self, dataset, run, name, truth, predict, rank):
        """The best valid metric, and what ooc-infer prints, are the definition's of the logits."""
        logits, printed = self.infer(dataset, run)
        scores = rank(logits.astype(np.float64))
        for split in SPLITS:
            rows = np.load(self.path / f"{dataset[:-4]}/{split}_idx.npy")
            value = expected_metric(name, truth[rows], predict(logits)[rows], scores[rows])
            self.assertIn(f"{split} {name} {value:.4f}\n", printed)
            if split == "valid":
                self.assertAlmostEqual(self.summary(run)["best_valid"], value, places=12)
            if split == "test":
                self.assertAlmostEqual(self.summary(run)["test"], value, places=12)

    def test_multi_label_by_every_metric(self):
        truth = write_multi_label(self.path / "many") == 1
        self.succeed("ooc-prep", "import", "many", "-o", "many.ooc", "--undirected", "--quiet")
        result = self.train("many.ooc", "run")
        self.assertRegex(result.stdout, r"best_valid micro_f1 0\.\d+ epoch \d+\ntest micro_f1 0")
        for name in ("micro_f1", "macro_f1", "rocauc", "ap"):
            with self.subTest(metric=name):
                self.train("many.ooc", name, "--metric", name)
                self.check_metric(
                    "many.ooc", name, name, truth, lambda x: x > 0, lambda x: x
                )
        self.train("many.ooc", "bits", "--metric", "accuracy")
        logits, printed = self.infer("many.ooc", "bits")
        rows = np.load(self.path / "many/test_idx.npy")
        share = ((logits > 0) == truth)[rows].mean()
        self.assertIn(f"test accuracy {share:.4f}\n", printed)
        classes, _ = self.infer("many.ooc", "bits", "--what", "classes")
        self.assertEqual(classes.dtype, np.uint8)
        np.testing.assert_array_equal(classes, logits > 0)
        self.infer("many.ooc", "bits", "--what", "embeddings")
        self.succeed(
            *("ooc-infer", "many.ooc", "--run", "bits", "-o", "o.h5", "--what", "classes")
        )
        with h5py.File(self.path / "o.h5") as file:
            self.assertEqual(file["data"].dtype, np.uint8)
            np.testing.assert_array_equal(file["data"][...], classes)

    def test_two_classes_as_single_and_as_binary(self):
        write_graph(self.path / "two", classes=2, vertices=120)
        self.succeed("ooc-prep", "import", "two", "-o", "two.ooc", "--undirected", "--quiet")
        labels = np.load(self.path / "two/labels.npy")
        truth = labels[:, None] == [0, 1]
        for task, metrics in (
            ("single", ("macro_f1", "rocauc", "ap")),
            ("binary", ("macro_f1", "rocauc", "ap")),
        ):
            for name in metrics:
                run = f"{task}-{name}"
                with self.subTest(run=run):
                    self.train("two.ooc", run, "--task", task, "--metric", name)
                    if task == "single":
                        predict = lambda x: x.argmax(axis=1)[:, None] == [0, 1]
                        rank = lambda x: x[:, 1:] - x[:, :1]
                    else:
                        predict = lambda x: (x > 0) == [False, True]
                        rank = lambda x: x
                    self.check_metric("two.ooc", run, name, truth, predict, rank)
        self.assertIn("best_valid accuracy", self.train("two.ooc", "single").stdout)
        self.assertIn("rocauc", self.train("two.ooc", "binary", "--task", "binary").stdout)
        logits, _ = self.infer("two.ooc", "binary")
        classes, _ = self.infer("two.ooc", "binary", "--what", "classes")
        self.assertEqual((logits.shape, classes.shape), ((120, 1), (120,)))
        np.testing.assert_array_equal(classes, logits[:, 0] > 0)
        self.assertGreater(self.summary("binary")["test"], 0.7, "planted classes not learnt")
        facts = self.succeed("ooc-inspect", "binary/best.h5").stdout
        self.assertRegex(facts, r"best_rocauc[\s\S]*task +binary")

    def test_early_stopping_follows_the_metric(self):
        self.prepare("x.ooc")
        self.train(
            "x.ooc", "run", "--metric", "macro_f1", "--patience", 3, "--lr", 0.3, "--epochs", 900
        )
        lines = (self.path / "run/metrics.jsonl").read_text().splitlines()
        valid = [json.loads(line)["valid"] for line in lines]
        self.assertEqual(valid.index(max(valid)) + 1 + 3, len(valid))
        self.assertEqual(self.summary("run")["best_valid"], max(valid))

    def test_balanced_classes_help_the_small_one(self):
        write_graph(self.path / "raw", vertices=300, classes=2, features=2)
        labels = np.load(self.path / "raw/labels.npy")
        labels[np.random.default_rng(1).random(300) < 0.85] = 0  # much of class 1 is called 0
        np.save(self.path / "raw/labels.npy", labels)
        self.succeed("ooc-prep", "import", "raw", "-o", "raw.ooc", "--undirected", "--quiet")
        found = {}
        for weights in ("none", "balanced"):
            self.train("raw.ooc", weights, "--class-weights", weights, "--epochs", 100)
            classes, _ = self.infer("raw.ooc", weights, "--what", "classes")
            found[weights] = (classes == 1).mean()
        self.assertGreater(found["balanced"], found["none"] + 0.1)

    def test_what_does_not_fit_is_refused(self):
        self.prepare("x.ooc")
        for pattern, options in (
            ("--task multi-label does not fit single-label", ("--task", "multi-label")),
            ("--task binary does not fit .* 3 classes", ("--task", "binary")),
            ("--metric rocauc does not fit .* 3 classes", ("--metric", "rocauc")),
            ("--momentum 0.5, --optimizer adam; ", ("--momentum", 0.5)),
            ("--recipe cannot be 'best'", ("--recipe", "best")),
        ):
            self.fail_with(2, pattern, "ooc-train", "x.ooc", "--run-dir", "run", *options)
        write_multi_label(self.path / "many")
        self.succeed("ooc-prep", "import", "many", "-o", "many.ooc", "--undirected", "--quiet")
        self.fail_with(2, "--task single.*multi", "ooc-train", "many.ooc", "--task", "single")
        self.assertFalse((self.path / "run").exists())

    def test_a_plan_for_a_graph_that_is_not_there_is_refused_likewise(self):
        counts = "vertices=100,edges=900,features=8,classes=3"
        plan = ("ooc-train", "--plan", "--graph")
        for pattern, options in (
            ("--metric rocauc does not fit --task single with 3 classes", ("--metric", "rocauc")),
            ("--metric rmse does not fit --task single", ("--metric", "rmse")),
            ("--task binary does not fit single-label labels of 3 classes, --graph; ",
             ("--task", "binary")),
            ("--loss mse does not fit --task single", ("--loss", "mse")),
            ("2 weights of classes, 3 are needed", ("--class-weights", "1,2")),
            ("--edge-weights use, the dataset's edges have no weights", ("--edge-weights", "use")),
        ):  # fmt: skip
            with self.subTest(options=options):
                self.fail_with(2, pattern, *plan, counts, *options)
        many = (*plan, counts + ",multi-label=1")
        self.fail_with(2, "--task single does not fit multi-label", *many, "--task", "single")
        for options in (("--task", "regression", "--metric", "mae,r2"), ("--metric", "macro_f1")):
            self.succeed(*plan, counts, *options)

    def test_what_makes_no_sense_is_refused(self):
        self.prepare("x.ooc", classes=2)
        write_graph(self.path / "raw")
        np.save(self.path / "raw/labels.npy", np.linspace(0, 1, 60))
        self.succeed("ooc-prep", "import", "raw", "-o", "v.ooc", "--undirected", "--quiet")
        for dataset, pattern, options in (
            ("v.ooc", "--metric accuracy does not fit --task regression.*; use rmse, mae or r2",
             ("--metric", "rmse,accuracy")),
            ("x.ooc", "--metric r2 does not fit --task single.*; use accuracy", ("--metric", "r2")),
            ("v.ooc", "--class-weights does not fit --task regression",
             ("--class-weights", "balanced")),
            ("v.ooc", "--pos-weight does not fit --task regression", ("--pos-weight", "2")),
            ("v.ooc", "--task single does not fit labels that are values, 1 a vertex, .*"
             "it is regression then", ("--task", "single")),
            ("v.ooc", "--loss cross-entropy does not fit .*; give mse, mae or huber",
             ("--loss", "cross-entropy")),
            ("x.ooc", "--loss mse does not fit --task single.*; leave it out", ("--loss", "mse")),
            ("x.ooc", "3 weights of classes, 2 are needed, --task single with 2 classes",
             ("--class-weights", "1,2,3")),
            ("x.ooc", "2 weights of classes, 1 is needed, --task binary .*class 1 alone",
             ("--class-weights", "1,2", "--task", "binary")),
            ("x.ooc", "--class-weights gives every training vertex the weight 0",
             ("--class-weights", "0,0")),
            ("x.ooc", "--class-weights cannot be '1,-2'", ("--class-weights", "1,-2")),
            ("x.ooc", "--pos-weight does not fit --task single.*; give --class-weights",
             ("--pos-weight", "2")),
            ("x.ooc", "both --class-weights and --pos-weight",
             ("--pos-weight", "2", "--class-weights", "balanced")),
            ("x.ooc", "--metric cannot be 'best', rocauc,best; it takes some of accuracy, ",
             ("--metric", "rocauc,best")),
            ("x.ooc", "--metric has ap twice, ap,pr_auc; name each once",
             ("--metric", "ap,pr_auc")),
        ):  # fmt: skip
            with self.subTest(options=options):
                self.fail_with(2, pattern, "ooc-train", dataset, "--run-dir", "run", *options)
        self.train("v.ooc", "values")
        self.train("x.ooc", "classes")
        infer = ("ooc-infer", "v.ooc", "-o", "o.npy", "--run")
        self.fail_with(2, "--what; ask for values", *infer, "values", "--what", "classes")
        self.fail_with(2, "no values, --what; ask for", *infer, "classes", "--what", "values")
        self.fail_with(2, "use rmse, mae or r2", *infer, "values", "--metric", "ap")
        (self.path / "raw/labels.npy").unlink()
        self.fail_with(
            *(2, "--label-kind, but there are no labels"),
            *("ooc-prep", "import", "raw", "-o", "y.ooc", "--label-kind", "values"),
        )


class RecipeTest(ProgramTest):
    def config(self, *arguments):
        self.succeed(
            *("ooc-train", "x.ooc", "--run-dir", "run", "--epochs", 1, "--force", *arguments)
        )
        return tomllib.loads((self.path / "run/config.toml").read_text())

    def test_a_recipe_fills_what_is_not_given(self):
        self.prepare("x.ooc")
        planetoid = {"hidden": 16, "dropout": 0.5, "input-dropout": 0.5, "weight-decay": 5e-4}
        classic = {
            **{"layers": 3, "hidden": 256, "residual": True, "norm": "layer"},
            **{"linear-head": True},
        }
        defaults = self.config()
        for name, values in (("planetoid", planetoid), ("classic", classic)):
            self.assertEqual(self.config("--recipe", name), {**defaults, **values})
        given = self.config("--recipe", "planetoid", "--hidden", 5, "--dropout", 0.1)
        self.assertEqual(given, {**defaults, **planetoid, "hidden": 5, "dropout": 0.1})
        (self.path / "a.toml").write_text("recipe = 'classic'\nresidual = false\nlayers = 2\n")
        from_file = self.config("--config", "a.toml", "--hidden", 4)
        self.assertEqual(
            from_file, {**defaults, **classic, "residual": False, "layers": 2, "hidden": 4}
        )
        self.fail_with(
            2, "--recipe beside --resume", "ooc-train", "--resume", "run", "--recipe", "classic"
        )

    def test_a_run_with_a_schedule_keeps_its_epochs(self):
        self.prepare("x.ooc")
        self.config("--lr-schedule", "cosine", "--optimizer", "sgd", "--momentum", 0.9)
        self.succeed("ooc-train", "--resume", "run", "--epochs", 1)
        self.fail_with(
            *(2, "--epochs 3 with --lr-schedule cosine, run; "),
            *("ooc-train", "--resume", "run", "--epochs", 3),
        )


class RunsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.prepare("x.ooc")

    def options(self, run, *arguments):
        return (
            *("ooc-train", "x.ooc", "--run-dir", run, "--hidden", 8, "--epochs", 6),
            *("--seed", 3, "--runs", 4, *arguments),
        )

    def test_several_seeds_and_their_mean(self):
        result = self.succeed(*self.options("run"))
        tests, bests = [], []
        for seed in range(3, 7):
            self.succeed(
                *("ooc-train", "x.ooc", "--run-dir", f"alone-{seed}", "--hidden", 8),
                *("--epochs", 6, "--seed", seed),
            )
            inner, alone = (
                json.loads((self.path / run / "summary.json").read_text())
                for run in (f"run/seed-{seed}", f"alone-{seed}")
            )
            for key in ("best_valid", "best_epoch", "test"):
                self.assertEqual(inner[key], alone[key])
            tests.append(alone["test"])
            bests.append(alone["best_valid"])
        lines = [
            f"{key} accuracy {statistics.mean(of):.4f} +- {statistics.stdev(of):.4f} runs 4\n"
            for key, of in (("best_valid", bests), ("test", tests))
        ]
        self.assertEqual(result.stdout, "".join(lines))
        again = self.succeed("ooc-train", "--resume", "run", "--json")
        self.assertIn("finished already", again.stderr)
        summary = json.loads(again.stdout)
        self.assertEqual(summary, json.loads((self.path / "run/summary.json").read_text()))
        self.assertEqual([run["test"] for run in summary["seeds"]], tests)
        self.assertAlmostEqual(summary["test_deviation"], statistics.stdev(tests))
        self.succeed("ooc-inspect", "run")
        self.fail_with(
            *(2, "4 runs of different seeds, run; name one of them, such as run/seed-3"),
            *("ooc-infer", "x.ooc", "--run", "run", "-o", "o.npy"),
        )
        self.succeed("ooc-infer", "x.ooc", "--run", "run/seed-4", "-o", "o.npy")
        self.fail_with(2, "run directory exists, run; ", *self.options("run"))
        longer = self.succeed("ooc-train", "--resume", "run", "--epochs", 8, "--json")
        self.assertEqual([r["epochs"] for r in json.loads(longer.stdout)["seeds"]], [8] * 4)
        self.fail_with(
            2, "less than the 8 epochs", "ooc-train", "--resume", "run", "--epochs", 7
        )
        self.fail_with(2, "runs 5 is not what", "ooc-train", "--resume", "run", "--runs", 5)

    def test_stopped_and_killed_it_goes_on_where_it_was(self):
        options = ("--epochs", 300)
        self.succeed(*self.options("whole", *options))
        command = [programs.BIN / "ooc-train", *map(str, self.options("run", *options)[1:])]
        for number in (signal.SIGINT, signal.SIGKILL):
            process = subprocess.Popen(
                command, cwd=self.path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
            )
            started = len(os.listdir(self.path / "run")) if (self.path / "run").exists() else 0
            while process.poll() is None:
                there = self.path / "run"
                if there.exists() and len(os.listdir(there)) > max(3, started):
                    break
                time.sleep(0.002)
            process.send_signal(number)
            _, errors = process.communicate(timeout=120)
            if process.returncode == 130:
                self.assertRegex(
                    errors,
                    r"interrupted after epoch \d+ of a seed's run, run; "
                    r"continue with ooc-train --resume run\n",
                )
            command = [programs.BIN / "ooc-train", "--resume", "run"]
        self.succeed("ooc-train", "--resume", "run")
        whole, resumed = (
            json.loads((self.path / run / "summary.json").read_text()) for run in ("whole", "run")
        )
        for key in ("best_valid", "best_valid_deviation", "test", "test_deviation"):
            self.assertEqual(whole[key], resumed[key])


if __name__ == "__main__":
    programs.main()
