#!/usr/bin/python3
"""What each rewrite of the model is worth: bytes moved and seconds with and without it.

    bench/rewrites.py [--vertices N] [--edges N] [--features N] [--hidden N] [--models LIST]

Generates an R-MAT graph and trains each model for a few epochs with all rewrites, then with one of
them left out, then with none; all in one run, in turns, so that load meets all alike.
Seconds are the fastest training epoch's, without evaluation. Bytes are the plan's: what an epoch of
training moves between memory and caches at most. Losses must agree to 1e-3 relative. Prints a table
and writes bench/results/rewrites.json. NGra's figure 15 shows the same for its rewrites.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import ROOT, describe_machine, run  # noqa: E402

BIN = ROOT / "build" / "release" / "bin"
REWRITES = ["motion", "common", "order", "hoisting", "dead", "fusion", "zeros"]
VARIANTS = ["all"] + REWRITES + ["none"]
EPOCHS = 3
TURNS = 2


def train(dataset, work, model, variant, hidden):
    left_out = {"all": [], "none": REWRITES}.get(variant, [variant])
    run_dir = work / f"{model}-{variant}"
    rewrites = ["--rewrites=" + ",".join("-" + name for name in left_out)] if left_out else []
    run(BIN / "ooc-train", dataset, "--model", model, "--hidden", hidden, "--epochs", EPOCHS,
        "--eval-every", EPOCHS, "--dropout", 0, "--run-dir", run_dir, "--force", "--quiet",
        *rewrites)
    epochs = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    plan = json.loads((run_dir / "plan.json").read_text())
    return {
        "seconds": min(epoch["train_seconds"] for epoch in epochs),
        "bytes_moved": sum(p["bytes_moved"] for p in plan["epoch"]["sections"][0]["passes"]),
        "peak_host_bytes": epochs[-1]["peak_host_bytes"],
        "loss": epochs[-1]["loss"],
    }


def measure(dataset, work, model, hidden):
    results = {}
    for _ in range(TURNS):
        for variant in VARIANTS:
            result = train(dataset, work, model, variant, hidden)
            before = results.get(variant)
            if before is None or result["seconds"] < before["seconds"]:
                results[variant] = result
    reference = results["all"]["loss"]
    for variant, result in results.items():
        if abs(result["loss"] - reference) > 1e-3 * abs(reference):
            sys.exit(f"{model} without {variant}: loss {result['loss']}, with all {reference}")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000, help="undirected")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--models", default="ggcn,mpgcn,gcn")
    options = parser.parse_args()
    table = {}
    output = ROOT / "bench" / "results" / "rewrites.json"
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        dataset = work / "rmat.ooc"
        run(BIN / "ooc-prep", "generate", "rmat", "--vertices", options.vertices, "--edges",
            options.edges, "--features", options.features, "--classes", 16, "-o", dataset)
        for model in options.models.split(","):
            table[model] = measure(dataset, work, model, options.hidden)
            print(f"{model:<8} {'left out':<10} {'seconds':>8} {'x':>6} {'GB moved':>9} {'x':>6}")
            base = table[model]["all"]
            for variant, result in table[model].items():
                name = {"all": "nothing", "none": "all"}.get(variant, variant)
                print(f"{'':<8} {name:<10} {result['seconds']:>8.2f} "
                      f"{result['seconds'] / base['seconds']:>6.2f} "
                      f"{result['bytes_moved'] / 1e9:>9.2f} "
                      f"{result['bytes_moved'] / base['bytes_moved']:>6.2f}", flush=True)
            output.write_text(json.dumps({"machine": describe_machine(), "options": vars(options),
                                          "results": table}, indent=2) + "\n")


if __name__ == "__main__":
    main()
