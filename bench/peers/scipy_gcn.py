#!/usr/bin/python3
"""A two-layer GCN trained with SciPy and NumPy, gradients by hand: what ooc's accuracy is compared
with. It shares no code with ooc.

    bench/peers/scipy_gcn.py GRAPH_DIR --seed 0 [--hidden 16 ...]

Treats edges as `ooc-prep import --undirected` does. Prints one line of JSON: test accuracy at the
best validation epoch, and both.
"""

import argparse
import json
import pathlib

import numpy as np
import scipy.sparse as sparse


def load_array(graph, name):
    return np.load(graph / f"{name}.npy")


def load_features(graph, norm):
    packed = graph / "features.npz"
    x = sparse.load_npz(packed) if packed.exists() else load_array(graph, "features")
    x = sparse.csr_matrix(x, dtype=np.float32)
    if norm == "row":
        sums = np.asarray(abs(x).sum(axis=1)).ravel()
        sums[sums == 0] = 1
        x = sparse.diags(1 / sums) @ x
    return sparse.csr_matrix(x, dtype=np.float32)


def normalised_adjacency(edges, vertices):
    """D^-1/2 (A + I) D^-1/2, after adding each missing reverse edge once."""
    ones = np.ones(len(edges))
    a = sparse.coo_matrix((ones, (edges[:, 1], edges[:, 0])), (vertices, vertices)).tocsr()
    there = (a > 0).astype(np.float64)
    a = a + (there - there.multiply(there.T)).T
    a = a - sparse.diags(a.diagonal()) + sparse.eye(vertices)
    scale = sparse.diags(1 / np.sqrt(np.asarray(a.sum(axis=1)).ravel()))
    return sparse.csr_matrix(scale @ a @ scale, dtype=np.float32)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class Adam:
    def __init__(self, parameters, lr, weight_decay):
        self.parameters, self.lr, self.weight_decay, self.steps = parameters, lr, weight_decay, 0
        self.m = [np.zeros_like(p) for p in parameters]
        self.v = [np.zeros_like(p) for p in parameters]

    def step(self, gradients):
        self.steps += 1
        for p, m, v, g in zip(self.parameters, self.m, self.v, gradients):
            g = g + self.weight_decay * p
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            mean = m / (1 - 0.9**self.steps)
            p -= self.lr * mean / (np.sqrt(v / (1 - 0.999**self.steps)) + 1e-8)


def train(graph, options):
    random = np.random.default_rng(options.seed)
    labels = load_array(graph, "labels")
    splits = [load_array(graph, f"{split}_idx") for split in ("train", "valid", "test")]
    x = load_features(graph, options.feature_norm)
    a = normalised_adjacency(load_array(graph, "edges"), x.shape[0])
    classes = int(labels.max()) + 1

    def glorot(rows, cols):
        bound = np.sqrt(6 / (rows + cols))
        return random.uniform(-bound, bound, (rows, cols)).astype(np.float32)

    w1, b1 = glorot(x.shape[1], options.hidden), np.zeros(options.hidden, np.float32)
    w2, b2 = glorot(options.hidden, classes), np.zeros(classes, np.float32)
    adam = Adam([w1, b1, w2, b2], options.lr, options.weight_decay)
    best = (-1.0, 0.0)
    for _ in range(options.epochs):
        # Dropping an entry that is zero changes nothing, so the mask covers the others only.
        dropped = x.copy()
        keep = random.random(len(x.data)) >= options.input_dropout
        dropped.data = x.data * keep / np.float32(1 - options.input_dropout)
        z = a @ (dropped @ w1) + b1
        mask = (random.random(z.shape) >= options.dropout) / np.float32(1 - options.dropout)
        h = np.maximum(z, 0) * mask
        p = softmax(a @ (h @ w2) + b2)
        gradient = np.zeros_like(p)
        gradient[splits[0]] = p[splits[0]]
        gradient[splits[0], labels[splits[0]]] -= 1
        gradient /= len(splits[0])
        back = a.T @ gradient
        hidden = (back @ w2.T) * mask * (z > 0)
        adam.step([dropped.T @ (a.T @ hidden), hidden.sum(0), h.T @ back, gradient.sum(0)])
        logits = a @ (np.maximum(a @ (x @ w1) + b1, 0) @ w2) + b2
        right = logits.argmax(axis=1) == labels
        best = max(best, (right[splits[1]].mean(), right[splits[2]].mean()), key=lambda b: b[0])
    return {"best_valid": float(best[0]), "test": float(best[1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--input-dropout", type=float, default=0.5)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--feature-norm", choices=["none", "row"], default="row")
    options = parser.parse_args()
    print(json.dumps(train(options.graph, options)))


if __name__ == "__main__":
    main()
