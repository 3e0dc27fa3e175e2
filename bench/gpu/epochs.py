"""Training steps beside PyG on the same GPU, full batch, in turns; first the same loss from the
same parameters."""

import json
import statistics
import sys
import types

import processes
import turns
from contenders import Failed
from processes import HERE, OursOnGpu, Worker, check
from stage import read_report

MODELS = ("gcn", "sage")
LAYERS = 2
EVERY_EPOCH = "--rewrites=-hoisting"
DEVICE = "cuda:0"  # PyG's, and that whose rates are measured
# Of the loss.
LARGEST = 1e-3


def arguments_of(context, model):
    return ("--model", model, "--layers", LAYERS, "--hidden", context.hidden)


def dataset_of(context):
    """What prepare.py says of it."""
    return read_report(context.work / "prepare.json").get("dataset")


def why_no_peer():
    if not processes.has("torch_geometric"):
        return "torch_geometric is not here"
    return processes.why_no_torch()


def run(context, stage):
    dataset = dataset_of(context)
    if dataset is None:
        stage.fail("there is no dataset: see prepare")
        return
    stage.put(graph=dataset)
    why = why_no_peer()
    if why:
        stage.absent(f"PyG: {why}")
    peer = None if why else Worker(sys.executable, HERE / "pyg_worker.py", dataset["arrays"],
                                   context.hidden)
    try:
        if peer and not begins(peer, stage):
            peer.close()
            peer = None
        models = {}
        for model in MODELS:
            models[model] = {}
            try:
                measure(context, stage, dataset["path"], model, peer, models[model])
            except Failed as failure:
                stage.fail(f"{model}: {failure}")
            stage.put(models=models)
    finally:
        if peer:
            peer.close()


def begins(peer, stage):
    try:
        peer.start()
        stage.put(peer=peer.read(stage.left()))
    except Failed as failure:
        stage.fail(f"PyG: {failure}")
        return False
    return True


def measure(context, stage, dataset, model, peer, found):
    """Into `found`; without the peer where it fails."""
    try:
        if peer:
            found["pyg"] = peer.ask(f"open {model}", stage.left())
    except Failed as failure:
        stage.fail(f"{model}, PyG: {failure}")
        peer = None
    seconds = compare_losses(context, stage, dataset, model, peer, found)
    entries, results = [], {}

    def add(name, make, seconds):
        results[name] = {"turns": [], "others_busy": []}
        entry = turns.Entry(name, make, results[name], seconds)
        entry.count = max(1, round(entry.count * context.turn_seconds))
        entries.append(entry)

    for name, more in (("ooc", ()), ("ooc, every epoch", (EVERY_EPOCH,))):
        add(name, lambda name=name, more=more: ours(context, dataset, name, model, more), seconds)
    if peer:
        add("PyG", lambda: Turns(peer, stage), found["pyg"]["seconds"])
    try:
        turns.take_turns(entries, context.turns)
    finally:
        found["contenders"] = results
    for name, result in results.items():
        if "error" in result:
            stage.fail(f"{model}, {name}: {result['error']}")
        elif result["turns"]:
            result["seconds"] = statistics.median(result["turns"])


def ours(context, dataset, name, model, more):
    options = types.SimpleNamespace(work=context.work, programs=context.programs,
                                    threads=context.threads, limit="auto")
    return OursOnGpu(options, dataset, name.replace(", ", "-").replace(" ", "-"),
                     (*arguments_of(context, model), "--devices", DEVICE, *more))


def losses_of(context, stage, dataset, model, device):
    """Of two epochs without dropout, seconds of the second one, and the checkpoint between."""
    run_dir = context.work / f"loss-{model}-{device}"
    check([context.programs / "ooc-train", dataset, *arguments_of(context, model), "--dropout", 0,
           "--epochs", 2, "--eval-every", 2, "--checkpoint-every", 1, "--devices", device,
           "--threads", context.threads, "--run-dir", run_dir, "--quiet", "--force"], stage.left())
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return ([line["loss"] for line in lines], lines[1]["train_seconds"],
            run_dir / "checkpoint-1.h5")


def compare_losses(context, stage, dataset, model, peer, found):
    """Of the same parameters: by PyG, or by the CPU where PyG can't read them. Returns seconds of a
    step of ours."""
    losses, seconds, checkpoint = losses_of(context, stage, dataset, model, DEVICE)
    by, other = "PyG", None
    if peer and processes.has("h5py"):
        try:
            other = peer.ask(f"loss {checkpoint}", stage.left())["loss"]
        except Failed as failure:
            stage.fail(f"{model}, PyG's loss: {failure}")
    if other is None:
        by, other = "CPU", losses_of(context, stage, dataset, model, "cpu")[0][1]
    difference = abs(losses[1] - other) / other
    found["loss"] = {"ours": losses[1], "by": by, "theirs": other, "difference": difference}
    if not difference <= LARGEST:
        stage.fail(f"{model}: the loss is {losses[1]:.6g}, by the {by} {other:.6g}")
    return seconds


class Turns:
    """The peer's process, as a contender that stays when its turns are over."""

    def __init__(self, peer, stage):
        self.peer, self.stage = peer, stage
        self.peak_bytes = self.built_peak_bytes = None
        self.cpu_seconds = peer.cpu_seconds

    def start(self):
        self.steps(1)

    def steps(self, count):
        return count * self.peer.ask(f"step {count}", self.stage.left())["seconds"]

    def close(self):
        pass
