#!/usr/bin/python3
"""Epochs of sampled training beside PyG and DGL, on the CPU.

    bench/sampling_peers.py [--cases sage-2,sage-3] [--scale 20] [--turns 3]

A graph of ogbn-products' shape (R-MAT: 2.4 M vertices, 124 M directed edges, 100 features, 47
classes, 196,000 training vertices that have in-edges; a --scale-th of each), SAGE, hidden 256,
batches of 1,000: 2 layers with fan-outs 25,10, 3 layers with 15,10,5. An epoch is all of it:
sampling, features, computing, a step of Adam a batch; no evaluation. Contenders:

- ooc in memory: --host-memory is --memory;
- ooc in little: an eighth of what the dataset's edges and features take, or the least that works
  if that is more; past the page cache, scratch beside the dataset;
- PyG's NeighborLoader and DGL's DataLoader with their own SAGEConv, all in memory; the layers
  compute only what later layers read (peers/sampled.py). Each at the best of its forms: loading in
  the process itself or in 1 or 2 others, threads, what edges are given as. Forms are tried on
  TRIED_BATCHES.

Turn by turn: the others stand still meanwhile. A turn of ooc is an epoch after the first two; a
turn of a peer is --batches of the epoch's, of training vertices drawn anew, its workers' start
included, and counts for the epoch in proportion. What is told is the median of the turns; times a
peer's are of the same turn's epoch of ooc. A peer's batches differ: DGL chooses for a vertex anew
in each hop.

Prints tables and keeps bench/results/sampling-peers.json; what is there is not measured again with
the same programs (--again does). Exit code 1 where a goal is missed. Nothing else should run; needs
17 GB of memory and of disk.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import types

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
import contenders  # noqa: E402
import environment  # noqa: E402
import turns  # noqa: E402
from accuracy import ROOT, run  # noqa: E402
from contenders import Ours, Peer  # noqa: E402
from sampling_accuracy import make_csc  # noqa: E402
from training import Results, parse_size  # noqa: E402

VERTICES, EDGES, FEATURES, CLASSES, SEEDS = 2_400_000, 62_000_000, 100, 47, 196_000
HIDDEN, BATCH = 256, 1000
CASES = {"sage-2": (2, "25,10"), "sage-3": (3, "15,10,5")}
# Workers that load, threads that compute.
LOADERS = ((1, 1), (0, 2), (1, 2), (2, 2), (2, 1))
KINDS = {"pyg": ("edge_index", "SparseTensor"), "dgl": ("blocks",)}
TRIED_BATCHES = 12
ALONE = 2  # epochs of ooc before the turns
IN_MEMORY, IN_LITTLE = "ooc in memory", "ooc in little"
GOALS = {IN_MEMORY: 1.5, IN_LITTLE: 1.0}  # the best peer's seconds over ooc's, at least
contenders.PATIENCE_SECONDS = 1200


def make_dataset(options):
    """The dataset, and its arrays for the peers. Training vertices are drawn from those with
    in-edges."""
    vertices, edges, seeds = (n // options.scale for n in (VERTICES, EDGES, SEEDS))
    dataset = options.work / f"products-{vertices}.ooc"
    arrays = dataset.with_suffix(".arrays")
    if dataset.exists() and (arrays / "indices.npy").exists():
        return dataset, arrays, seeds
    print(f"generating {dataset.name}", file=sys.stderr, flush=True)
    drawn = options.work / f"drawn-{vertices}.ooc"
    prep = options.programs / "ooc-prep"
    run(prep, "generate", "rmat", "--vertices", vertices, "--edges", edges, "--features", FEATURES,
        "--classes", CLASSES, "-o", drawn, "--force", "--quiet")
    shutil.rmtree(arrays, ignore_errors=True)
    run(prep, "export", drawn, "-o", arrays, "--quiet")
    shutil.rmtree(drawn)
    make_csc(arrays)
    asked = np.flatnonzero(np.diff(np.load(arrays / "indptr.npy")))
    asked = np.random.default_rng(0).permutation(asked)
    for split, ids in zip(("train", "valid", "test"), np.split(asked, [seeds, 2 * seeds])):
        np.save(arrays / f"{split}_idx.npy", np.sort(ids[:seeds]))
    files = [word for name in ("edges", "features", "labels", "train", "valid", "test")
             for word in (f"--{name}", arrays / (f"{name}_idx.npy" if name in (
                 "train", "valid", "test") else f"{name}.npy"))]
    run(prep, "import", *files, "-o", dataset, "--force", "--quiet")
    (arrays / "edges.npy").unlink()
    return dataset, arrays, seeds


def whole_bytes(dataset):
    """What its edges and features take."""
    return sum((dataset / name).stat().st_size for name in ("edges.in", "features"))


def least_bytes(options, dataset, arguments, budget):
    """`budget`, or the least that works."""
    command = [options.programs / "ooc-train", dataset, *arguments, "--host-memory", budget,
               "--threads", options.threads, "--plan", "--quiet"]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if result.returncode == 4:
        text = result.stderr.split("the least that works is ")[1].split(",")[0]
        return parse_size(text.replace(" ", ""))
    if result.returncode:
        sys.exit(result.stderr)
    return budget


class OursSampled(Ours):
    """Of the epochs before the turns, in which it doesn't stand still, all but the first one say
    what passes take."""

    def __init__(self, options, dataset, name, arguments, budget):
        limited = types.SimpleNamespace(**{**vars(options), "limit": budget})
        super().__init__(limited, dataset, name, arguments)
        self.limit_bytes = options.limit
        self.lines = []

    def start(self):
        """The first epoch has nothing to be made beside."""
        self.launch(stdout=subprocess.DEVNULL)
        self.wait_for(ALONE)
        self.stop()
        metrics = (self.run_dir / "metrics.jsonl").read_text().splitlines()
        self.lines = [json.loads(line) for line in metrics[1:ALONE]]

    def figures(self):
        """Of an epoch that it was alone in."""
        def mean(of):
            return statistics.mean(map(of, self.lines))

        return {**{f"alone_{key}": mean(lambda line: line[key])
                   for key in ("train_seconds", "bytes_read", "bytes_written")},
                "passes": {entry["name"]: mean(lambda line: line["passes"][i]["seconds"])
                           for i, entry in enumerate(self.lines[0]["passes"])}}


class PeerSampled(Peer):
    def __init__(self, options, arguments, threads):
        own = types.SimpleNamespace(limit=options.limit, threads=threads)
        super().__init__(own, environment.python_of(options.venv), arguments,
                         "sampling_worker.py")
        self.vertices = None  # that the last batches reached

    def read(self):
        reply = super().read()
        self.vertices = reply.get("vertices")
        return reply


def forms_of(options, peer, arrays, layers, fanouts):
    """Form to how it is made."""
    def make(kind, workers, threads):
        return lambda: PeerSampled(options, (
            "speed", peer, arrays, "--kind", kind, "--workers", workers, "--layers", layers,
            "--fanouts", fanouts, "--hidden", HIDDEN, "--batch-size", BATCH), threads)

    return {(kind, workers, threads): make(kind, workers, threads)
            for kind in KINDS[peer] for workers, threads in LOADERS}


def name_of(form):
    return "{}, {} workers, {} threads".format(*form)


def choose(name, forms, count):
    """The form whose batches are fastest, and what was tried: of each kind one, of the best kind
    all."""
    tried = {}

    def seconds_of(form):
        if form not in tried:
            tried[form] = try_form(forms[form], count)
            turns.say(f"{name}, {name_of(form)}: {tried[form]}")
        return tried[form].get("seconds", math.inf)

    kind = min((form for form in forms if form[1:] == LOADERS[0]), key=seconds_of)[0]
    best = min((form for form in forms if form[0] == kind), key=seconds_of)
    result = {"form": name_of(best), "turns": [], "others_busy": [],
              "tried": {name_of(form): reply for form, reply in tried.items()}}
    if "error" in tried[best]:
        return None, {**result, "error": tried[best]["error"]}
    return best, result


def try_form(make, count):
    contender = make()
    try:
        contender.start()
        return {"seconds": contender.steps(count) / count, "peak_bytes": turns.peak_of(contender)}
    except contenders.Failed as failure:
        return {"error": str(failure)}
    finally:
        contender.close()


def entry_of(name, make, result, count):
    entry = turns.Entry(name, make, result, 1)
    entry.count = count
    return entry


def measure(options, case):
    layers, fanouts = CASES[case]
    dataset, arrays, seeds = make_dataset(options)
    batches = -(-seeds // BATCH)
    options.batches = min(options.batches, batches)
    arguments = ["--model", "sage", "--layers", layers, "--hidden", HIDDEN, "--fanouts", fanouts,
                 "--batch-size", BATCH]
    eighth = whole_bytes(dataset) // 8
    little = least_bytes(options, dataset, arguments, eighth)
    entries, results = [], {}
    for name, budget in ((IN_MEMORY, options.memory), (IN_LITTLE, little)):
        results[name] = {"budget_bytes": budget, "turns": [], "others_busy": []}
        entries.append(entry_of(name, lambda name=name, budget=budget: OursSampled(
            options, dataset, name.replace(" ", "-"), arguments, budget), results[name], 1))
    for peer in options.peers:
        name = environment.PEERS[peer]
        forms = forms_of(options, peer, arrays, layers, fanouts)
        best, results[name] = choose(name, forms, min(TRIED_BATCHES, batches))
        if best:
            entries.append(entry_of(name, forms[best], results[name], options.batches))
    turns.take_turns(entries, options.turns)
    for entry in entries:
        scale(entry, batches)
    return {"vertices": VERTICES // options.scale, "batches": batches, "eighth_bytes": eighth,
            "whole_bytes": whole_bytes(dataset), "contenders": results,
            "times": times(results)}


def scale(entry, batches):
    """Turns of batches become those of epochs."""
    result, contender = entry.result, entry.contender
    if isinstance(contender, OursSampled):
        result.update(contender.figures())
        return
    result["batches_in_turn"] = result.pop("steps_in_turn", entry.count)
    if contender.vertices:
        result["vertices_in_batch"] = contender.vertices / entry.count
    result["turns"] = [seconds * batches for seconds in result["turns"]]
    for key in ("seconds", "fastest_seconds"):
        if key in result:
            result[key] *= batches


def times(results):
    """Of each goal: the best peer's seconds over ooc's, the median of the turns' own quotients."""
    peers = [r for name, r in results.items() if not name.startswith("ooc") and r.get("seconds")]
    best = min(peers, key=lambda result: result["seconds"], default=None)
    return {name: statistics.median(a / b for a, b in zip(best["turns"], results[name]["turns"]))
            for name in GOALS if best and results[name].get("seconds")}


