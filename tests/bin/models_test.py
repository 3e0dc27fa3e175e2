"""Every model of ooc against NumPy in double, straight from the papers' formulas: the logits of a
trained model on a directed graph with isolated vertices, self loops and parallel edges."""

import h5py
import numpy as np
import programs
from programs import ProgramTest

VERTICES, FEATURES, CLASSES, TYPES = 40, 7, 3, 3
HIDDEN, LAYERS, HEADS, OUT_HEADS = 6, 3, 4, 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


def leaky_relu(x):
    return np.where(x > 0, x, 0.2 * x)


def write_inputs(directory):
    """Returns features, edges (source, destination) and their types."""
    random = np.random.default_rng(5)
    # The last four vertices have no edge, four more none that comes in.
    ends = random.integers(0, VERTICES - 4, (150, 2))
    ends = ends[ends[:, 1] >= 4]
    edges = np.concatenate([ends, [[5, 5], [9, 9], [9, 9], [6, 7], [6, 7], [6, 7]]])
    types = random.integers(0, TYPES, len(edges))
    x = random.normal(size=(VERTICES, FEATURES)).astype(np.float32)
    order = random.permutation(VERTICES)
    directory.mkdir()
    np.save(directory / "edges.npy", edges)
    np.save(directory / "edge_types.npy", types)
    np.save(directory / "features.npy", x)
    np.save(directory / "labels.npy", np.arange(VERTICES) % CLASSES)
    for name, part in zip(("train", "valid", "test"), np.split(order, [20, 30])):
        np.save(directory / f"{name}_idx.npy", part)
    return x.astype(np.float64), edges, types


