"""DGL's side: its own layers (dgl.nn), over a graph whose formats are made beforehand."""

import dgl
import nets
import torch

MODULES = [dgl, torch]
LOOPS = ("gcn", "gat", "gatv2")


def forms(model):
    """Width of ids, and what is held of the edges: CSR for one direction and CSC for the other.
    Attention also works edge by edge, for which DGL wants COO."""
    held = "COO, CSR and CSC" if model in ("gat", "gatv2") else "CSR and CSC"
    return [f"int32 {held}", f"int64 {held}"]


def make_graph(arrays, model, form):
    graph = dgl.graph((arrays.pop("source"), arrays.pop("target")), num_nodes=arrays["vertices"])
    if model in LOOPS:
        graph = dgl.add_self_loop(dgl.remove_self_loop(graph))
    graph = graph.int() if "int32" in form else graph
    graph = graph.formats(["coo", "csr", "csc"] if "COO" in form else ["csr", "csc"])
    graph.create_formats_()
    return graph


class Layer(torch.nn.Module):
    """GraphConv, SAGEConv or GINConv."""

    def __init__(self, model, columns, out):
        super().__init__()
        self.model, self.columns = model, out
        if model == "gcn":
            self.conv = dgl.nn.GraphConv(columns, out, norm="both", allow_zero_in_degree=True)
        elif model == "sage":
            self.conv = dgl.nn.SAGEConv(columns, out, "mean")
        else:
            self.conv = dgl.nn.GINConv(nets.mlp(columns, out), "sum", learn_eps=True)

    def forward(self, graph, x):
        return self.conv(graph, x)

    def names(self):
        conv = self.conv
        if self.model == "gcn":
            return [(conv.weight, "weight", False), (conv.bias, "bias", False)]
        if self.model == "sage":
            return [(conv.fc_self.weight, "self", True), (conv.fc_neigh.weight, "neighbours", True),
                    (conv.fc_self.bias, "bias", False)]
        return [(conv.eps, "epsilon", False), *nets.mlp_names(conv.apply_func)]


class Attention(torch.nn.Module):
    """GATConv or GATv2Conv, heads side by side; one head in the last layer. GATv2Conv has no bias
    after the sum, so that one is ours."""

    def __init__(self, model, columns, out, heads):
        super().__init__()
        self.columns = heads * out
        self.two = model == "gatv2"
        kind = dgl.nn.GATv2Conv if self.two else dgl.nn.GATConv
        self.conv = kind(columns, out, heads, negative_slope=0.2, allow_zero_in_degree=True)
        self.bias = torch.nn.Parameter(torch.zeros(heads * out)) if self.two else None

    def forward(self, graph, x):
        out = self.conv(graph, x).flatten(1)
        return out + self.bias if self.two else out

    def names(self):
        conv = self.conv
        if self.two:
            return [(conv.fc_src.weight, "source", True), (conv.fc_src.bias, "source_bias", False),
                    (conv.fc_dst.weight, "target", True), (conv.fc_dst.bias, "target_bias", False),
                    (conv.attn, "attention", False), (self.bias, "bias", False)]
        return [(conv.fc.weight, "weight", True), (conv.attn_l, "to_source", False),
                (conv.attn_r, "to_target", False), (conv.bias, "bias", False)]


def make_layer(model, columns, out, heads):
    if model in ("gat", "gatv2"):
        return Attention(model, columns, out, heads)
    return Layer(model, columns, out)


def make_sum(graph, _form):
    """Of every vertex's in-edges."""
    return lambda x: dgl.ops.copy_u_sum(graph, x)
