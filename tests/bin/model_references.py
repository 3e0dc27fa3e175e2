"""Forward passes of every model of ooc in NumPy, straight from the papers' formulas. They take
complex parameters too and are analytic in them: what decides looks at real parts alone."""

import functools

import numpy as np


def awkward_weights(random, edges):
    """Some negative, some 0; those of the last three edges, loops of one vertex, add up to 0, those
    into vertex 5 to less. Sums of quarters are exact."""
    weights = random.integers(-3, 12, len(edges)) / 4
    weights[-3:] = 1, -1, 0
    weights[edges[:, 1] == 5] = -0.5
    return weights


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.where(x.real > 0, x, 0)


def leaky_relu(x):
    return np.where(x.real > 0, x, 0.2 * x)


def elu(x):
    return np.where(x.real > 0, x, np.exp(np.where(x.real > 0, 0, x)) - 1)


def larger(a, b):
    return np.where(a.real >= b.real, a, b)


def normalise(x, axis):
    centred = x - x.mean(axis=axis, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=axis, keepdims=True) + 1e-5)


class Reference:
    """The formulas. `parameters` by their names in a checkpoint; `weights` of the edges, None: all
    are 1; `heads` of all layers but the last; `training`: batch norm goes by the batch, not by the
    running statistics. The other options are those of ooc-train. Once a model is computed,
    `outputs` has the rows after each of its layers."""

    def __init__(
        self,
        x,
        edges,
        types,
        parameters,
        *,
        layers,
        weights=None,
        heads=1,
        out_heads=1,
        norm="none",
        residual=False,
        jumping="none",
        activation=relu,
        training=False,
    ):
        self.x, self.parameters, self.layers = x, parameters, layers
        self.heads, self.out_heads = heads, out_heads
        self.norm, self.residual, self.jumping = norm, residual, jumping
        self.activation, self.training = activation, training
        self.vertices = len(x)
        self.source, self.target, self.types = edges[:, 0], edges[:, 1], types
        loops = self.source == self.target
        self.weights = np.ones(len(edges)) if weights is None else weights
        self.adjacency = np.zeros((self.vertices, self.vertices))  # row: destination
        np.add.at(self.adjacency, (self.target, self.source), self.weights)
        with_loops = self.adjacency.copy()
        without = np.setdiff1d(np.arange(self.vertices), self.source[loops])
        with_loops[without, without] = 1
        self.in_degree, self.out_degree = with_loops.sum(axis=1), with_loops.sum(axis=0)
        factors = [np.zeros(self.vertices), np.zeros(self.vertices)]
        for factor, degree in zip(factors, (self.in_degree, self.out_degree)):
            factor[degree > 0] = degree[degree > 0] ** -0.5
        self.normalised = with_loops * np.outer(*factors)
        self.looped = (
            np.concatenate([self.source, without]),
            np.concatenate([self.target, without]),
        )

    def p(self, layer, name):
        return self.parameters[f"layer{layer}.{name}"]

    def bias(self, layer):
        """0 where the batch norm after it has its own."""
        return self.parameters.get(f"layer{layer}.bias", 0)

    def head(self, h, name="head"):
        return h @ self.parameters[f"{name}.weight"] + self.parameters[f"{name}.bias"]

    def batch_norm(self, h, name):
        p = {word: self.parameters[f"{name}.{word}"] for word in ("gamma", "beta")}
        if self.training:
            return normalise(h, 0) * p["gamma"] + p["beta"]
        mean, variance = self.parameters[f"{name}.mean"], self.parameters[f"{name}.variance"]
        return (h - mean) / np.sqrt(variance + 1e-5) * p["gamma"] + p["beta"]

    def layer_norm(self, h, name):
        return normalise(h, 1) * self.parameters[f"{name}.gamma"] + self.parameters[f"{name}.beta"]

    def fold(self, messages, how):
        """Of the in-edges' messages, 0 where there are none."""
        out = np.zeros((self.vertices, messages.shape[1]), messages.dtype)
        for v in range(self.vertices):
            mine = messages[self.target == v]
            if len(mine):
                out[v] = how(mine)
        return out

    def largest(self, messages):
        def how(mine):
            return mine[mine.real.argmax(axis=0), np.arange(mine.shape[1])]

        return self.fold(messages, how)

    def weigh(self, messages):
        return self.weights[:, None] * messages

    def sum(self, messages):
        return self.fold(self.weigh(messages), lambda mine: mine.sum(axis=0))

    def mean(self, messages):
        """0 where the weights add up to 0."""
        degree = self.adjacency.sum(axis=1)
        return self.sum(messages) / np.where(degree == 0, np.inf, degree)[:, None]

    def attend(self, z, score, heads):
        """By score(u, v, head), over the in-edges and the loop; [V, heads, width]."""
        source, target = self.looped
        split = z.reshape(self.vertices, heads, -1)

        def row(v, head):
            mine = source[target == v]
            s = np.array([score(u, v, head) for u in mine])
            weight = np.exp(s - s.real.max())
            return weight / weight.sum() @ split[mine, head]

        return np.array([[row(v, head) for head in range(heads)] for v in range(self.vertices)])

    def finish(self, i, before, h, activation, last):
        """What stands after a layer: residual, norm, activation."""
        if self.residual:
            h = h + before @ self.p(i, "residual.weight")
        if last:
            return h
        if self.norm == "batch":
            h = self.batch_norm(h, f"layer{i}.norm")
        if self.norm == "layer":
            h = self.layer_norm(h, f"layer{i}.norm")
        return activation(h)

    def stack(self, h, layer, head=False, activation=None):
        """`head`: the last layer is a hidden one, and a linear map makes the classes."""
        activation = activation or self.activation
        head = head or self.jumping != "none"
        outputs = []
        for i in range(1, self.layers + 1):
            last = i == self.layers and not head
            h = self.finish(i, h, layer(i, h), activation, last)
            outputs.append(h)
        self.outputs = outputs
        if self.jumping == "sum":
            h = sum(outputs)
        if self.jumping == "max":
            h = functools.reduce(larger, outputs)
        if self.jumping == "cat":
            h = np.concatenate(outputs, axis=1)
        return self.head(h) if head else h

    def gcn(self):
        return self.stack(
            self.x, lambda i, h: self.normalised @ h @ self.p(i, "weight") + self.bias(i)
        )

    def sgc(self):
        return self.head(np.linalg.matrix_power(self.normalised, self.layers) @ self.x)

    def resgcn(self):
        def layer(i, h):
            shortcut = h @ self.p(i, "resize.weight") if i == 1 else h
            return relu(self.normalised @ h @ self.p(i, "weight") + self.bias(i)) + shortcut

        return self.stack(self.x, layer, head=True, activation=lambda h: h)

    def sage(self, gather):
        return self.stack(
            self.x,
            lambda i, h: h @ self.p(i, "self")
            + gather(h[self.source]) @ self.p(i, "neighbours")
            + self.bias(i),
        )

    def sage_mean(self):
        return self.sage(self.mean)

    def sage_sum(self):
        return self.sage(self.sum)

    def sage_pool(self):
        def layer(i, h):
            pooled = self.activation(h @ self.p(i, "pool") + self.p(i, "pool_bias"))[self.source]
            own = h @ self.p(i, "self") + self.bias(i)
            return own + self.largest(pooled) @ self.p(i, "neighbours")

        return self.stack(self.head(self.x, "input"), layer)

    def gin(self):
        def layer(i, h):
            h = (1 + self.p(i, "epsilon")) * h + self.adjacency @ h
            h = self.batch_norm(h @ self.p(i, "first"), f"layer{i}.batch_norm")
            return self.activation(h) @ self.p(i, "second") + self.bias(i)

        return self.stack(self.x, layer, head=True)

    def commnet(self):
        return self.stack(
            self.x,
            lambda i, h: h @ self.p(i, "own") + self.adjacency @ h @ self.p(i, "communication"),
        )

    def mpgcn(self):
        def layer(i, h):
            pooled = self.activation(h @ self.p(i, "pool") + self.p(i, "pool_bias"))
            return self.largest(self.weigh(pooled[self.source])) @ self.p(i, "weight")

        return self.stack(self.head(self.x, "input"), layer, activation=relu)

    def ggcn(self):
        def layer(i, h):
            gates = h[self.target] @ self.p(i, "target_gate")
            gates = sigmoid(gates + h[self.source] @ self.p(i, "source_gate"))
            return self.fold(gates * h[self.source], lambda mine: mine.sum(axis=0)) @ self.p(
                i, "weight"
            )

        return self.stack(self.head(self.x, "input"), layer)

    def ggnn(self):
        h = self.head(self.x, "input")
        message = self.p(1, "message").reshape(h.shape[1], -1, h.shape[1])
        for _ in range(self.layers):
            accum = np.zeros_like(h, np.result_type(h, message))
            for u, v, kind in zip(self.source, self.target, self.types):
                accum[v] += h[u] @ message[:, kind]
            x = np.split(accum @ self.p(1, "message_gates") + self.p(1, "message_bias"), 3, 1)
            s = np.split(h @ self.p(1, "state_gates") + self.p(1, "state_bias"), 3, 1)
            reset, update = sigmoid(x[0] + s[0]), sigmoid(x[1] + s[1])
            h = (1 - update) * np.tanh(x[2] + reset * s[2]) + update * h
        return self.head(h)

    def attention_stack(self, attention):
        def layer(i, h):
            last = i == self.layers and self.jumping == "none"
            out = attention(i, h, self.out_heads if last else self.heads)
            out = out.mean(axis=1) if last else out.reshape(self.vertices, -1)
            return out + self.bias(i)

        return self.stack(self.x, layer)

    def gat(self):
        def layer(i, h, heads):
            z = h @ self.p(i, "weight")
            split = z.reshape(self.vertices, heads, -1)
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
            zs = z.reshape(self.vertices, heads, -1)
            ts = t.reshape(self.vertices, heads, -1)
            return self.attend(z, lambda u, v, k: leaky_relu(zs[u, k] + ts[v, k]) @ a[k], heads)

        return self.attention_stack(layer)
