#!/usr/bin/python3
"""Import of an R-MAT graph within little memory, beside the disk.

    bench/import_rate.py [--vertices N] [--edges N] [--features N] [--memory 1GiB] [--rounds 3]

Makes a directed R-MAT graph with NumPy (int64 edges, fp32 features), imports it several times with
--memory, and prints edges a second, the peak resident set, and how far the time is from the bound:
the bytes that must move (input read; sorted keys of both directions written and read again, 8
bytes each; the dataset written) over what fio gets from the same disk in the same run. The bound
takes reads and writes one after the other, and every input from the disk; where the machine has
inputs in its cache, the time can be below it. Then the dataset is verified. Writes
bench/results/import-rate.json.

Needs fio (bin/install-dependencies --bench). With the defaults about 20 GiB of disk.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import ROOT, describe_machine  # noqa: E402

PREP = ROOT / "build/release/bin/ooc-prep"
CORNERS = (0.57, 0.76, 0.95)  # a, a + b, a + b + c
BATCH = 4_000_000


def write_rmat(directory, vertices, edges, features, seed=1):
    random = np.random.default_rng(seed)
    create = np.lib.format.open_memmap
    array = create(directory / "edges.npy", mode="w+", dtype="<i8", shape=(edges, 2))
    levels = (vertices - 1).bit_length()
    for begin in range(0, edges, BATCH):
        count = min(BATCH, edges - begin)
        ends = np.zeros((count, 2), np.int64)
        for _ in range(levels):
            corner = np.searchsorted(CORNERS, random.random(count, dtype=np.float32), side="right")
            ends = ends * 2 + np.stack([corner >> 1, corner & 1], axis=1)
        array[begin : begin + count] = ends % vertices
    array.flush()
    array = create(directory / "features.npy", mode="w+", dtype="<f4", shape=(vertices, features))
    for begin in range(0, vertices, BATCH // 8):
        rows = array[begin : begin + BATCH // 8]
        rows[:] = random.standard_normal(rows.shape, dtype=np.float32)
    array.flush()


def disk_rate(directory, direction):
    """Bytes a second that fio moves past the page cache, 4 MiB at a time, 8 at once."""
    report = json.loads(subprocess.run([
        "fio", "--name=disk", f"--filename={directory}/fio", f"--rw={direction}", "--size=4G",
        "--bs=4M", "--direct=1", "--ioengine=io_uring", "--iodepth=8", "--output-format=json",
    ], check=True, capture_output=True, text=True).stdout)
    return report["jobs"][0][direction]["bw_bytes"]


def timed(command):
    begin = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed")
    return {
        "seconds": time.monotonic() - begin,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_resident_bytes": usage.ru_maxrss * 1024,
    }


def bytes_of(directory):
    return sum(path.stat().st_size for path in directory.iterdir())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=12_500_000)
    parser.add_argument("--edges", type=int, default=200_000_000)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", default=None, help="directory for the graph and the dataset")
    parser.add_argument("--graph", type=pathlib.Path, help="one that was made before, of this size")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work, prefix="ooc-import-") as name:
        work = pathlib.Path(name)
        graph, dataset = options.graph or work / "graph", work / "graph.ooc"
        if not options.graph:
            graph.mkdir()
            write_rmat(graph, options.vertices, options.edges, options.features)
        rates = {"read": [], "write": []}
        runs = []
        for _ in range(options.rounds):
            for direction in ("write", "read"):
                rates[direction].append(disk_rate(work, direction))
            (work / "fio").unlink()
            subprocess.run(["rm", "-rf", dataset], check=True)
            runs.append(timed([PREP, "import", graph, "-o", dataset, "--memory", options.memory,
                               "--quiet"]))
        moved = {
            "input": bytes_of(graph),
            "sorted_written_and_read": 2 * 8 * options.edges,
            "dataset": bytes_of(dataset),
        }
        subprocess.run([PREP, "verify", dataset, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
    read, write = (statistics.median(rates[direction]) for direction in ("read", "write"))
    bound = ((moved["input"] + moved["sorted_written_and_read"]) / read +
             (moved["sorted_written_and_read"] + moved["dataset"]) / write)
    seconds = statistics.median(run["seconds"] for run in runs)
    result = {
        "machine": describe_machine(),
        "vertices": options.vertices, "edges": options.edges, "features": options.features,
        "memory": options.memory,
        "runs": runs,
        "edges_per_second": options.edges / seconds,
        "peak_resident_bytes": max(run["peak_resident_bytes"] for run in runs),
        "bytes": moved,
        "disk_bytes_per_second": {"read": read, "write": write},
        "bound_seconds": bound,
        "seconds_over_bound": seconds / bound,
    }
    path = ROOT / "bench/results/import-rate.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"{options.edges:,} edges, {options.features} features, --memory {options.memory}")
    print("seconds          " + ", ".join(f"{run['seconds']:.1f}" for run in runs))
    print(f"edges a second   {result['edges_per_second'] / 1e6:.1f} M")
    print(f"CPU seconds      {statistics.median(r['cpu_seconds'] for r in runs):.1f}")
    print(f"peak resident    {result['peak_resident_bytes'] / 2**20:.0f} MiB")
    print(f"disk             {read / 1e6:.0f} MB/s read, {write / 1e6:.0f} MB/s written")
    print(f"bytes            {', '.join(f'{v / 1e9:.1f} GB {k}' for k, v in moved.items())}")
    print(f"bound            {bound:.1f} s; this is {result['seconds_over_bound']:.2f} of it")


if __name__ == "__main__":
    main()
