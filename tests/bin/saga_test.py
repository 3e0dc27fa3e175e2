"""Programs of a user's own, from files, through the real programs."""

import json
import math
import os
import pathlib
import shutil

import h5py
import numpy as np
import programs
from programs import ProgramTest

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "programs"
VERTICES, FEATURES, CLASSES, EDGE_FEATURES = 30, 6, 3, 4


def leaky_relu(x, slope):
    return np.where(x > 0, x, slope * x)


def gelu(x):
    erf = np.vectorize(math.erf)
    return x * (1 + erf(x / np.sqrt(2))) / 2


class SagaTest(ProgramTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        edges = random.integers(0, VERTICES - 3, (90, 2))
        self.edges = np.concatenate([edges, [[2, 2], [4, 5], [4, 5]]])
        self.weights = random.random(len(self.edges)).astype(np.float32)
        self.edge_features = random.normal(size=(len(self.edges), EDGE_FEATURES)).astype(np.float32)
        self.x = random.normal(size=(VERTICES, FEATURES)).astype(np.float32)
        raw = self.path / "raw"
        raw.mkdir()
        np.save(raw / "edges.npy", self.edges)
        np.save(raw / "edge_weights.npy", self.weights)
        np.save(raw / "edge_features.npy", self.edge_features)
        np.save(raw / "features.npy", self.x)
        np.save(raw / "labels.npy", np.arange(VERTICES) % CLASSES)
        for name, part in zip(("train", "valid", "test"), np.split(random.permutation(30), 3)):
            np.save(raw / f"{name}_idx.npy", part)
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet")

    def copy(self, name, text=None):
        target = self.path / name
        if text is None:
            shutil.copy(PROGRAMS / name, target)
        else:
            target.write_text(text)
        return f"./{name}"

    def train(self, *options):
        self.succeed(
            *("ooc-train", "x.ooc", "--run-dir", "run", "--epochs", 4, "--hidden", 5, "--quiet"),
            *options,
        )

    def logits(self):
        self.succeed(
            *("ooc-infer", "x.ooc", "--checkpoint", "run/checkpoint-4.h5", "-o", "out.npy"),
            *("--what", "logits", "--force", "--quiet"),
        )
        return np.load(self.path / "out.npy")

    def parameters(self):
        with h5py.File(self.path / "run/checkpoint-4.h5") as file:
            return {name: np.array(a, dtype=np.float64) for name, a in file["parameters"].items()}

    def test_attention_by_dot_products(self):
        program = self.copy("dot_attention.saga")
        self.train("--model", program, "--heads", 2, "--out-heads", 3)
        p = self.parameters()
        source, target = self.edges.T
        h = self.x.astype(np.float64)
        for layer, heads in ((1, 2), (2, 3)):
            q, k, content = (
                (h @ p[f"layer{layer}.{name}"]).reshape(VERTICES, heads, -1)
                for name in ("query", "key", "content")
            )
            out = np.zeros_like(content)
            for v in range(VERTICES):
                mine = source[target == v]
                mine = mine if v in mine else np.append(mine, v)
                for head in range(heads):
                    score = np.exp(k[mine, head] @ q[v, head] / np.sqrt(content.shape[2]))
                    out[v, head] = score @ content[mine, head] / score.sum()
            bias = p[f"layer{layer}.bias"]
            h = out.mean(axis=1) + bias if layer == 2 else out.reshape(VERTICES, -1) + bias
            h = h if layer == 2 else np.maximum(h, 0)
        np.testing.assert_allclose(self.logits(), h, rtol=1e-4, atol=1e-4)

    def test_filters_of_two_kinds_of_layers(self):
        self.train("--model", self.copy("filters.saga"))
        p = self.parameters()
        source, target = self.edges.T
        h, outputs = self.x.astype(np.float64), []
        for layer in (1, 2):
            own = {name: p[f"layer{layer}.{name}"] for name in ("filter", "filter_bias", "self")}
            message = self.edge_features @ own["filter"] + own["filter_bias"]
            message = self.weights[:, None] * message * h[source]
            mean = np.zeros_like(h)
            for v in set(target):
                mean[v] = message[target == v].mean(axis=0)
            h = h @ own["self"] + mean @ p[f"layer{layer}.weight"] - p[f"layer{layer}.bias"]
            h = gelu(h)
            outputs.append(h)
        message = leaky_relu(h[source] - h[target], 0.3)
        least = np.zeros_like(h)
        for v in set(target):
            least[v] = message[target == v].min(axis=0)
        both = np.concatenate([h, least], axis=1) @ p["layer3.weight"]
        outputs.append(np.maximum(both, p["layer3.floor"] * both))
        expected = np.concatenate(outputs, axis=1) @ p["head.weight"] + p["head.bias"]
        np.testing.assert_allclose(self.logits(), expected, rtol=1e-4, atol=1e-4)

    def test_a_wrong_program_names_line_column_expected_and_found(self):
        right = (PROGRAMS / "wrong.saga").read_text()
        wrongs = [
            (
                "gather sum",
                "gather average",
                "5:10: expected sum, mean, max, min, aggr or softmax(...), found average; "
                "ooc-inspect --model gcn prints a program that is right",
            ),
            (
                "accum + bias)",
                "accum + bias",
                "6:36: expected an operator or ), found }; "
                "ooc-inspect --model gcn prints a program that is right",
            ),
            (
                "src @ weight",
                "src @ wieght",
                "4:25: expected a name that is known here, found wieght; did you mean weight?",
            ),
            (
                "weight[in, out]",
                "weight[out, in]",
                f"4:25: expected a parameter of {FEATURES} rows right of @, found weight [128, "
                f"{FEATURES}]; left of @ stands {FEATURES} columns",
            ),
            (
                "accum + bias",
                "accum + src",
                "6:31: expected vertex or accum here, found src; "
                "the other end is seen from the other block",
            ),
        ]
        for old, new, message in wrongs:
            program = self.copy("mine.saga", right.replace(old, new))
            result = self.run_program("ooc-train", "x.ooc", "--model", program, "--run-dir", "run")
            self.assertEqual(result.returncode, 2)
            self.assertEqual(result.stderr, f"ooc-train: error: mine.saga:{message}\n")
            self.assertEqual(result.stdout, "")
            self.assertFalse((self.path / "run").exists())
        program = self.copy("mine.saga", right)
        self.succeed("ooc-train", "x.ooc", "--model", program, "--run-dir", "run", "--epochs", 1)

    def test_what_names_no_program_is_refused(self):
        train = ("ooc-train", "x.ooc", "--model")
        self.fail_with(
            2, r"unknown model, gnc; did you mean gcn\? --model takes .*gat.*", *train, "gnc"
        )
        self.fail_with(2, r"no such program, \./none\.saga; ", *train, "./none.saga")
        self.fail_with(2, r"no such program, raw/; |no such program, \./raw; ", *train, "./raw")
        self.copy("empty.saga", "")
        self.fail_with(
            2, r"empty\.saga:1:1: expected layer, found the end", *train, "./empty.saga"
        )

    def test_a_dataset_without_what_the_program_reads_is_refused(self):
        for name in ("edge_features", "edge_weights"):
            (self.path / f"raw/{name}.npy").unlink()
        self.succeed("ooc-prep", "import", "raw", "-o", "bare.ooc", "--quiet")
        self.fail_with(
            3,
            r"filters\.saga:5:19: the program reads data\.weight, the dataset's edges have no "
            r"weights; ",
            *("ooc-train", "bare.ooc", "--model", self.copy("filters.saga")),
        )

    def test_a_run_keeps_its_program(self):
        self.train("--model", self.copy("filters.saga"), "--epochs", 2, "--checkpoint-every", 1)
        self.assertEqual(
            (self.path / "run/program.saga").read_text(), (PROGRAMS / "filters.saga").read_text()
        )
        (self.path / "filters.saga").unlink()
        self.succeed("ooc-train", "--resume", "run", "--epochs", 4)
        self.assertEqual(self.logits().shape, (VERTICES, CLASSES))
        self.copy("filters.saga", "layer other(in, out) { vertex { return vertex } }")
        self.succeed("ooc-train", "--resume", "run", "--epochs", 6)
        self.train("--model", self.copy("filters.saga"), "--force")

    def test_a_run_is_named_after_its_program(self):
        self.succeed(
            *("ooc-train", "x.ooc", "--epochs", 1, "--hidden", 5),
            *("--model", self.copy("filters.saga")),
        )
        (name,) = os.listdir(self.path / "runs")
        self.assertRegex(name, r"\Ax-filters-\d{8}-\d{6}\Z")

    def test_inspect_shows_what_a_program_becomes(self):
        widths = ("--features", 50, "--hidden", 16)
        text = self.succeed("ooc-inspect", "--model", "gcn", *widths).stdout
        self.assertIn("layer gcn(in, out) {", text)
        self.assertIn("50 x 16", text)
        program = self.copy("filters.saga")
        shown = json.loads(self.succeed("ooc-inspect", "--model", program, "--json").stdout)
        self.assertEqual(shown["program"], (PROGRAMS / "filters.saga").read_text())
        self.assertIn("layer3.floor", shown["parameters"])
        self.assertEqual(shown["steps"][-1]["name"], "stages")
        self.assertTrue(shown["steps"][-1]["lines"])
        self.fail_with(
            2, "more than one thing to inspect", "ooc-inspect", "x.ooc", "--model", "gcn"
        )


if __name__ == "__main__":
    programs.main()
