#!/usr/bin/python3
"""Test scores of sampled training, beside PyG's NeighborLoader.

    bench/sampling_accuracy.py ../shared/data [--graphs cora,citeseer] [--seeds 2]

Trains SAGE of 2 layers on batches of sampled neighbours, with ooc and with PyG: the same graph (as
`ooc-prep export` writes the imported one), network, first parameters' distribution, optimiser,
fan-outs, batches and epochs; seeds 0 to 4 (--seeds 20: to 19). A score is the accuracy on the test
vertices at the epoch with the best valid one. Both are evaluated on all edges: ooc with
`--eval-fanouts -1,-1`, PyG on the whole graph.

The means of both may differ by LARGEST at most. Beside a difference is how far means are from each
other by chance: its deviation, from those of the seeds. PyG is in a virtual environment of its own,
made from the Python index unless it is there; torch-sparse, which NeighborLoader needs, is built
from source.

Every run's score goes to bench/results/sampling-accuracy.json at once, as in accuracy.py: what is
there of the same programs and options is not trained again (--again does). Exit code 1 where a goal
is missed.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
import accuracy  # noqa: E402
import environment  # noqa: E402
from accuracy import ROOT, as_options, chosen, describe_machine, hash_of, run  # noqa: E402

RESULTS = ROOT / "bench/results/sampling-accuracy.json"
SEEDS = 5
LARGEST = 0.005
BY = {"ooc": "ooc", "pyg": "PyG"}
COMMON = {"layers": 2, "fanouts": "10,10", "hidden": 64, "dropout": 0.5, "weight-decay": 5e-4,
          "eval-every": 1}
# As accuracy.py's, but for smaller rates and fewer epochs where an epoch is many steps. Where
# features aren't scaled a rate of 0.01 is unsteady.
GRAPHS = {
    "cora": {"input-dropout": 0.5, "lr": 0.01, "batch-size": 64, "epochs": 50},
    "citeseer": {"input-dropout": 0.5, "lr": 0.01, "batch-size": 64, "epochs": 50},
    "amazon_photo": {"input-dropout": 0, "lr": 0.001, "batch-size": 512, "epochs": 60},
    "amazon_computers": {"input-dropout": 0, "lr": 0.001, "batch-size": 512, "epochs": 60},
    "facebook_pages": {"input-dropout": 0, "lr": 0.001, "batch-size": 2048, "epochs": 20},
    "coauthor_physics": {"input-dropout": 0, "lr": 0.001, "batch-size": 4096, "epochs": 6},
}


def norm_of(name):
    return "row" if name in accuracy.CITATIONS else "none"


def make_csc(arrays):
    """Beside exported arrays: in-edges by destination, as samplers want them."""
    if (arrays / "indices.npy").exists():
        return
    edges = np.load(arrays / "edges.npy", mmap_mode="r")
    vertices = len(np.load(arrays / "labels.npy", mmap_mode="r"))
    targets = np.ascontiguousarray(edges[:, 1])
    order = np.argsort(targets, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=vertices))])
    np.save(arrays / "indptr.npy", indptr.astype(np.int64))
    np.save(arrays / "indices.npy", np.ascontiguousarray(edges[:, 0])[order])


def export(dataset, programs):
    arrays = dataset.with_suffix(".arrays")
    if not (arrays / "indices.npy").exists():
        run(programs / "ooc-prep", "export", dataset, "-o", arrays, "--force", "--quiet")
        make_csc(arrays)
    return arrays


def train_ours(dataset, values, seed, options):
    directory = options.work / f"run-{dataset.stem}-{seed}"
    run(
        *(options.programs / "ooc-train", dataset, "--model", "sage", *as_options(values)),
        *("--eval-fanouts", ",".join(["-1"] * values["layers"])),
        *("--seed", seed, "--run-dir", directory, "--force", "--quiet"),
        *("--checkpoint-every", values["epochs"], "--threads", options.threads),
    )
    summary = json.loads((directory / "summary.json").read_text())
    shutil.rmtree(directory)
    return summary["best_valid"], summary["test"]


def train_pyg(dataset, values, seed, options):
    command = [environment.python_of(options.venv), environment.HERE / "sampling_worker.py",
               "accuracy", "pyg", export(dataset, options.programs), *as_options(values),
               "--kind", "edge_index", "--seed", seed, "--threads", options.threads]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})
    lines = result.stdout.splitlines()
    reply = json.loads(lines[-1]) if lines else {"error": result.stderr[-500:]}
    if "error" in reply:
        sys.exit(f"sampling_accuracy.py: PyG on {dataset.stem}: {reply['error']}")
    options.versions = reply["versions"]
    return reply["best_valid"], reply["test"]


TRAIN = {"ooc": train_ours, "pyg": train_pyg}


class Results:
    """bench/results/sampling-accuracy.json: a cell for each graph."""

    def __init__(self, options):
        self.programs = hash_of(options.programs)
        self.path = options.results
        self.report = json.loads(self.path.read_text()) if self.path.exists() else {"cells": []}

    def find(self, name):
        """Unless it is of other options than today's."""
        wanted = {"graph": name, "options": COMMON | GRAPHS[name], "feature_norm": norm_of(name)}
        for cell in self.report["cells"]:
            if all(cell[key] == value for key, value in wanted.items()):
                return cell
        return None

    def drop(self, name):
        self.report["cells"] = [c for c in self.report["cells"] if c["graph"] != name]

    def open(self, name):
        """The cell to go on with, or a new one; scores of other programs than today's stay if all
        are there."""
        cell = self.find(name)
        if cell and (cell["programs"] == self.programs or is_done(cell)):
            return cell
        self.drop(name)
        self.report["cells"].append({
            "graph": name, "options": COMMON | GRAPHS[name], "feature_norm": norm_of(name),
            "programs": self.programs, **{by: {"tests": [], "valids": []} for by in BY}})
        return self.report["cells"][-1]

    def write(self, versions):
        for cell in self.report["cells"]:
            cell.update(figures(cell))
        self.report["cells"].sort(key=lambda cell: list(GRAPHS).index(cell["graph"]))
        report = {"bench": "sampling accuracy", "machine": describe_machine(),
                  "peers": versions or self.report.get("peers", {}), "cells": self.report["cells"]}
        self.report = report
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(report, indent=2) + "\n")
        new.replace(self.path)


