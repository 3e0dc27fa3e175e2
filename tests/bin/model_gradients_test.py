"""The gradient of every parameter of every model of ooc, in training, against the complex step
through NumPy's forward passes (model_references.py): Im(loss(p + ih)) / h is the derivative to the
last digit, with no rule of ours and no difference of losses in it."""

import h5py
import model_references
import numpy as np
import programs
from model_references import Reference, awkward_weights
from programs import ProgramTest

VERTICES, FEATURES, CLASSES, TYPES = 20, 5, 3, 3
HIDDEN, LAYERS = 4, 2
ATTENTION = {"heads": 2, "out_heads": 2}
STEP = 1e-30
TOLERANCE = 1e-4
# Epochs before the gradient is looked at, so that no parameter is as it began.
BEFORE = 2


def write_inputs(directory, typed, weighted):
    """Returns features, edges (source, destination), their types and weights, labels and train
    vertices."""
    random = np.random.default_rng(11)
    # The last two vertices have no edge, but one of them three loops; two more none that comes in.
    ends = random.integers(0, VERTICES - 2, (60, 2))
    ends = ends[ends[:, 1] >= 2]
    loops = [[VERTICES - 2, VERTICES - 2]] * 3
    edges = np.concatenate([ends, [[5, 5], [9, 9], [9, 9], [6, 7], [6, 7], [6, 7]], loops])
    types = random.integers(0, TYPES, len(edges)) if typed else np.zeros(len(edges), int)
    x = random.normal(size=(VERTICES, FEATURES)).astype(np.float32)
    labels = random.integers(0, CLASSES, VERTICES)
    order = random.permutation(VERTICES)
    weights = awkward_weights(random, edges) if weighted else None
    directory.mkdir()
    np.save(directory / "edges.npy", edges)
    if typed:
        np.save(directory / "edge_types.npy", types)
    if weighted:
        np.save(directory / "edge_weights.npy", weights)
    np.save(directory / "features.npy", x)
    np.save(directory / "labels.npy", labels)
    for name, part in zip(("train", "valid", "test"), np.split(order, [14, 17])):
        np.save(directory / f"{name}_idx.npy", part)
    return x.astype(np.float64), edges, types, weights, labels, order[:14]


def cross_entropy(logits, labels):
    shifted = logits - logits.real.max(axis=1, keepdims=True)
    chosen = shifted[np.arange(len(labels)), labels]
    return (np.log(np.exp(shifted).sum(axis=1)) - chosen).mean()


def complex_step(loss, parameters, name):
    """d loss(parameters) / d parameters[name]"""
    gradient = np.zeros(parameters[name].shape)
    moved = parameters[name].astype(np.complex128)
    for at in np.ndindex(gradient.shape):
        moved[at] += 1j * STEP
        gradient[at] = loss({**parameters, name: moved}).imag / STEP
        moved[at] = parameters[name][at]
    return gradient


class ModelGradientsTest(ProgramTest):
    def train(self, model, words):
        """The parameters before the last epoch, and the gradients that it found: Adam's first
        moment m becomes 0.9 m + 0.1 gradient."""
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--block-rows", 8, "--quiet")
        self.succeed(
            *("ooc-train", "x.ooc", "--run-dir", "run", "--model", model, "--lr", 0.05),
            *("--epochs", BEFORE + 1, "--checkpoint-every", 1, "--dropout", 0, "--quiet"),
            *("--layers", LAYERS, "--hidden", HIDDEN, *words),
        )
        moments = []
        for epoch in (BEFORE, BEFORE + 1):
            with h5py.File(self.path / f"run/checkpoint-{epoch}.h5") as file:
                group = file["optimizer/m"]
                moments.append({name: np.array(group[name], np.float64) for name in group})
                if epoch == BEFORE:
                    group = file["parameters"]
                    parameters = {name: np.array(group[name], np.float64) for name in group}
        before, after = moments
        return parameters, {name: 10 * (after[name] - 0.9 * before[name]) for name in after}

    def check(self, model, *words, reference=None, typed=False, weighted=False, **options):
        """`words` are for ooc-train, `options` for both."""
        inputs = write_inputs(self.path / "raw", typed, weighted)
        x, edges, types, weights, labels, train = inputs
        for name, value in options.items():
            words += ("--" + name.replace("_", "-"),) + (() if value is True else (value,))
        parameters, gradients = self.train(model, words)
        if "activation" in options:
            options["activation"] = getattr(model_references, options["activation"])

        def loss(values):
            formulas = Reference(
                *(x, edges, types, values),
                weights=weights,
                layers=LAYERS,
                training=True,
                **options,
            )
            logits = getattr(formulas, reference or model)()
            return cross_entropy(logits[train], labels[train])

        self.assertTrue(gradients)
        for name, gradient in sorted(gradients.items()):
            with self.subTest(parameter=name):
                expected = complex_step(loss, parameters, name)
                largest = abs(expected).max()
                self.assertGreater(largest, 1e-4, "nothing to compare")
                self.assertLess(abs(gradient - expected).max() / largest, TOLERANCE)

    def test_gcn(self):
        self.check("gcn")

    def test_gcn_with_batch_norm_residual_and_jumping(self):
        self.check("gcn", norm="batch", residual=True, jumping="cat")

    def test_gcn_with_layer_norm_residual_and_jumping(self):
        self.check("gcn", norm="layer", residual=True, jumping="sum")

    def test_weighted_gcn(self):
        self.check("gcn", weighted=True)

    def test_sgc(self):
        self.check("sgc")

    def test_weighted_sgc(self):
        self.check("sgc", weighted=True)

    def test_resgcn(self):
        self.check("resgcn")

    def test_weighted_resgcn(self):
        self.check("resgcn", weighted=True, norm="layer")

    def test_sage_by_mean(self):
        self.check("sage", reference="sage_mean")

    def test_weighted_sage_by_mean(self):
        self.check("sage", reference="sage_mean", weighted=True, jumping="max")

    def test_weighted_sage_by_sum(self):
        self.check("sage", "--aggr", "sum", reference="sage_sum", weighted=True)

    def test_sage_by_max(self):
        self.check("sage", "--aggr", "max", reference="sage_pool", jumping="max")

    def test_sage_by_sum(self):
        self.check("sage", "--aggr", "sum", reference="sage_sum", norm="layer")

    def test_sage_pool(self):
        self.check("sage_pool", activation="elu")

    def test_gin(self):
        self.check("gin")

    def test_weighted_gin(self):
        self.check("gin", weighted=True)

    def test_gin_with_batch_norm(self):
        self.check("gin", norm="batch", residual=True)

    def test_commnet(self):
        self.check("commnet", norm="batch")

    def test_weighted_commnet(self):
        self.check("commnet", weighted=True)

    def test_mpgcn(self):
        self.check("mpgcn", activation="elu")

    def test_weighted_mpgcn(self):
        self.check("mpgcn", weighted=True, activation="elu")

    def test_ggcn(self):
        self.check("ggcn")

    def test_ggnn(self):
        self.check("ggnn")

    def test_ggnn_with_types_of_edges(self):
        self.check("ggnn", typed=True)

    def test_gat(self):
        self.check("gat", **ATTENTION)

    def test_gat_with_layer_norm_residual_and_jumping(self):
        self.check("gat", norm="layer", residual=True, jumping="cat", activation="elu", **ATTENTION)

    def test_gatv2(self):
        self.check("gatv2", **ATTENTION)

    def test_gatv2_with_batch_norm(self):
        self.check("gatv2", norm="batch", residual=True, heads=3)


if __name__ == "__main__":
    programs.main()
