"""PyG's side: its own layers (torch_geometric.nn). Edges come in its forms: what is best differs
from model to model. Without torch_sparse two of them are fused: torch's CSR matrix, whose gradient
sorts the edges anew in each step, and EdgeIndex, which keeps them sorted both ways. None of the
layers here takes EdgeIndex fused of itself; fused() lets them."""

import nets
import torch
import torch_geometric
from torch_geometric import nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_remaining_self_loops, scatter, spmm

MODULES = [torch_geometric, torch]
LIST, CSR, INDEX = "edge_index, sorted", "torch.sparse CSR", "EdgeIndex"
LOOPS = ("gcn", "gat", "gatv2")


def forms(model):
    """Attention is fused in none."""
    return [INDEX, LIST] if model in ("gat", "gatv2") else [INDEX, CSR, LIST]


class Graph:
    """Edges and, for gcn, their weights. For fused(): factors of a vertex before and after sums, or
    None."""

    def __init__(self, edges, weight=None, before=None, after=None):
        self.edges, self.weight, self.before, self.after = edges, weight, before, after


def make_index(edges, vertices, model):
    counts = torch.bincount(edges[1], minlength=vertices).clamp(min=1).float().unsqueeze(1)
    edges = torch_geometric.EdgeIndex(
        edges, sparse_size=(vertices, vertices), sort_order="col", is_undirected=True)
    edges.fill_cache_()
    if model == "gcn":
        return Graph(edges, None, counts ** -0.5, counts ** -0.5)
    return Graph(edges, None, None, 1 / counts if model == "sage" else None)


def make_graph(arrays, model, form):
    """Sorted by destination, and the loops added, once."""
    vertices = arrays["vertices"]
    edges = torch.stack([arrays.pop("source"), arrays.pop("target")])
    if model in LOOPS:
        edges, _ = add_remaining_self_loops(edges, num_nodes=vertices)
    order = torch.argsort(edges[1] * vertices + edges[0])
    edges = edges[:, order].contiguous()
    if form == INDEX:
        return make_index(edges, vertices, model)
    weight = None
    if model == "gcn":
        edges, weight = gcn_norm(edges, None, vertices, add_self_loops=False)
    if form == LIST:
        return Graph(edges, weight)
    counts = torch.bincount(edges[1], minlength=vertices)
    starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    values = torch.ones(edges.size(1), device=edges.device) if weight is None else weight
    return Graph(torch.sparse_csr_tensor(starts, edges[0], values, (vertices, vertices)))


def fused(kind):
    """PyG's layer, with its sums or means by EdgeIndex's product."""

    class Fused(kind):
        SUPPORTS_FUSED_EDGE_INDEX = True

        def message_and_aggregate(self, edge_index, x):
            if not isinstance(edge_index, torch_geometric.EdgeIndex):
                return super().message_and_aggregate(edge_index, x)
            x = x[0] if isinstance(x, tuple) else x
            before, after = self.factors
            x = x if before is None else x * before
            x = edge_index.matmul(x, transpose=True)
            return x if after is None else x * after

    Fused.__name__ = f"Fused{kind.__name__}"  # PyG keeps what it generates under this name
    return Fused


class Layer(torch.nn.Module):
    """Of any of the models; one head in an attention's last layer."""

    def __init__(self, model, columns, out, heads):
        super().__init__()
        self.model, self.columns = model, out
        if model == "gcn":
            self.conv = fused(nn.GCNConv)(columns, out, normalize=False)
        elif model == "sage":
            self.conv = fused(nn.SAGEConv)(columns, out, aggr="mean")
        elif model == "gin":
            self.conv = fused(nn.GINConv)(nets.mlp(columns, out), train_eps=True)
        else:
            kind = nn.GATConv if model == "gat" else nn.GATv2Conv
            self.conv = kind(columns, out, heads, negative_slope=0.2, add_self_loops=False)
            self.columns = heads * out

    def forward(self, graph, x):
        self.conv.factors = graph.before, graph.after
        if graph.weight is None:
            return self.conv(x, graph.edges)
        return self.conv(x, graph.edges, graph.weight)

    def names(self):
        conv = self.conv
        if self.model == "gcn":
            return [(conv.lin.weight, "weight", True), (conv.bias, "bias", False)]
        if self.model == "sage":
            return [(conv.lin_l.weight, "neighbours", True), (conv.lin_l.bias, "bias", False),
                    (conv.lin_r.weight, "self", True)]
        if self.model == "gin":
            return [(conv.eps, "epsilon", False), *nets.mlp_names(conv.nn)]
        if self.model == "gat":
            return [(conv.lin.weight, "weight", True), (conv.att_src, "to_source", False),
                    (conv.att_dst, "to_target", False), (conv.bias, "bias", False)]
        return [(conv.lin_l.weight, "source", True), (conv.lin_l.bias, "source_bias", False),
                (conv.lin_r.weight, "target", True), (conv.lin_r.bias, "target_bias", False),
                (conv.att, "attention", False), (conv.bias, "bias", False)]


make_layer = Layer


def make_sum(graph, form):
    """Of every vertex's in-edges."""
    edges = graph.edges
    if form == LIST:
        return lambda x: scatter(x[edges[0]], edges[1], 0, x.size(0), "sum")
    if form == INDEX:
        return lambda x: edges.matmul(x, transpose=True)
    return lambda x: spmm(edges, x, "sum")
