#!/usr/bin/python3
"""The simulator beside runs: seconds of an epoch's passes on virtual devices whose links are held
to rates, and what `ooc-train --simulate` says of the same plan.

    bench/simulated.py [--vertices N] [--edges N] [--features N] [--turns N]

Trains on a generated graph in ten ways (devices, ring, topology, model, memory, rate of links),
each in turns with the others, and takes the median epoch after the first. Where a link is busy
60 % of the epoch or more, the simulation is to be within 15 % of that with the rates that plans
go by; elsewhere within 10 % with the compute seconds of the run's passes replayed (--durations).
Exit code 1 where one is not. Writes bench/results/simulated.json. A quarter of an hour on two
cores.
"""

import json
import statistics
import subprocess
import sys

import training

EPOCHS = 5


def tree(devices, rate, switches=1, peers=0):
    """`devices` under as many switches, each link at so many bytes a second."""
    def link():
        return {"to_device": rate, "from_device": rate}

    nodes = [{**link(), "children": []} for _ in range(switches)]
    for device in range(devices):
        nodes[device * switches // devices]["children"].append({**link(), "device": device})
    document = {"tree": {"children": nodes}}
    if peers:
        document["peers"] = [{"devices": [a, b], "rate": peers}
                             for a in range(devices) for b in range(a)]
    return document


# name: devices, topology, options
CASES = {
    "one device, 50 MB/s": (1, tree(1, 50e6), ["--cache-policy", "none"]),
    # Copies take a core of their own, as they do on a device.
    "one device, 2 GB/s": (1, tree(1, 2e9), ["--cache-policy", "none", "--threads", "1"]),
    "two devices, 50 MB/s, ring": (2, tree(2, 50e6), ["--cache-policy", "none"]),
    "two devices, 50 MB/s, no ring": (2, tree(2, 50e6),
                                      ["--cache-policy", "none", "--ring", "off"]),
    "two devices, 50 MB/s, two switches": (2, tree(2, 50e6, 2), ["--cache-policy", "none"]),
    "two devices, 50 MB/s, kept": (2, tree(2, 50e6), ["--cache-policy", "lp"]),
    "two devices, 2 GB/s, ring": (2, tree(2, 2e9), ["--cache-policy", "none"]),
    "two devices, 2 GB/s, SAGE": (2, tree(2, 2e9), ["--model", "sage", "--cache-policy", "lp"]),
    "four devices, 30 MB/s, two switches": (4, tree(4, 30e6, 2), ["--cache-policy", "none"]),
    "four devices, 30 MB/s, links between": (4, tree(4, 30e6, 2, 200e6),
                                             ["--cache-policy", "none", "--layers", "3"]),
}


def arguments_of(case, options):
    devices, topology, more = CASES[case]
    path = options.work / "topology.json"
    path.write_text(json.dumps(topology))
    threads = [] if "--threads" in more else ["--threads", "2"]
    return ["--hidden", "64", "--devices", f"cpu:{devices}", "--topology", path, *threads,
            "--epochs", str(EPOCHS), *more]


def train(options, dataset, case, *more):
    """What ooc-train prints."""
    command = [options.programs / "ooc-train", dataset, *arguments_of(case, options), "--quiet",
               *more]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                            env=training.environment(options.work / "cache"))
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return result.stdout


def simulate(options, dataset, case, *more):
    return json.loads(train(options, dataset, case, "--simulate", "--json", *more))


def run_once(options, dataset, case):
    """Seconds of the passes of an epoch, and the simulation with their compute seconds."""
    run_dir = options.work / "run"
    train(options, dataset, case, "--run-dir", run_dir, "--force")
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    seconds = [sum(one["seconds"] for one in line["passes"]) for line in lines[1:]]
    median = statistics.median_low(seconds)
    chosen = lines[1:][seconds.index(median)]
    (options.work / "metrics.jsonl").write_text(json.dumps(chosen) + "\n")
    replayed = simulate(options, dataset, case, "--durations", options.work / "metrics.jsonl")
    return median, replayed["seconds"]


def main():
    parser = training.parser_of(__doc__)
    parser.add_argument("--vertices", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name has this")
    options = training.parse(parser)
    dataset = training.generate(options, "rmat", options.vertices, options.edges, options.features,
                                16)
    training.forget_rates(options)
    measured = {case: [] for case in CASES if options.only in case}
    for _ in range(options.turns):
        for case, runs in measured.items():
            runs.append(run_once(options, dataset, case))
    results, missed = training.Results("simulated", options), False
    for case, runs in measured.items():
        predicted = simulate(options, dataset, case)
        seconds = statistics.median(run for run, _ in runs)
        ratios = {"predicted": predicted["seconds"] / seconds,
                  "replayed": statistics.median(replay / run for run, replay in runs)}
        # Of the run's time.
        busy = max(link["busy"] for link in predicted["links"]) * ratios["predicted"]
        by_links = busy >= 0.6
        ratio, most = (ratios["predicted"], 0.15) if by_links else (ratios["replayed"], 0.10)
        fits = abs(ratio - 1) <= most
        missed |= not fits
        result = {"seconds": seconds, "simulated": predicted["seconds"], "link_busy": busy,
                  "plan": predicted["planned_seconds"],
                  **{f"{name}_ratio": value for name, value in ratios.items()}, "fits": fits}
        results.put(case, {"vertices": options.vertices, "edges": options.edges}, result)
        print(f"{case:40} {seconds:8.3f} s  link busy {busy:4.0%}  simulated "
              f"{ratios['predicted']:.2f}  replayed {ratios['replayed']:.2f}  "
              f"{'fits' if fits else 'MISSED'}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
