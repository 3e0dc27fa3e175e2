"""GraphSAGE on sampled batches with PyG's and DGL's own loaders and layers, in the peers' virtual
environment (sampling_worker.py). Both expand a vertex's in-edges hop by hop without replacement:
PyG once, in the hop after the one that found it, DGL in every hop from then on.

A layer gets the rows that the next one reads, which come first, and their in-edges: what
trim_to_layer does in PyG, and a step less, as only those rows go through the layer's products.
"""

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv

LIST, SPARSE = "edge_index", "SparseTensor"


def load_arrays(directory):
    """What `ooc-prep export` wrote, and the edges by destination (sampling_peers.py's make_csc)."""
    def load(name):
        return torch.from_numpy(np.load(directory / f"{name}.npy"))

    labels = load("labels")
    return {
        **{name: load(name) for name in ("indptr", "indices", "features")},
        **{split: load(f"{split}_idx") for split in ("train", "valid", "test")},
        "labels": labels, "vertices": len(labels), "classes": int(labels.max()) + 1,
    }


class PygLayer(SAGEConv):
    """With parameters as ooc starts them."""

    def __init__(self, columns, out):
        super().__init__(columns, out, aggr="mean")
        start(self.lin_l.weight, self.lin_r.weight, self.lin_l.bias)

    def forward(self, edges, x, rows):
        size = (x.size(0), rows) if isinstance(edges, torch.Tensor) else None
        return super().forward((x, x[:rows]), edges, size)

    def of_sums(self, means, x):
        return self.lin_l(means) + self.lin_r(x)


def dgl_layer(columns, out):
    import dgl

    class Layer(dgl.nn.SAGEConv):
        def __init__(self):
            super().__init__(columns, out, "mean")
            start(self.fc_neigh.weight, self.fc_self.weight, self.fc_self.bias)

        def forward(self, block, x, rows):
            return super().forward(block, (x, x[:rows]))

    return Layer()


def start(neighbours, own, bias):
    with torch.no_grad():
        torch.nn.init.xavier_uniform_(neighbours)
        torch.nn.init.xavier_uniform_(own)
        bias.zero_()


class Net(torch.nn.Module):
    """As ooc stacks them: ReLU and dropout after every layer but the last one."""

    def __init__(self, make_layer, columns, classes, options):
        super().__init__()
        self.dropout, self.input_dropout = options.dropout, options.input_dropout
        widths = [columns, *[options.hidden] * (options.layers - 1), classes]
        self.layers = torch.nn.ModuleList(map(make_layer, widths, widths[1:]))

    def forward(self, batch):
        x = F.dropout(batch.x, self.input_dropout, self.training)
        for i, (layer, (edges, rows)) in enumerate(zip(self.layers, batch.steps)):
            x = layer(edges, x, rows)
            if i + 1 < len(self.layers):
                x = F.dropout(torch.relu(x), self.dropout, self.training)
        return x

    @torch.no_grad()
    def on_all_edges(self, means, x, first):
        """Logits of all vertices; `first`: the means of the features. Of PyG's layers."""
        for i, layer in enumerate(self.layers):
            x = layer.of_sums(means @ x if i else first, x)
            x = torch.relu(x) if i + 1 < len(self.layers) else x
        return x


class Batch:
    """`steps`: the edges of each layer, and how many rows it makes."""

    def __init__(self, x, labels, steps):
        self.x, self.labels, self.steps = x, labels, steps


def hops_of(edges, seeds, hops):
    """How many vertices and edges there are after each hop. Both come hop after hop; with
    torch-sparse PyG doesn't say where one ends."""
    row, col = edges
    vertices, ends = [seeds], [0]
    for _ in range(hops):
        ends.append(int(torch.searchsorted(col, vertices[-1])))
        new = row[ends[-2]:ends[-1]]
        vertices.append(max(vertices[-1], int(new.max()) + 1 if len(new) else 0))
    return vertices, ends


class Pyg:
    make_layer = PygLayer
    versions = {"torch_geometric": torch_geometric.__version__, "torch": torch.__version__}
    # What the edges of a layer are given as.
    kinds = (LIST, SPARSE)

    def __init__(self, arrays, options):
        self.options, degrees = options, arrays["indptr"].diff()
        targets = torch.repeat_interleave(torch.arange(arrays["vertices"]), degrees)
        self.data = Data(x=arrays["features"], y=arrays["labels"],
                         edge_index=torch.stack([arrays["indices"], targets]))
        del arrays["indices"]

    def batches(self, seeds, shuffle=True):
        loader = NeighborLoader(
            self.data, self.options.fanouts, seeds, is_sorted=True, shuffle=shuffle,
            batch_size=self.options.batch_size, num_workers=self.options.workers)
        return map(self.cut, loader)

    def cut(self, batch):
        hops = len(self.options.fanouts)
        vertices, ends = hops_of(batch.edge_index, batch.batch_size, hops)
        steps = []
        for hop in range(hops, 0, -1):
            edges, rows = batch.edge_index[:, :ends[hop]], vertices[hop - 1]
            if self.options.kind == SPARSE:
                from torch_sparse import SparseTensor

                edges = SparseTensor(row=edges[1], col=edges[0], is_sorted=True,
                                     sparse_sizes=(rows, vertices[hop]), trust_data=True)
            steps.append((edges, rows))
        return Batch(batch.x, batch.y[:batch.batch_size], steps)


class Dgl:
    make_layer = staticmethod(dgl_layer)
    kinds = ("blocks",)

    def __init__(self, arrays, options):
        import dgl

        self.options, self.dgl = options, dgl
        self.versions = {"dgl": dgl.__version__, "torch": torch.__version__}
        self.x, self.y = arrays["features"], arrays["labels"]
        edges = (arrays["indptr"], arrays.pop("indices"), torch.empty(0, dtype=torch.int64))
        self.graph = dgl.graph(("csc", edges), num_nodes=arrays["vertices"])

    def batches(self, seeds, shuffle=True):
        sampler = self.dgl.dataloading.NeighborSampler(self.options.fanouts[::-1])
        loader = self.dgl.dataloading.DataLoader(
            self.graph, seeds, sampler, batch_size=self.options.batch_size, shuffle=shuffle,
            num_workers=self.options.workers)
        for sources, outputs, blocks in loader:
            yield Batch(self.x[sources], self.y[outputs],
                        [(block, block.num_dst_nodes()) for block in blocks])


PEERS = {"pyg": Pyg, "dgl": Dgl}


class Training:
    """A network, its optimiser and where its batches come from."""

    def __init__(self, peer, arrays, options):
        columns, classes = arrays["features"].size(1), arrays["classes"]
        self.train = arrays["train"]
        self.batch_size = options.batch_size
        self.peer = PEERS[peer](arrays, options)
        self.net = Net(self.peer.make_layer, columns, classes, options)
        self.adam = torch.optim.Adam(self.net.parameters(), options.lr,
                                     weight_decay=options.weight_decay)

    def epoch(self, batches=None):
        """Trains on so many batches of training vertices drawn at random, or on all; the vertices,
        sampled edges and layers' rows that these had."""
        self.net.train()
        seeds = self.train
        if batches is not None:
            seeds = seeds[torch.randperm(len(seeds))[:batches * self.batch_size]]
        vertices = 0
        for batch in self.peer.batches(seeds):
            self.adam.zero_grad(set_to_none=True)
            F.cross_entropy(self.net(batch), batch.labels).backward()
            self.adam.step()
            vertices += len(batch.x)
        return vertices
