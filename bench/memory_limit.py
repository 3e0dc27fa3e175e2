#!/usr/bin/python3
"""Import and training inside a memory limit that the kernel enforces.

    bench/memory_limit.py [--limit 4GiB] [--vertices N] [--edges N] [--features N]

Makes a random graph as NumPy files (int64 edges, each undirected edge once; fp32 features), imports
it with --undirected and trains a GCN on it for three epochs, both programs in one memory cgroup
(version 1 or 2; needs root), so that the dataset's pages count against the limit as well. A program
that needs more than the limit is killed, and that is the result. Prints a table and writes
bench/results/memory-limit.json.

The peak is the kernel's for the cgroup up to the program's end: anonymous memory and the page cache
of the files that it reads and writes. The cache fills what is free, so a peak at the limit is no
sign of need; the peak resident set beside it is the program's own.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import ROOT, describe_machine  # noqa: E402


class MemoryCgroup:
    """A cgroup with a memory limit, of either version; removed at the end."""

    def __init__(self, name, limit):
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        self.is_v1 = v1.is_dir()
        self.path = (v1 if self.is_v1 else pathlib.Path("/sys/fs/cgroup")) / name
        self.path.mkdir()
        self.write("memory.limit_in_bytes" if self.is_v1 else "memory.max", limit)

    def write(self, file, value):
        (self.path / file).write_text(str(value))

    def enter(self):
        self.write("cgroup.procs", os.getpid())

    def peak(self):
        return int((self.path / ("memory.max_usage_in_bytes" if self.is_v1 else "memory.peak"))
                   .read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.path.rmdir()


def parse_size(text):
    number, unit = re.fullmatch(r"([\d.]+)([KMGT]?)(?:iB)?", text).groups()
    return int(float(number) * 1024 ** " KMGT".index(unit or " "))


def make_graph(directory, vertices, edges, features):
    generator = np.random.default_rng(1)
    np.save(directory / "edges.npy", generator.integers(0, vertices, (edges, 2), dtype=np.int64))
    np.save(directory / "features.npy",
            generator.standard_normal((vertices, features), dtype=np.float32))
    np.save(directory / "labels.npy", generator.integers(0, 16, vertices))
    order = generator.permutation(vertices)
    for name, part in zip(("train", "valid", "test"), np.split(order, [vertices // 10,
                                                                      vertices // 5])):
        np.save(directory / f"{name}_idx.npy", part)


def run_limited(group, name, command):
    begin = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    result = subprocess.run(command, preexec_fn=group.enter, capture_output=True, text=True)
    peak_resident = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {
        "program": name,
        "exit_code": result.returncode,
        "seconds": round(time.monotonic() - begin, 1),
        "peak_cgroup_bytes": group.peak(),
        # The largest of all children so far: exact where it grew.
        "peak_resident_bytes": peak_resident if peak_resident > before * 1024 else None,
        "error": result.stderr.strip().splitlines()[-1:] if result.returncode else [],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", default="4GiB", help="of both programs (default 4GiB)")
    parser.add_argument("--vertices", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000, help="undirected edges")
    parser.add_argument("--features", type=int, default=64)
    arguments = parser.parse_args()
    limit = parse_size(arguments.limit)
    programs = ROOT / "build/release/bin"
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        work = pathlib.Path(name)
        dataset = work / "graph.ooc"
        (work / "graph").mkdir()
        make_graph(work / "graph", arguments.vertices, arguments.edges, arguments.features)
        imports = [programs / "ooc-prep", "import", work / "graph", "--undirected", "-o", dataset]
        trains = [programs / "ooc-train", dataset, "--epochs", "3", "--run-dir", work / "run"]
        with MemoryCgroup(f"ooc-bench-{os.getpid()}", limit) as group:
            results = [
                run_limited(group, "import", imports),
                run_limited(group, "train", trains),
            ]
        summary = work / "run/summary.json"
        epoch = None
        if summary.exists():
            epoch = json.loads(summary.read_text())["epoch_seconds_median"]
    print("| program | exit | seconds | peak of the cgroup, MiB | peak resident, MiB |")
    print("|---|---|---|---|---|")
    for result in results:
        resident = result["peak_resident_bytes"]
        print(f"| {result['program']} | {result['exit_code']} | {result['seconds']} "
              f"| {result['peak_cgroup_bytes'] >> 20} | {resident >> 20 if resident else '-'} |")
    if epoch:
        print(f"\nmedian epoch {epoch:.2f} s")
    report = {
        "machine": describe_machine(),
        "limit_bytes": limit,
        "vertices": arguments.vertices,
        "undirected_edges": arguments.edges,
        "features": arguments.features,
        "epoch_seconds_median": epoch,
        "results": results,
    }
    out = ROOT / "bench/results/memory-limit.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")
    return any(result["exit_code"] for result in results)


if __name__ == "__main__":
    sys.exit(main())
