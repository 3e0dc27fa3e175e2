#!/usr/bin/python3
"""What it saves to pass over edges that add zeros: the propagation of a loss' gradient, by how many
vertices train.

    bench/zero_rows.py [--vertices N] [--edges N] [--features N] [--classes N] [--hidden N]

Makes a directed graph of planted classes, imports it with 1, 5, 10, 20 and 60 % of the vertices in
the train split, and trains a GCN of 2 layers for a few epochs with and without `--rewrites -zeros`,
in turns. Seconds are the fastest epoch's (metrics.jsonl), beside the plan's. The losses must be
equal to the last bit. Prints a table and writes bench/results/zero-rows.json.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import ROOT, describe_machine, run  # noqa: E402

BIN = ROOT / "build" / "release" / "bin"
SHARES = [1, 5, 10, 20, 60]
VARIANTS = {"with": [], "without": ["--rewrites=-zeros"]}
EPOCHS = 6
TURNS = 2


def make_graph(work, options):
    """Four of five edges stay within a class."""
    random = numpy.random.default_rng(1)
    labels = random.integers(0, options.classes, options.vertices, dtype=numpy.int32)
    by_class = numpy.argsort(labels, kind="stable")
    first = numpy.searchsorted(labels[by_class], numpy.arange(options.classes + 1))
    sources = random.integers(0, options.vertices, options.edges)
    targets = random.integers(0, options.vertices, options.edges)
    near = random.random(options.edges) < 0.8
    of = labels[sources[near]]
    drawn = random.random(len(of)) * (first[of + 1] - first[of])
    targets[near] = by_class[first[of] + drawn.astype(numpy.int64)]
    centres = random.standard_normal((options.classes, options.features), dtype=numpy.float32)
    features = random.standard_normal((options.vertices, options.features), dtype=numpy.float32)
    features += 0.3 * centres[labels]
    numpy.save(work / "edges.npy", numpy.stack([sources, targets], axis=1))
    numpy.save(work / "labels.npy", labels)
    numpy.save(work / "features.npy", features)


def train(dataset, work, options, arguments):
    run_dir = work / "run"
    run(BIN / "ooc-train", dataset, "--model", "gcn", "--hidden", options.hidden,
        "--dropout", 0, "--epochs", EPOCHS, "--eval-every", EPOCHS, "--run-dir", run_dir,
        "--force", "--quiet", *arguments)
    epochs = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    passes = json.loads((run_dir / "plan.json").read_text())["epoch"]["sections"][0]["passes"]
    [back] = [i for i, entry in enumerate(passes)
              if entry["kind"] == "propagate" and entry["edges"]["direction"] == "out"]
    return {
        "pass_seconds": min(epoch["passes"][back]["seconds"] for epoch in epochs[1:]),
        "pass_predicted": passes[back]["seconds"],
        "train_seconds": min(epoch["train_seconds"] for epoch in epochs[1:]),
        "passed_over": passes[back]["edges"]["train_neighbours_only"],
        "losses": [epoch["loss"] for epoch in epochs],
    }


def measure(dataset, work, options):
    results = {}
    for _ in range(TURNS):
        for variant, arguments in VARIANTS.items():
            result = train(dataset, work, options, arguments)
            before = results.setdefault(variant, result)
            if before["losses"] != result["losses"]:
                sys.exit(f"losses differ: {before['losses']}, {result['losses']}")
            for key in ("pass_seconds", "train_seconds"):
                before[key] = min(before[key], result[key])
    if results["with"]["losses"] != results["without"]["losses"]:
        sys.exit("losses differ with and without")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=30_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--hidden", type=int, default=128)
    options = parser.parse_args()
    report = {"machine": describe_machine(), "settings": vars(options), "shares": {}}
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as scratch:
        work = pathlib.Path(scratch)
        make_graph(work, options)
        for share in SHARES:
            dataset = work / "graph.ooc"
            rest = (100 - share) // 2
            run(BIN / "ooc-prep", "import", work, "--split", f"{share}/{rest}/{100 - share - rest}",
                "-o", dataset, "--force", "--quiet")
            report["shares"][str(share)] = measure(dataset, work, options)
            shutil.rmtree(dataset)
    print("| train | without, s | predicted | with, s | predicted | times "
          "| epoch without, s | with |")
    print("|---|---|---|---|---|---|---|---|")
    for share, results in report["shares"].items():
        old, new = results["without"], results["with"]
        print(f"| {share} % | {old['pass_seconds']:.2f} | {old['pass_predicted']:.2f} "
              f"| {new['pass_seconds']:.2f} | {new['pass_predicted']:.2f} "
              f"| {old['pass_seconds'] / new['pass_seconds']:.1f} "
              f"| {old['train_seconds']:.2f} | {new['train_seconds']:.2f} |")
    path = ROOT / "bench/results/zero-rows.json"
    path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
