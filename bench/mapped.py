#!/usr/bin/python3
"""First and later epochs with the dataset in a mapping, and past the page cache.

    bench/mapped.py [--vertices N] [--edges N] [--epochs N] [--cases NAME ...]

Trains a GCN and a SAGE in memory, and in a part of what they need, each with `--io uring` and
`--io mapped`, one after the other in turn: cold, after the dataset was dropped from the page cache,
and warm. Each run is in a memory cgroup of 1.25 x --host-memory (version 1 or 2; needs root);
without root, without one. Checks that all runs of a case have the same losses. Prints a table and
writes bench/results/mapped.json.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import training  # noqa: E402
from accuracy import ROOT, describe_machine  # noqa: E402
from memory_limit import parse_size  # noqa: E402

WAYS = ("uring", "mapped")
CASES = {
    "gcn in memory": (["--model", "gcn"], None),
    "sage in memory": (["--model", "sage"], None),
    "gcn in 512MiB": (["--model", "gcn"], "512MiB"),
    "sage in 512MiB": (["--model", "sage"], "512MiB"),
}
IN_MEMORY = "12GiB"
TURNS = 3


def drop_from_cache(dataset):
    """Clean pages of its files."""
    for path in dataset.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def train(options, dataset, arguments, memory):
    limit = int(1.25 * parse_size(memory)) if os.geteuid() == 0 else None
    result = training.train(options, dataset, [*arguments, "--host-memory", memory], limit)
    if result["exit_code"] != 0:
        sys.exit(f"failed with {result['exit_code']}: {result['error']}")
    return result


def figures(results):
    """Medians over turns."""
    return {
        "first_epoch_seconds": statistics.median(r["warm_up_seconds"] for r in results),
        "later_epoch_seconds": statistics.median(r["epoch_seconds"] for r in results),
        "peak_host_bytes": max(r["peak_host_bytes"] for r in results),
        "peak_cgroup_bytes": max((r["peak_cgroup_bytes"] or 0) for r in results) or None,
    }


def measure(options, dataset, arguments, memory):
    runs = {(way, cache): [] for way in WAYS for cache in ("cold", "warm")}
    for _ in range(options.turns):
        for cache in ("cold", "warm"):
            for way in WAYS:
                if cache == "cold":
                    drop_from_cache(dataset)
                else:
                    subprocess.run(["cat", *dataset.iterdir()], stdout=subprocess.DEVNULL,
                                   check=True)
                runs[way, cache].append(train(
                    options, dataset, [*arguments, "--io", way, "--epochs", options.epochs],
                    memory))
    curves = {json.dumps(run["curve"]) for results in runs.values() for run in results}
    assert len(curves) == 1, "losses differ"
    return {f"{way} {cache}": figures(results) for (way, cache), results in runs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--vertices", type=int, default=2_000_000)
    parser.add_argument("--edges", type=int, default=16_000_000, help="undirected")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    dataset = training.generate(options, "sbm", options.vertices, options.edges, 128, 16)
    report = {"machine": describe_machine(), "vertices": options.vertices,
              "edges": options.edges, "cases": {}}
    print(f"{'':16} {'':12} {'first':>8} {'later':>8} {'peak':>9} {'cgroup':>9}")
    for name in options.cases:
        arguments, memory = CASES[name]
        result = measure(options, dataset, arguments, memory or IN_MEMORY)
        report["cases"][name] = {"host_memory": memory or IN_MEMORY, **result}
        for way, figure in result.items():
            group = figure["peak_cgroup_bytes"]
            print(f"{name:16} {way:12} {figure['first_epoch_seconds']:6.2f} s "
                  f"{figure['later_epoch_seconds']:6.2f} s "
                  f"{figure['peak_host_bytes'] / 2**20:5.0f} MiB "
                  f"{(group or 0) / 2**20:5.0f} MiB", flush=True)
        path = ROOT / "bench/results/mapped.json"
        path.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
