"""Weights of edges through the real programs: when models take them, what is said where they don't,
and runs of before. models_test.py has what weighted models compute."""

import json
import re
import shutil

import h5py
import numpy as np
import programs
from programs import ProgramTest, write_graph

# GCN as it was before gathers had weights.
BEFORE = """layer gcn(in, out) {
  param weight[in, out], bias[out]
  h = vertex.out_factor * (vertex @ weight)
  edge   { return src.h }
  gather sum with loops
  vertex { return act(vertex.in_factor * accum + bias) }
}
"""


def parameters(checkpoint):
    with h5py.File(checkpoint) as file:
        return {name: np.array(array) for name, array in file["parameters"].items()}


class EdgeWeightsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        raw = write_graph(self.path / "raw", vertices=90)
        self.edges = len(np.load(raw / "edges.npy"))
        self.imported("bare.ooc")
        random = np.random.default_rng(1)
        np.save(raw / "edge_weights.npy", (0.1 + random.random(self.edges)).astype(np.float32))
        self.imported("x.ooc")

    def imported(self, name, *options):
        """What import says on stderr."""
        imports = ("ooc-prep", "import", "raw", "-o", name, "--undirected", "--quiet")
        return self.succeed(*imports, *options).stderr

    def train(self, dataset, run, *options):
        """What it says on stderr."""
        return self.succeed(
            *("ooc-train", dataset, "--run-dir", run, "--epochs", 4, "--hidden", 8, "--quiet"),
            *options,
        ).stderr

    def assert_same_bits(self, one, other, epoch=4):
        ones, others = (
            parameters(self.path / f"{run}/checkpoint-{epoch}.h5") for run in (one, other)
        )
        self.assertEqual(ones.keys(), others.keys())
        for name, array in ones.items():
            np.testing.assert_array_equal(array, others[name])

    def word(self, run):
        config = (self.path / run / "config.toml").read_text()
        return re.search(r"^edge-weights = (.*)$", config, re.M)[1]

    def test_they_are_used_where_they_are_unless_told_otherwise(self):
        for model in ("gcn", "sage"):
            with self.subTest(model):
                for run, dataset, options in (
                    ("auto", "x.ooc", ()),
                    ("use", "x.ooc", ("--edge-weights", "use")),
                    ("ignore", "x.ooc", ("--edge-weights", "ignore")),
                    ("bare", "bare.ooc", ("--edge-weights", "auto")),
                ):
                    said = self.train(dataset, run, "--model", model, "--force", *options)
                    self.assertEqual(said, "")
                self.assertEqual(
                    [self.word(run) for run in ("auto", "use", "ignore", "bare")],
                    ['"auto"', '"use"', '"ignore"', '"auto"'],
                )
                self.assert_same_bits("auto", "use")
                self.assert_same_bits("ignore", "bare")
                with self.assertRaises(AssertionError):
                    self.assert_same_bits("use", "ignore")

    def test_a_configuration_says_what_was_asked(self):
        """So that of a run on a graph without weights does what it says on one with them."""
        for run, dataset, other in (("bare", "bare.ooc", "x.ooc"), ("x", "x.ooc", "bare.ooc")):
            self.train(dataset, run)
            config = self.path / f"{run}.toml"
            lines = (self.path / run / "config.toml").read_text().splitlines(keepends=True)
            config.write_text("".join(line for line in lines if not line.startswith("dataset")))
            self.train(other, "again", "--config", config, "--force")
            self.train(other, "anew", "--force")
            self.assert_same_bits("again", "anew")

    def test_weights_of_one_are_the_graph_without(self):
        np.save(self.path / "raw/edge_weights.npy", np.ones(self.edges, np.float32))
        self.imported("ones.ooc")
        self.train("ones.ooc", "ones", "--model", "commnet")
        self.train("bare.ooc", "bare", "--model", "commnet")
        self.assert_same_bits("ones", "bare")

    def test_what_cannot_be_used_is_refused(self):
        train = ("ooc-train", "bare.ooc", "--edge-weights", "use")
        self.fail_with(2, "--edge-weights use, the dataset's edges have no weights; ", *train)
        graph = "vertices=100,edges=900,features=8,classes=3"
        self.fail_with(
            2, "no weights", *("ooc-train", "--plan", "--graph", graph, "--edge-weights", "use")
        )
        train = ("ooc-train", "x.ooc", "--model", "gat", "--edge-weights", "use")
        self.fail_with(2, "--edge-weights use would do nothing, gat.saga does not read it", *train)
        (self.path / "mine.saga").write_text(
            "layer mine(in, out) { param w[in, out] edge { return data.weight * (src @ w) } "
            "gather sum vertex { return accum } }"
        )
        self.train("x.ooc", "mine", "--model", "./mine.saga")
        train = ("ooc-train", "x.ooc", "--model", "./mine.saga", "--edge-weights", "ignore")
        self.fail_with(2, "--edge-weights ignore, mine.saga reads data.weight; ", *train)

    def test_what_edges_carry_and_a_model_does_not_read_is_said(self):
        random = np.random.default_rng(2)
        np.save(self.path / "raw/edge_types.npy", random.integers(0, 3, self.edges))
        np.save(self.path / "raw/edge_features.npy", np.ones((self.edges, 2), np.float32))
        self.imported("all.ooc")
        for model, options, unread in (
            ("gat", (), "weights and types and features"),
            ("gat", ("--edge-weights", "ignore"), "types and features"),
            ("ggnn", (), "weights and features"),
            ("gcn", (), "types and features"),
            ("gcn", ("--edge-weights", "ignore"), "types and features"),
        ):
            with self.subTest(model=model, options=options):
                said = self.train("all.ooc", "run", "--model", model, "--force", *options)
                self.assertEqual(
                    said,
                    f"ooc-train: warning: {model} does not read the {unread} of edges: they are "
                    "not used\n",
                )
        facts = json.loads(self.succeed("ooc-inspect", "all.ooc", "--json").stdout)
        carried = [facts[name] for name in ("edge_weights", "edge_types", "edge_features")]
        self.assertEqual(carried, [True, 3, 2])
        facts = json.loads(self.succeed("ooc-inspect", "bare.ooc", "--json").stdout)
        self.assertEqual(facts["edge_weights"], False)

    def test_import_says_how_many_weights_are_not_positive(self):
        weights = np.ones(self.edges, np.float32)
        weights[:7] = -1
        weights[7:9] = 0
        np.save(self.path / "raw/edge_weights.npy", weights)
        for order in ("natural", "degree"):  # the second reads the edges twice
            said = self.imported(f"{order}.ooc", "--order", order)
            self.assertIn(f"the {self.edges} weights of edges 7 are negative and 2 are 0: ", said)

    def test_a_run_of_before_goes_on_without_weights(self):
        self.train("x.ooc", "whole", "--edge-weights", "ignore", "--checkpoint-every", 2)
        self.train("x.ooc", "run", "--edge-weights", "ignore", "--epochs", 2)
        run = self.path / "run"
        config = (run / "config.toml").read_text().replace('edge-weights = "ignore"\n', "")
        self.assertNotIn("edge-weights", config)
        (run / "config.toml").write_text(config)
        (run / "program.saga").write_text(BEFORE)
        for checkpoint in ("checkpoint-2.h5", "best.h5"):
            with h5py.File(run / checkpoint, "r+") as file:
                for name, text in (("config", config), ("program", BEFORE)):
                    del file.attrs[name]
                    file.attrs[name] = np.bytes_(text)
        infer = ("ooc-infer", "x.ooc", "--run", "run", "-o", "before.npy", "--what", "logits")
        self.succeed(*infer)
        resume = ("ooc-train", "--resume", "run", "--epochs", 4, "--quiet")
        self.fail_with(2, "use.* is not what the run was started with", *resume[:3],
                       "--edge-weights", "use")  # fmt: skip
        self.assertEqual(self.succeed(*resume, "--edge-weights", "auto").stderr, "")
        self.assert_same_bits("run", "whole")

    def test_a_run_of_before_goes_on_with_weights(self):
        """Configurations said what became of them, and checkpoints nothing."""
        self.train("x.ooc", "whole", "--checkpoint-every", 2)
        self.train("x.ooc", "run", "--epochs", 2)
        run = self.path / "run"
        config = (run / "config.toml").read_text()
        config = config.replace('edge-weights = "auto"', 'edge-weights = "use"')
        (run / "config.toml").write_text(config)
        for checkpoint in ("checkpoint-2.h5", "best.h5"):
            with h5py.File(run / checkpoint, "r+") as file:
                del file.attrs["edge_weights"], file.attrs["config"]
                file.attrs["config"] = np.bytes_(config)
        self.succeed("ooc-infer", "x.ooc", "--run", "run", "-o", "before.npy", "--what", "logits")
        self.succeed("ooc-train", "--resume", "run", "--epochs", 4, "--quiet")
        self.assert_same_bits("run", "whole")

    def test_inference_is_weighted_where_the_run_was(self):
        for choice in ("auto", "use", "ignore"):
            self.train("x.ooc", choice, "--edge-weights", choice)
        self.train("bare.ooc", "bare")
        infer = ("ooc-infer", "x.ooc", "--run")
        for run in ("auto", "use", "ignore", "bare"):
            said = self.succeed(*infer, run, "-o", f"{run}.npy", "--quiet").stderr
            unused = "the model was trained without weights of edges: those of x.ooc are not used\n"
            expected = f"ooc-infer: warning: {unused}" if run in ("ignore", "bare") else ""
            self.assertEqual(said, expected)
            result = json.loads(
                self.succeed(*infer, run, "-o", f"{run}.npy", "--force", "--json").stdout
            )
            summary = json.loads((self.path / run / "summary.json").read_text())
            self.assertAlmostEqual(result["accuracy"]["valid"], summary["best_valid"], places=6)
        for run in ("auto", "use"):
            self.fail_with(
                3,
                "dataset without weights of edges, the model was trained with them, bare.ooc; "
                "import it with",
                *("ooc-infer", "bare.ooc", "--run", run, "-o", "out.npy"),
            )
        self.succeed("ooc-infer", "bare.ooc", "--run", "ignore", "-o", "without.npy")
        logits = {name: np.load(self.path / f"{name}.npy")
                  for name in ("auto", "use", "ignore", "bare", "without")}  # fmt: skip
        for one, other in (("auto", "use"), ("ignore", "bare"), ("ignore", "without")):
            np.testing.assert_array_equal(logits[one], logits[other])

    def test_a_resumed_run_says_nothing_of_weights_it_is_to_ignore(self):
        options = ("--model", "gat", "--edge-weights", "ignore")
        self.assertEqual(self.train("x.ooc", "run", *options, "--epochs", 2), "")
        resume = ("ooc-train", "--resume", "run", "--epochs", 3, "--quiet")
        self.assertEqual(self.succeed(*resume).stderr, "")

    def test_factors_of_zero_are_said_once(self):
        weights = np.load(self.path / "raw/edge_weights.npy")
        edges = np.load(self.path / "raw/edges.npy")
        weights[(edges == 7).any(axis=1)] = -1
        np.save(self.path / "raw/edge_weights.npy", weights)
        self.imported("negative.ooc")
        for options in ((), ("--rewrites=-hoisting",), ("--runs", 3), ("--input-dropout", 0.5)):
            said = self.train("negative.ooc", "run", "--force", *options)
            self.assertRegex(said, r"\A[^\n]*add up to 0 or less: 1; [^\n]*\n\Z", options)

    def test_sums_of_many_weights_are_exact(self):
        """Of a hub with 300,000 edges; all but one neighbour have features of 0, so that nothing
        but the sums of weights is long."""
        random = np.random.default_rng(4)
        count, vertices = 300_000, 60
        ends = random.integers(2, vertices, count)
        hub = np.zeros(count, int)
        edges = np.concatenate([[[1, 0]], np.stack([ends, hub], 1), np.stack([hub, ends], 1)])
        weights = np.full(len(edges), 0.1, np.float32)
        weights[0] = 30_000  # as much as all others
        x = np.zeros((vertices, 4), np.float32)
        x[0], x[1] = (0, 3, 0, 1), (1, -1, 2, 0)
        raw = self.path / "hub"
        raw.mkdir()
        np.save(raw / "labels.npy", np.arange(vertices) % 3)
        for split in range(3):
            np.save(raw / f"{('train', 'valid', 'test')[split]}_idx.npy", np.arange(split, 60, 3))
        for name, array in (("edges", edges), ("edge_weights", weights), ("features", x)):
            np.save(raw / f"{name}.npy", array)
        self.succeed("ooc-prep", "import", "hub", "-o", "hub.ooc", "--quiet")
        exact = np.zeros((vertices, vertices))  # row: destination
        np.add.at(exact, (edges[:, 1], edges[:, 0]), weights.astype(np.float64))
        looped = exact + np.eye(vertices)
        gcn = looped / np.sqrt(np.outer(looped.sum(axis=1), looped.sum(axis=0)))
        inward = exact.sum(axis=1, keepdims=True)
        mean = exact / np.where(inward == 0, 1, inward)
        for model, by in (("gcn", gcn), ("sage", mean)):
            self.train("hub.ooc", "run", "--model", model, "--layers", 1, "--force")
            self.succeed("ooc-infer", "hub.ooc", "--run", "run", "-o", "hub.npy", "--force",
                         "--what", "logits")  # fmt: skip
            p = {name: array.astype(np.float64)
                 for name, array in parameters(self.path / "run/best.h5").items()}  # fmt: skip
            own = x @ p["layer1.self"] if model == "sage" else 0
            weight = p["layer1.neighbours" if model == "sage" else "layer1.weight"]
            expected = own + by @ (x @ weight) + p["layer1.bias"]
            found = np.load(self.path / "hub.npy")
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-6, atol=1e-6)

    def test_a_plan_has_no_values_of_edges_but_their_weights(self):
        graph = "vertices=1M,edges=20M,features=64,classes=8,train=100K,edge-weights=1"
        for model in ("gcn", "sgc", "resgcn", "sage", "gin", "commnet"):
            with self.subTest(model):
                plan = ("ooc-train", "--plan", "--json", "--graph", graph, "--model", model)
                plan += self.rates_of_a_machine()
                weighted = json.loads(self.succeed(*plan).stdout)
                bare = json.loads(self.succeed(*plan, "--edge-weights", "ignore").stdout)
                passes = [p for part in (weighted["epoch"], weighted.get("once", {}))
                          for section in part.get("sections", ()) for p in section["passes"]
                          if p["kind"] == "propagate"]  # fmt: skip
                self.assertTrue(passes)
                self.assertTrue(any(
                    entry["load"] == "weights" for p in passes for entry in p["edges"]["inputs"]
                ))  # fmt: skip
                for p in passes:
                    self.assertEqual(p["edges"]["steps"], [])
                    self.assertTrue(p["edges"]["slice_local"])
                # The weights lie beside the edges, read or not; factors are a column a vertex.
                more = weighted["bytes_read_per_epoch"] - bare["bytes_read_per_epoch"]
                self.assertLessEqual(abs(more), 0.02 * bare["bytes_read_per_epoch"])

    def test_a_budget_changes_no_bit(self):
        shutil.rmtree(self.path / "raw")
        raw = write_graph(self.path / "raw", vertices=6000, classes=4, features=64, degree=10)
        weights = np.random.default_rng(3).normal(0.5, 0.5, len(np.load(raw / "edges.npy")))
        np.save(raw / "edge_weights.npy", weights.astype(np.float32))
        self.imported("large.ooc", "--block-rows", 256)
        for model in ("gcn", "sage"):
            options = ("--model", model, "--hidden", 64, "--input-dropout", 0.1, "--layers", 3)
            self.train("large.ooc", "whole", *options, "--epochs", 2, "--force")
            start = ("ooc-train", "large.ooc", *options, "--host-memory")
            refused = self.run_program(*start, "1MiB")
            self.assertEqual(refused.returncode, 4)
            least = re.search(r"give (\d+) MiB or more", refused.stderr)[1]
            budget = ("--host-memory", f"{least}MiB", "--force")
            self.train("large.ooc", "small", *options, "--epochs", 2, *budget)
            last = (self.path / "small/metrics.jsonl").read_text().splitlines()[-1]
            self.assertGreater(json.loads(last)["bytes_read"], 1 << 20)
            self.assert_same_bits("small", "whole", epoch=2)


if __name__ == "__main__":
    programs.main()
