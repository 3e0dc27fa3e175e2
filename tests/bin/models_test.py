"""Every model of ooc against NumPy in double (model_references.py): the logits of a trained model
on a directed graph with isolated vertices, self loops and parallel edges."""

import shutil

import h5py
import numpy as np
import programs
from model_references import Reference, awkward_weights
from programs import ProgramTest

VERTICES, FEATURES, CLASSES, TYPES = 40, 7, 3, 3
HIDDEN, LAYERS, HEADS, OUT_HEADS = 6, 3, 4, 2


def write_inputs(directory):
    """Returns features, edges (source, destination), their types and weights."""
    random = np.random.default_rng(5)
    # The last four vertices have no edge, but one has three loops; four more none that comes in.
    ends = random.integers(0, VERTICES - 4, (150, 2))
    ends = ends[ends[:, 1] >= 4]
    loops = [[VERTICES - 2, VERTICES - 2]] * 3
    edges = np.concatenate([ends, [[5, 5], [9, 9], [9, 9], [6, 7], [6, 7], [6, 7]], loops])
    types = random.integers(0, TYPES, len(edges))
    x = random.normal(size=(VERTICES, FEATURES)).astype(np.float32)
    order = random.permutation(VERTICES)
    weights = awkward_weights(random, edges)
    directory.mkdir()
    np.save(directory / "edges.npy", edges)
    np.save(directory / "edge_types.npy", types)
    np.save(directory / "features.npy", x)
    np.save(directory / "labels.npy", np.arange(VERTICES) % CLASSES)
    for name, part in zip(("train", "valid", "test"), np.split(order, [20, 30])):
        np.save(directory / f"{name}_idx.npy", part)
    return x.astype(np.float64), edges, types, weights


