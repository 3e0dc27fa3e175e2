#!/usr/bin/python3
"""Sampled training in a memory budget, beside what bounds it.

    bench/sampling_out_of_core.py DATASET.ooc [--cases 25,10@2GiB,15,10,5@4GiB] [--turns 3]

Trains SAGE (hidden 128, batches of 1,000 seeds) in each budget, inside a memory cgroup of 1.25
times that (root). In turn with its epochs: an epoch of the same training from memory (--io mapped,
no budget), and fio moving as many bytes at the same mix of reads and writes. The bound of an epoch
is the longer of the two. Also what fio does of random reads of 4 KiB at depth 64, and how long the
rows that the batches take would need at that rate. notes/sampling.md says how the graph was made.
Prints a table and writes bench/results/sampling-out-of-core.json; a figure that falls short is exit
code 1.
"""

import json
import statistics
import sys

import training
from accuracy import run
from training import MIB, parse_size
from turns import Run

CASES = "25,10@4GiB 25,10@2GiB 15,10,5@4GiB 15,10,5@2GiB"
CGROUP = 1.25
GOALS = {"to_bound": 1.3, "to_plan": 1.02, "mean_read_mib": 1, "to_random_reads": 5}


def last_line(subject):
    return json.loads((subject.run_dir / "metrics.jsonl").read_text().splitlines()[-1])


def superbatches(line):
    return [superbatch for of in line["passes"] for superbatch in of.get("superbatches", [])
            if of["name"].startswith("training")]


def disk_reads(directory):
    """Reads that the disk below has done, and their bytes: what a large one is cut into counts."""
    device = run("findmnt", "-no", "SOURCE", "-T", directory).strip().split("/")[-1]
    fields = open(f"/sys/class/block/{device}/stat").read().split()
    return int(fields[0]), int(fields[2]) * 512


def random_reads(options, dataset):
    """Of 4 KiB a second."""
    report = json.loads(run(
        "fio", "--name=random", "--readonly", f"--filename={dataset / 'features'}",
        "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=64",
        "--runtime=10", "--time_based", "--output-format=json"))
    return report["jobs"][0]["read"]["iops"]


def measure_case(options, fanouts, budget):
    arguments = ["--model", "sage", "--hidden", 128, "--batch-size", 1000, "--fanouts", fanouts,
                 "--layers", fanouts.count(",") + 1, "--eval-every", 1000]
    limit = int(CGROUP * parse_size(budget))
    disk, reads = [], []
    with Run(options, options.dataset, "memory", [*arguments, "--io", "mapped"]) as memory, \
            Run(options, options.dataset, "limited", [*arguments, "--host-memory", budget],
                limit) as limited:
        for _ in range(options.turns + training.WARM_UP):
            memory.epoch()
            before = disk_reads(options.work)
            if not limited.epoch():
                return {"error": limited.error(), "exit_code": limited.process.returncode}
            after = disk_reads(options.work)
            reads.append((after[1] - before[1]) / max(1, after[0] - before[0]))
            line = last_line(limited)
            moved = line["bytes_read"], line["bytes_written"]
            disk.append(training.disk_seconds(options, *moved, 0))
        line = last_line(limited)
        peak = limited.group.peak()
        for subject in (memory, limited):
            subject.interrupt()
        same = last_line(memory)["loss"] == line["loss"]
    made = superbatches(line)
    planned = sum(one["planned_read"] + one["planned_written"] for one in made)
    steady = slice(training.WARM_UP, None)
    return {
        "epoch_seconds": statistics.mean(limited.seconds[steady]),
        "memory_seconds": statistics.mean(memory.seconds[steady]),
        "disk_seconds": statistics.mean(disk[steady]),
        "turns": {"epoch": limited.seconds, "memory": memory.seconds, "disk": disk},
        "bytes_read": moved[0], "bytes_written": moved[1], "planned_bytes": planned,
        "mean_read_bytes": statistics.mean(reads[steady]),
        "rows": sum(one["vertices"] for one in made),
        "peak_host_bytes": line["peak_host_bytes"], "peak_cgroup_bytes": peak,
        "losses_are_equal": same,
        "passes": {of["name"]: of["seconds"] for of in line["passes"]},
    }


def judge(result, iops, budget):
    bound = max(result["memory_seconds"], result["disk_seconds"])
    moved = result["bytes_read"] + result["bytes_written"]
    figures = {
        "to_bound": result["epoch_seconds"] / bound,
        "to_plan": moved / result["planned_bytes"],
        "mean_read_mib": result["mean_read_bytes"] / MIB,
        "to_random_reads": result["rows"] / iops / result["epoch_seconds"],
    }
    missed = [name for name, goal in GOALS.items()
              if (figures[name] > goal if name in ("to_bound", "to_plan")
                  else figures[name] < goal)]
    if result["peak_host_bytes"] > parse_size(budget):
        missed.append("budget")
    if not result["losses_are_equal"]:
        missed.append("losses")
    return figures, missed


def main():
    parser = training.parser_of(__doc__.splitlines()[0])
    parser.add_argument("dataset", type=lambda path: training.pathlib.Path(path).resolve())
    parser.add_argument("--cases", default=CASES, help="FANOUTS@BUDGET, with spaces between")
    parser.add_argument("--turns", type=int, default=3)
    options = training.parse(parser)
    results = training.Results("sampling-out-of-core", options)
    iops = random_reads(options, options.dataset)
    settings = {"dataset": options.dataset.name, "turns": options.turns}
    print(f"random reads of 4 KiB: {iops:,.0f} a second\n")
    print("| fan-outs, budget | epoch, s | from memory | fio | to bound | to plan | mean read, MiB "
          "| random reads would take | peak, MiB | missed |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    short = False
    for name in options.cases.split():
        fanouts, budget = name.split("@")
        result = results.get(name, settings)
        if result is None:
            result = measure_case(options, fanouts, budget)
            if "error" not in result:
                result["figures"], result["missed"] = judge(result, iops, budget)
                result["random_reads_per_second"] = iops
            results.put(name, settings, result)
        if "error" in result:
            print(f"| {name} | exit {result['exit_code']} {result['error'][-200:]} |", flush=True)
            short = True
            continue
        figures = result["figures"]
        print(f"| {name} | {result['epoch_seconds']:.1f} | {result['memory_seconds']:.1f} "
              f"| {result['disk_seconds']:.1f} | {figures['to_bound']:.2f} "
              f"| {figures['to_plan']:.3f} | {figures['mean_read_mib']:.2f} "
              f"| {figures['to_random_reads']:.1f} times | {result['peak_host_bytes'] >> 20} "
              f"| {', '.join(result['missed'])} |", flush=True)
        short = short or bool(result["missed"])
    return short


if __name__ == "__main__":
    sys.exit(main())