def print_case(name, case):
    """Whether its goals are met."""
    print(f"\n{name}: {case['vertices']:,} vertices, {case['batches']} batches an epoch, "
          f"{case['whole_bytes'] / 1e9:.2f} GB of edges and features\n\n| by | as | epoch, s "
          "| fastest, s | peak, GiB | best peer / it | others' cores |\n"
          "|---|---|---|---|---|---|---|")
    for by, result in case["contenders"].items():
        form = result.get("form") or f"{result.get('budget_bytes', 0) >> 20} MiB"
        if "error" in result:
            print(f"| {by} | {form} | {result['error']} | | | | |")
            continue
        ratio = f"{case['times'][by]:.2f}" if by in case["times"] else ""
        print(f"| {by} | {form} | {result['seconds']:.1f} | {result['fastest_seconds']:.1f} "
              f"| {result['peak_bytes'] / 2**30:.2f} | {ratio} "
              f"| {statistics.mean(result['others_busy']):.1f} |")
    for by, result in case["contenders"].items():
        if "passes" in result:
            print(f"\n{by}, alone: {result['alone_train_seconds']:.1f} s, of it "
                  + ", ".join(f"{step} {s:.1f}" for step, s in result["passes"].items())
                  + f"; {result['alone_bytes_read'] / 1e9:.1f} GB read, "
                  f"{result['alone_bytes_written'] / 1e9:.1f} written")
    return all(case["times"].get(by, 0) >= goal for by, goal in GOALS.items())


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES), help="these, with commas between")
    parser.add_argument("--scale", type=int, default=1, help="a graph smaller by so much")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batches", type=int, default=49, help="of a peer's turn")
    parser.add_argument("--peers", default="pyg,dgl", type=lambda text: text.split(","))
    parser.add_argument("--memory", default="12GiB", type=parse_size, help="of ooc in memory")
    parser.add_argument("--limit", default="16GiB", type=parse_size, help="data of a process")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of ooc")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench",
                        help="where graphs and runs go; graphs stay there")
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "build/bench/peers-venv")
    options = parser.parse_args()
    options.disk_rate = None
    options.work.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = parse()
    environment.find_peers(options.venv)
    if "pyg" in options.peers:
        environment.install_built(options.venv)
    results, fine = Results("sampling-peers", options), True
    settings = {"threads": options.threads, "limit_bytes": options.limit, "scale": options.scale,
                "memory_bytes": options.memory}
    for case in options.cases.split(","):
        name = case if options.scale == 1 else f"{case} / {options.scale}"
        result = results.get(name, settings)
        if result is None:
            print(f"\n{name}", file=sys.stderr, flush=True)
            result = measure(options, case)
            results.put(name, settings, result)
        fine = print_case(name, result) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
