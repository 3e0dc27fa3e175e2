"""One peer with one model on one graph, in the peers' virtual environment; run.py starts it.

    worker.py forms dgl                               the forms of a graph that the peer tries
    worker.py train pyg gat ARRAYS --form F           a training step, or so many, for each line of
                                                      standard input that says how many
    worker.py sum dgl sum ARRAYS --form F --width W   the same with sums over in-edges
    worker.py logits dgl gcn ARRAYS --form F --checkpoint FILE --logits FILE
                                                      the largest difference from these logits

Answers are lines of JSON. Peaks are of the resident set, without what building took, which is
beside them.
"""

import argparse
import importlib
import json
import os
import pathlib
import re
import sys
import time


MODELS = ("gcn", "sage", "gin", "gat", "gatv2", "sum")


def peak_bytes():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def forget_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def answer(**values):
    print(json.dumps(values), file=ANSWERS, flush=True)


def build(options, arrays):
    """The peer's module, its graph, and the network unless only sums are asked for."""
    import nets

    peer = importlib.import_module(f"{options.peer}_peer")
    graph = peer.make_graph(arrays, options.model, options.form)
    if options.what == "sum":
        return peer, graph, None
    net = nets.Net(
        lambda columns, out, last: peer.make_layer(
            options.model, columns, out, 1 if last else options.heads),
        arrays["features"].size(1), options.hidden, arrays["classes"], options.model == "gin")
    return peer, graph, net


def make_step(options):
    import nets
    import torch

    torch.manual_seed(0)
    arrays = nets.load_arrays(options.arrays, features=options.what == "train")
    peer, graph, net = build(options, arrays)
    if options.what == "train":
        return nets.Training(net, graph, arrays).step
    sums, x = peer.make_sum(graph, options.form), torch.rand(arrays["vertices"], options.width)
    return lambda: sums(x)


def serve(options):
    """The first step warms up."""
    import torch

    step = make_step(options)
    built = peak_bytes()
    forget_peak()
    # Sums are timed without gradients, as ooc's are.
    torch.set_grad_enabled(options.what == "train")
    begin = time.perf_counter()
    step()
    answer(built_peak_bytes=built, peak_bytes=peak_bytes(),
           first_seconds=time.perf_counter() - begin)
    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            step()
        answer(seconds=time.perf_counter() - begin, peak_bytes=peak_bytes())


def compare(options):
    import nets
    import numpy as np
    import torch

    arrays = nets.load_arrays(options.arrays)
    _, graph, net = build(options, arrays)
    net.load(options.checkpoint)
    net.eval()
    with torch.no_grad():
        logits = net(graph, arrays["features"]).numpy()
    ours = np.load(options.logits)
    answer(difference=float(abs(logits - ours).max() / abs(ours).max()))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["forms", "train", "sum", "logits"])
    parser.add_argument("peer", choices=["dgl", "pyg"])
    parser.add_argument("model", nargs="?")
    parser.add_argument("arrays", type=pathlib.Path, nargs="?")
    parser.add_argument("--form")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--width", type=int)
    parser.add_argument("--checkpoint", type=pathlib.Path)
    parser.add_argument("--logits", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = parse()
    import torch

    torch.set_num_threads(options.threads)
    if options.what == "forms":
        peer = importlib.import_module(f"{options.peer}_peer")
        answer(forms={model: peer.forms(model) for model in MODELS},
               versions={module.__name__: module.__version__ for module in peer.MODULES})
    elif options.what == "logits":
        compare(options)
    else:
        serve(options)


if __name__ == "__main__":
    # What libraries print is not an answer.
    ANSWERS = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        main()
    except Exception as error:
        answer(error=f"{type(error).__name__}: {error}".strip().splitlines()[0][:300])
        sys.exit(1)