class Reference:
    """The formulas. `p` gives a layer's parameters by name."""

    def __init__(self, x, edges, types, parameters, heads):
        self.x, self.parameters, self.heads = x, parameters, heads
        self.source, self.target, self.types = edges[:, 0], edges[:, 1], types
        loops = self.source == self.target
        self.adjacency = np.zeros((VERTICES, VERTICES))  # row: destination
        np.add.at(self.adjacency, (self.target, self.source), 1)
        with_loops = self.adjacency.copy()
        np.fill_diagonal(with_loops, 1)
        in_degree, out_degree = with_loops.sum(axis=1), with_loops.sum(axis=0)
        self.normalised = with_loops / np.sqrt(np.outer(in_degree, out_degree))
        without = np.setdiff1d(np.arange(VERTICES), self.source[loops])
        self.looped = (
            np.concatenate([self.source, without]),
            np.concatenate([self.target, without]),
        )

    def p(self, layer, name):
        return self.parameters[f"layer{layer}.{name}"]

    def head(self, h, name="head"):
        return h @ self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"]

    def largest(self, messages):
        """Of the in-edges' messages, 0 where there are none."""
        out = np.zeros((VERTICES, messages.shape[1]))
        for v in range(VERTICES):
            mine = messages[self.target == v]
            if len(mine):
                out[v] = mine.max(axis=0)
        return out

    def mean(self, messages):
        out = np.zeros((VERTICES, messages.shape[1]))
        for v in range(VERTICES):
            mine = messages[self.target == v]
            if len(mine):
                out[v] = mine.mean(axis=0)
        return out

    def attend(self, z, score, heads):
        """score(u, v, head) over the in-edges and the loop; heads side by side."""
        source, target = self.looped
        width = z.shape[1] // heads
        out = np.zeros((VERTICES, heads, width))
        for v in range(VERTICES):
            mine = source[target == v]
            for head in range(heads):
                s = np.array([score(u, v, head) for u in mine])
                weight = np.exp(s - s.max())
                weight /= weight.sum()
                columns = slice(head * width, (head + 1) * width)
                out[v, head] = weight @ z[mine][:, columns]
        return out

    def stack(self, h, layer):
        for i in range(1, LAYERS + 1):
            h = layer(i, h) if i == LAYERS else relu(layer(i, h))
        return h

    def gcn(self):
        return self.stack(
            self.x, lambda i, h: self.normalised @ h @ self.p(i, "weight") + self.p(i, "bias")
        )

    def sgc(self):
        return self.head(np.linalg.matrix_power(self.normalised, LAYERS) @ self.x)

    def resgcn(self):
        h = self.x
        for i in range(1, LAYERS + 1):
            shortcut = h @ self.p(i, "resize.weight") if i == 1 else h
            h = relu(self.normalised @ h @ self.p(i, "weight") + self.p(i, "bias")) + shortcut
        return self.head(h)

    def sage(self, gather):
        return self.stack(
            self.x,
            lambda i, h: h @ self.p(i, "self")
            + gather(h[self.source]) @ self.p(i, "neighbours")
            + self.p(i, "bias"),
        )

    def sage_mean(self):
        return self.sage(self.mean)

    def sage_max(self):
        return self.sage(self.largest)

    def sage_sum(self):
        return self.sage(lambda messages: self.mean(messages) * self.adjacency.sum(1)[:, None])

    def sage_pool(self):
        def layer(i, h):
            pooled = relu(h @ self.p(i, "pool") + self.p(i, "pool_bias"))[self.source]
            own = h @ self.p(i, "self") + self.p(i, "bias")
            return own + self.largest(pooled) @ self.p(i, "neighbours")

        return self.stack(self.head(self.x, "input"), layer)

    def gin(self):
        def layer(i, h):
            h = (1 + self.p(i, "epsilon")) * h + self.adjacency @ h
            h = h @ self.p(i, "first")
            norm = {name: self.p(i, f"batch_norm.{name}") for name in ("mean", "variance")}
            h = (h - norm["mean"]) / np.sqrt(norm["variance"] + 1e-5)
            h = h * self.p(i, "batch_norm.gamma") + self.p(i, "batch_norm.beta")
            return relu(relu(h) @ self.p(i, "second") + self.p(i, "bias"))

        h = self.x
        for i in range(1, LAYERS + 1):
            h = layer(i, h)
        return self.head(h)

    def commnet(self):
        return self.stack(
            self.x,
            lambda i, h: h @ self.p(i, "own") + self.adjacency @ h @ self.p(i, "communication"),
        )

    def mpgcn(self):
        def layer(i, h):
            pooled = relu(h @ self.p(i, "pool") + self.p(i, "pool_bias"))
            return self.largest(pooled[self.source]) @ self.p(i, "weight")

        return self.stack(self.head(self.x, "input"), layer)

    def ggcn(self):
        def layer(i, h):
            accum = np.zeros_like(h)
            for u, v in zip(self.source, self.target):
                gate = sigmoid(h[v] @ self.p(i, "target_gate") + h[u] @ self.p(i, "source_gate"))
                accum[v] += gate * h[u]
            return accum @ self.p(i, "weight")

        return self.stack(self.head(self.x, "input"), layer)

    def ggnn(self):
        h = self.head(self.x, "input")
        message = self.p(1, "message").reshape(HIDDEN, -1, HIDDEN)
        for _ in range(LAYERS):
            accum = np.zeros_like(h)
            for u, v, kind in zip(self.source, self.target, self.types):
                accum[v] += h[u] @ message[:, kind]
            x = np.split(accum @ self.p(1, "message_gates") + self.p(1, "message_bias"), 3, 1)
            s = np.split(h @ self.p(1, "state_gates") + self.p(1, "state_bias"), 3, 1)
            reset, update = sigmoid(x[0] + s[0]), sigmoid(x[1] + s[1])
            h = (1 - update) * np.tanh(x[2] + reset * s[2]) + update * h
        return self.head(h)

    def attention_stack(self, layer):
        h = self.x
        for i in range(1, LAYERS + 1):
            last = i == LAYERS
            out = layer(i, h, OUT_HEADS if last else self.heads)
            h = out.mean(axis=1) if last else out.reshape(VERTICES, -1)
            h = h + self.p(i, "bias")
            h = h if last else relu(h)
        return h

    def gat(self):
        def layer(i, h, heads):
            z = h @ self.p(i, "weight")
            split = z.reshape(VERTICES, heads, -1)
            a_source = self.p(i, "to_source").reshape(heads, -1)
            a_target = self.p(i, "to_target").reshape(heads, -1)
            return self.attend(
                z,
                lambda u, v, k: leaky_relu(split[u, k] @ a_source[k] + split[v, k] @ a_target[k]),
                heads,
            )

        return self.attention_stack(layer)

    def gatv2(self):
        def layer(i, h, heads):
            z = h @ self.p(i, "source") + self.p(i, "source_bias")
            t = h @ self.p(i, "target") + self.p(i, "target_bias")
            a = self.p(i, "attention").reshape(heads, -1)
            zs, ts = z.reshape(VERTICES, heads, -1), t.reshape(VERTICES, heads, -1)
            return self.attend(z, lambda u, v, k: leaky_relu(zs[u, k] + ts[v, k]) @ a[k], heads)

        return self.attention_stack(layer)


class ModelsTest(ProgramTest):
    def check(self, model, *options, reference=None, typed=False):
        x, edges, types = write_inputs(self.path / "raw")
        if not typed:
            (self.path / "raw/edge_types.npy").unlink()
            types = np.zeros_like(types)
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet")
        self.succeed(
            *("ooc-train", "x.ooc", "--run-dir", "run", "--model", model, "--epochs", 3),
            *("--lr", 0.05, "--layers", LAYERS, "--hidden", HIDDEN, "--quiet", *options),
        )
        checkpoint = ("--checkpoint", "run/checkpoint-3.h5")
        self.succeed("ooc-infer", "x.ooc", *checkpoint, "-o", "out.npy", "--what", "logits")
        with h5py.File(self.path / "run/checkpoint-3.h5") as file:
            parameters = {
                name: np.array(array, dtype=np.float64)
                for name, array in file["parameters"].items()
            }
        self.assertGreater(max(abs(array).max() for array in parameters.values()), 0.05)
        reference = reference or model
        expected = getattr(Reference(x, edges, types, parameters, HEADS), reference)()
        logits = np.load(self.path / "out.npy")
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4 * abs(expected).max())

    def test_gcn(self):
        self.check("gcn")

    def test_sgc(self):
        self.check("sgc")

    def test_resgcn(self):
        self.check("resgcn")

    def test_sage_by_mean(self):
        self.check("sage", reference="sage_mean")

    def test_sage_by_max(self):
        self.check("sage", "--aggr", "max", reference="sage_max")

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
