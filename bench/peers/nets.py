"""What both peers' networks have in common: layers in a stack as ooc stacks them, a training step,
and parameters from a checkpoint of ooc. Runs in the peers' virtual environment (worker.py)."""

import numpy as np
import torch
import torch.nn.functional as F

LAYERS = 2
DROPOUT = 0.5
RATE = 0.01


def load_arrays(directory, features=True):
    """What `ooc-prep export` wrote: sources, destinations, features, labels, train vertices."""
    edges = np.load(directory / "edges.npy", mmap_mode="r")
    labels = torch.from_numpy(np.load(directory / "labels.npy"))
    return {
        "vertices": len(labels),
        "classes": int(labels.max()) + 1,
        "source": torch.from_numpy(np.ascontiguousarray(edges[:, 0])),
        "target": torch.from_numpy(np.ascontiguousarray(edges[:, 1])),
        "labels": labels,
        "train": torch.from_numpy(np.load(directory / "train_idx.npy")),
        "features": torch.from_numpy(np.load(directory / "features.npy")) if features else None,
    }


def mlp(columns, out):
    """Of ooc's gin."""
    return torch.nn.Sequential(
        torch.nn.Linear(columns, out, bias=False),
        torch.nn.BatchNorm1d(out),
        torch.nn.ReLU(),
        torch.nn.Linear(out, out),
    )


def mlp_names(perceptron):
    """Its tensors, the names that ooc has for them, and whether ooc holds the transposed matrix."""
    norm = perceptron[1]
    return [
        (perceptron[0].weight, "first", True),
        (norm.weight, "batch_norm.gamma", False),
        (norm.bias, "batch_norm.beta", False),
        (norm.running_mean, "batch_norm.mean", False),
        (norm.running_var, "batch_norm.variance", False),
        (perceptron[3].weight, "second", True),
        (perceptron[3].bias, "bias", False),
    ]


class Net(torch.nn.Module):
    """Layers with ReLU and dropout between them; GIN's has them after every layer, and a linear
    head. `make_layer(columns, out, last)` makes a module that is called with graph and rows and
    has names(), as mlp_names()."""

    def __init__(self, make_layer, columns, hidden, classes, with_head):
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for i in range(LAYERS):
            last = i + 1 == LAYERS and not with_head
            layer = make_layer(columns, classes if last else hidden, last)
            columns = layer.columns
            self.layers.append(layer)
        self.head = torch.nn.Linear(columns, classes) if with_head else None

    def forward(self, graph, x):
        for i, layer in enumerate(self.layers):
            x = layer(graph, x)
            if i + 1 < len(self.layers) or self.head is not None:
                x = F.dropout(torch.relu(x), DROPOUT, self.training)
        return x if self.head is None else self.head(x)

    def names(self):
        for i, layer in enumerate(self.layers):
            for tensor, name, transposed in layer.names():
                yield tensor, f"layer{i + 1}.{name}", transposed
        if self.head is not None:
            yield self.head.weight, "head.weight", True
            yield self.head.bias, "head.bias", False

    def load(self, checkpoint):
        """Every parameter; one that is left over on either side is an error."""
        import h5py

        with h5py.File(checkpoint) as file:
            parameters = {name: np.array(array) for name, array in file["parameters"].items()}
        mine = dict(self.named_parameters())
        with torch.no_grad():
            for tensor, name, transposed in self.names():
                array = parameters.pop(name)
                array = array.T if transposed else array
                tensor.copy_(torch.from_numpy(array).reshape(tensor.shape))
                mine = {key: value for key, value in mine.items() if value is not tensor}
        if mine or parameters:
            raise RuntimeError(f"parameters without a partner: {[*mine, *parameters]}")


class Training:
    """Whole training steps: forward, loss over the train vertices, gradients, Adam."""

    def __init__(self, net, graph, arrays):
        self.net, self.graph, self.features = net, graph, arrays["features"]
        self.train, self.labels = arrays["train"], arrays["labels"][arrays["train"]]
        self.adam = torch.optim.Adam(net.parameters(), RATE)

    def step(self):
        self.adam.zero_grad(set_to_none=True)
        logits = self.net(self.graph, self.features)
        F.cross_entropy(logits[self.train], self.labels).backward()
        self.adam.step()
