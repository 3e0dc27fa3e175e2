"""PyG's side of epochs.py: the layers and forms of a graph of bench/peers, all in one process and
in the GPU's memory.

    pyg_worker.py ARRAYS HIDDEN [DEVICE]

Answers the first line of its own accord, then lines of standard input:
  open MODEL   tries the forms of the graph, and keeps the fastest one
  loss FILE    the mean loss over the train vertices without dropout, of a checkpoint's parameters
  step N       mean seconds of N training steps
"""

import gc
import pathlib
import sys
import time

import answers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import nets  # noqa: E402
import pyg_peer  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

TRIED = 3


class Peer:
    """One model at a time."""

    def __init__(self, directory, hidden, device):
        self.hidden, self.device = hidden, device
        self.arrays = {name: value.to(device) if torch.is_tensor(value) else value
                       for name, value in nets.load_arrays(directory).items()}
        self.net, self.graph, self.training = None, None, None

    def facts(self):
        return {"versions": {module.__name__: module.__version__ for module in pyg_peer.MODULES},
                "device": self.device}

    def build(self, model, form):
        torch.manual_seed(0)
        self.graph = pyg_peer.make_graph(dict(self.arrays), model, form)
        self.net = nets.Net(
            lambda columns, out, last: pyg_peer.make_layer(model, columns, out, 1),
            self.arrays["features"].size(1), self.hidden, self.arrays["classes"], False)
        self.net.to(self.device)
        self.training = nets.Training(self.net, self.graph, self.arrays)

    def drop(self):
        self.net = self.graph = self.training = None
        gc.collect()
        if self.device != "cpu":
            torch.cuda.empty_cache()

    def try_form(self, model, form):
        try:
            self.build(model, form)
            self.step(1)
            return {"seconds": min(self.step(1) for _ in range(TRIED)),
                    "peak_device_bytes": self.peak()}
        except Exception as error:  # one form that fails is one fewer
            said = str(error).strip().splitlines() or [type(error).__name__]
            return {"error": said[0][:200]}
        finally:
            self.drop()

    def open(self, model):
        self.drop()
        tried = {form: self.try_form(model, form) for form in pyg_peer.forms(model)}
        good = {form: reply for form, reply in tried.items() if "error" not in reply}
        if not good:
            return {"error": f"no form of the graph works: {tried}"}
        best = min(good, key=lambda form: good[form]["seconds"])
        self.build(model, best)
        self.step(1)
        return {"form": best, "tried": tried, **good[best]}

    def peak(self):
        if self.device == "cpu":
            return 0
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return peak

    def wait(self):
        if self.device != "cpu":
            torch.cuda.synchronize()

    def step(self, count):
        self.wait()
        begin = time.perf_counter()
        for _ in range(count):
            self.training.step()
        self.wait()
        return (time.perf_counter() - begin) / count

    def loss(self, checkpoint):
        """Training goes on from there."""
        self.net.load(checkpoint)
        self.net.eval()
        with torch.no_grad():
            logits = self.net(self.graph, self.arrays["features"])[self.training.train]
            loss = F.cross_entropy(logits, self.training.labels)
        self.net.train()
        return float(loss)


def serve():
    directory, hidden = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    peer = Peer(directory, hidden, sys.argv[3] if len(sys.argv) > 3 else "cuda")
    yield peer.facts()
    for line in sys.stdin:
        what, argument = line.split(maxsplit=1)
        if what == "open":
            yield peer.open(argument.strip())
        elif what == "loss":
            yield {"loss": peer.loss(argument.strip())}
        else:
            yield {"seconds": peer.step(int(argument))}


if __name__ == "__main__":
    answers.give(serve())