class ModelsTest(ProgramTest):
    def check(self, model, *options, reference=None, typed=False, weighted=False, how=None):
        """Returns the reference, and what ooc-train says on stderr."""
        x, edges, types, weights = write_inputs(self.path / "raw")
        if not typed:
            (self.path / "raw/edge_types.npy").unlink()
            types = np.zeros_like(types)
        if weighted:
            np.save(self.path / "raw/edge_weights.npy", weights)
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet")
        said = self.succeed(
            *("ooc-train", "x.ooc", "--run-dir", "run", "--model", model, "--epochs", 3),
            *("--lr", 0.05, "--layers", LAYERS, "--hidden", HIDDEN, "--quiet", *options),
        ).stderr
        checkpoint = ("--checkpoint", "run/checkpoint-3.h5")
        self.succeed("ooc-infer", "x.ooc", *checkpoint, "-o", "out.npy", "--what", "logits")
        with h5py.File(self.path / "run/checkpoint-3.h5") as file:
            parameters = {
                name: np.array(array, dtype=np.float64)
                for name, array in file["parameters"].items()
            }
        self.assertGreater(max(abs(array).max() for array in parameters.values()), 0.05)
        formulas = Reference(
            *(x, edges, types, parameters),
            weights=weights if weighted else None,
            layers=LAYERS,
            heads=HEADS,
            out_heads=OUT_HEADS,
            **(how or {}),
        )
        expected = getattr(formulas, reference or model)()
        logits = np.load(self.path / "out.npy")
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())
        return formulas, said

    def check_layers(self, formulas):
        """The rows after each layer of the model that check() trained, written as its last ones."""
        infer = ("ooc-infer", "x.ooc", "--checkpoint", "run/checkpoint-3.h5")
        infer += ("--what", "embeddings")
        self.succeed(*infer, "--layer", "all", "-o", "rows.npy")
        for i, expected in enumerate(formulas.outputs, 1):
            found = np.load(self.path / f"rows.layer{i}.npy")
            self.assertEqual(found.dtype, np.float32)
            scale = abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * scale)
            self.succeed(*infer, "--layer", i, "-o", "one.npy", "--force")
            one = np.load(self.path / "one.npy")
            np.testing.assert_allclose(one, found, rtol=1e-5, atol=1e-5 * scale)
        self.assertFalse((self.path / f"rows.layer{len(formulas.outputs) + 1}.npy").exists())
        self.fail_with(2, f"--layer {LAYERS + 1}, the layers of the model are {LAYERS}; give 1 to "
                       f"{LAYERS}, or all", *infer, "--layer", LAYERS + 1, "-o", "none.npy")

    def test_rows_after_each_layer(self):
        cases = [
            ("gcn", ("--norm", "layer", "--residual"), {"norm": "layer", "residual": True}),
            ("sage", ("--jumping", "cat"), {"jumping": "cat"}),
            ("gat", ("--heads", HEADS, "--out-heads", OUT_HEADS), {}),
        ]
        for model, options, how in cases:
            with self.subTest(model):
                reference = "sage_mean" if model == "sage" else model
                formulas, _ = self.check(model, *options, reference=reference, how=how)
                self.check_layers(formulas)
                for name in ("raw", "x.ooc", "run"):
                    shutil.rmtree(self.path / name)
                for path in self.path.glob("*.npy"):
                    path.unlink()

    def check_roots(self, model):
        """Weighted, of a model that takes roots of sums of weights: it says where these are 0."""
        formulas, said = self.check(model, weighted=True)
        zeros = int(((formulas.in_degree <= 0) | (formulas.out_degree <= 0)).sum())
        self.assertGreater(zeros, 0)
        self.assertEqual(
            said,
            "ooc-train: warning: vertices where the weights of in-edges or of out-edges add up to "
            f"0 or less: {zeros}; the factors of their degrees are 0\n",
        )

    def test_gcn(self):
        self.check("gcn")

    def test_sgc(self):
        self.check("sgc")

    def test_resgcn(self):
        self.check("resgcn")

    def test_weighted_gcn(self):
        self.check_roots("gcn")

    def test_weighted_sgc(self):
        self.check_roots("sgc")

    def test_weighted_resgcn(self):
        self.check_roots("resgcn")

    def test_weighted_models_without_roots(self):
        cases = [
            ("sage", (), "sage_mean"),
            ("sage", ("--aggr", "sum"), "sage_sum"),
            ("gin", (), "gin"),
            ("commnet", (), "commnet"),
            ("mpgcn", (), "mpgcn"),
        ]
        for model, options, reference in cases:
            with self.subTest(reference):
                _, said = self.check(model, *options, reference=reference, weighted=True)
                self.assertEqual(said, "")
                for name in ("raw", "x.ooc", "run"):
                    shutil.rmtree(self.path / name)
                (self.path / "out.npy").unlink()

    def test_sage_by_mean(self):
        self.check("sage", reference="sage_mean")

    def test_sage_by_max(self):
        self.check("sage", "--aggr", "max", reference="sage_pool")

    def test_sage_by_sum(self):
        self.check("sage", "--aggr", "sum", reference="sage_sum")

    def test_sage_pool(self):
        self.check("sage_pool")

    def test_gin(self):
        self.check("gin")

    def test_commnet(self):
        self.check("commnet")

    def test_mpgcn(self):
        self.check("mpgcn")

    def test_ggcn(self):
        self.check("ggcn")

    def test_ggnn(self):
        self.check("ggnn")

    def test_ggnn_with_types_of_edges(self):
        self.check("ggnn", typed=True)

    def test_types_the_model_has_not_seen_are_refused(self):
        self.check("ggnn", typed=True)
        types = np.load(self.path / "raw/edge_types.npy")
        types[0] = TYPES
        np.save(self.path / "raw/edge_types.npy", types)
        self.succeed("ooc-prep", "import", "raw", "-o", "more.ooc", "--quiet")
        self.fail_with(
            3,
            "dataset has 4 types of edges, the model was trained on 3, more.ooc; ",
            *("ooc-infer", "more.ooc", "--run", "run", "-o", "more.npy"),
        )
        types[:] = 0
        np.save(self.path / "raw/edge_types.npy", types)
        self.succeed("ooc-prep", "import", "raw", "-o", "fewer.ooc", "--quiet")
        self.succeed("ooc-infer", "fewer.ooc", "--run", "run", "-o", "fewer.npy")

    def test_gat(self):
        self.check("gat", "--heads", HEADS, "--out-heads", OUT_HEADS)

    def test_gat_with_attention_dropout(self):
        self.check(
            *("gat", "--heads", HEADS, "--out-heads", OUT_HEADS, "--attn-dropout", 0.3),
            reference="gat",
        )

    def test_gatv2(self):
        self.check("gatv2", "--heads", HEADS, "--out-heads", OUT_HEADS)


if __name__ == "__main__":
    programs.main()
