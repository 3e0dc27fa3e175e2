#!/usr/bin/python3
"""No tensor of a row an edge: the peak memory of GAT and G-GCN beside what their vertices need.

    bench/attention_memory.py [--vertices N] [--edges N] [--features N]

Generates an R-MAT graph and trains GAT (8 heads of 8) and G-GCN (hidden 64) for two epochs. The
peak resident set must stay below the features, every vertex tensor as wide as a layer (64 columns)
that the plans of training and evaluation name, each counted once, the topology, the parameters with
Adam's moments, and 15 %. A tensor of a value an edge and head, or of a row an edge, would not fit:
their sizes stand beside it. Exit code 1 where the peak is above. Writes
bench/results/attention-memory.json.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import ROOT, describe_machine, run  # noqa: E402

BIN = ROOT / "build" / "release" / "bin"
WIDTH = 64
MODELS = {
    "gat": ["--heads", "8", "--hidden", "8"],
    "ggcn": ["--hidden", "64"],
}
VALUES_AN_EDGE = {"gat": 8, "ggcn": 64}


def measure(dataset, work, model, vertices, features):
    run_dir = work / model
    run(BIN / "ooc-train", dataset, "--model", model, *MODELS[model], "--epochs", 2,
        "--eval-every", 2, "--run-dir", run_dir, "--force", "--quiet")
    plan = json.loads((run_dir / "plan.json").read_text())
    epochs = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    wide = vertices * WIDTH * 4

    def is_wide(count):
        return wide <= count < wide + (1 << 20)

    names = {tensor["name"] for tensor in plan["epoch"]["tensors"]
             if tensor["name"] != "features" and is_wide(tensor["bytes"])}
    # What is folded into and read by its own pass alone.
    names |= {use["value"] for section in plan["epoch"]["sections"]
              for step in section["passes"] for use in step["uses"]
              if use["role"] == "accumulator" and is_wide(use["bytes"])}
    topology = sum((dataset / name).stat().st_size for name in ("edges.in", "edges.out")
                   if (dataset / name).exists())
    parameters = 3 * sum(path.stat().st_size for path in [run_dir / "best.h5"])
    needed = vertices * features * 4 + len(names) * wide + topology + parameters
    return {
        "wide_tensors": sorted(names),
        "needed_bytes": needed,
        "limit_bytes": int(needed * 1.15),
        "peak_host_bytes": max(epoch["peak_host_bytes"] for epoch in epochs),
        "train_seconds": min(epoch["train_seconds"] for epoch in epochs),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=25_000_000, help="undirected: twice as many")
    parser.add_argument("--features", type=int, default=64)
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        dataset = work / "rmat.ooc"
        run(BIN / "ooc-prep", "generate", "rmat", "--vertices", options.vertices, "--edges",
            options.edges, "--features", options.features, "--classes", 16, "-o", dataset)
        for model in MODELS:
            result = measure(dataset, work, model, options.vertices, options.features)
            result["edge_tensor_bytes"] = 2 * options.edges * VALUES_AN_EDGE[model] * 4
            results[model] = result
            tensors = len(result["wide_tensors"])
            print(f"{model}: peak {result['peak_host_bytes'] / 2**20:,.0f} MiB, limit "
                  f"{result['limit_bytes'] / 2**20:,.0f} MiB ({tensors} of {WIDTH} columns); "
                  f"one edge tensor would be {result['edge_tensor_bytes'] / 2**20:,.0f} MiB; "
                  f"{result['train_seconds']:.1f} s an epoch", flush=True)
    output = ROOT / "bench" / "results" / "attention-memory.json"
    output.write_text(json.dumps({"machine": describe_machine(), "options": vars(options),
                                  "results": results}, indent=2) + "\n")
    sys.exit(any(r["peak_host_bytes"] > r["limit_bytes"] for r in results.values()))


if __name__ == "__main__":
    main()