def is_done(cell):
    return all(len(cell[by]["tests"]) >= SEEDS for by in BY)


def figures(cell):
    """Means, deviations, their difference and its deviation; empty before two seeds are done."""
    tests = [cell[by]["tests"] for by in BY]
    if min(map(len, tests)) < 2:
        return {}
    spreads = [accuracy.spread(values) for values in tests]
    by_chance = sum(d ** 2 / len(values) for (_, d), values in zip(spreads, tests)) ** 0.5
    return {
        **{f"{by}_mean": mean for by, (mean, _) in zip(BY, spreads)},
        **{f"{by}_deviation": deviation for by, (_, deviation) in zip(BY, spreads)},
        "difference": spreads[0][0] - spreads[1][0],
        "difference_deviation": by_chance,
    }


def print_table(results):
    """Those whose goal is missed."""
    missed = []
    print("| graph | ooc | PyG | difference | its deviation | within "
          f"{100 * LARGEST:g} | seeds |\n|---|---|---|---|---|---|---|")
    for name in GRAPHS:
        cell = results.find(name)
        if not cell or "difference" not in cell:
            print(f"| {name} | missing | | | | | |")
            continue
        within = abs(cell["difference"]) <= LARGEST
        missed += [] if within else [name]
        scores = [f"{100 * cell[f'{by}_mean']:.2f} ± {100 * cell[f'{by}_deviation']:.2f}"
                  for by in BY]
        seeds = min(len(cell[by]["tests"]) for by in BY)
        print(f"| {name} | {' | '.join(scores)} | {100 * cell['difference']:+.2f} "
              f"| {100 * cell['difference_deviation']:.2f} | {'yes' if within else 'no'} "
              f"| {seeds} |")
    return missed


def measure(name, results, options):
    cell = results.open(name)
    dataset = None
    for seed in range(options.seeds):
        for by, train in TRAIN.items():
            if seed < len(cell[by]["tests"]):
                continue
            dataset = dataset or accuracy.import_graph(options.data / name, norm_of(name), options)
            valid, test = train(dataset, cell["options"], seed, options)
            cell[by]["valids"].append(valid)
            cell[by]["tests"].append(test)
            results.write(options.versions)
            print(f"{name} {by} seed {seed}: {test:.4f}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=pathlib.Path, help="a directory of graphs")
    parser.add_argument("--graphs", help="only these, with commas between")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="as many; 0: only print")
    parser.add_argument("--again", action="store_true", help="train what is done, too")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of everyone")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/sampling-accuracy")
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "build/bench/peers-venv")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    options = parser.parse_args()
    options.versions = None
    results = Results(options)
    options.work = options.work / results.programs  # other programs may make other datasets
    options.work.mkdir(parents=True, exist_ok=True)
    names = chosen(options.graphs, GRAPHS, "graph")
    if options.seeds:
        environment.find_peers(options.venv)
        environment.install_built(options.venv)
    for name in names:
        if options.again:
            results.drop(name)
        measure(name, results, options)
    return 1 if print_table(results) else 0


if __name__ == "__main__":
    sys.exit(main())
