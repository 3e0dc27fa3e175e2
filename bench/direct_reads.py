#!/usr/bin/python3
"""Direct reads of a dataset's chunks beside fio's of the same ranges.

    bench/direct_reads.py [--dataset NAME.ooc] [--depth 8] [--rounds 5]

Reads every chunk of `features` and of `edges.in` past the page cache, `depth` at once: by
direct_read_bench (through io_uring, through threads with pread, and through io_uring with every
checksum compared) and by fio, which replays the same offsets and lengths with io_uring, O_DIRECT
and registered buffers. All take turns, and the first of a round changes, because disks drift.
Without --dataset it makes one with 2 GiB of features. Prints a table and writes
bench/results/direct-reads.json. Exit code 1 if a median ratio of io_uring to fio is below 0.9 or
more than one core is busy.

Needs fio (bin/install-dependencies --bench) and a build with -DOOC_BENCH=ON.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import ROOT, describe_machine  # noqa: E402

PROGRAMS = ROOT / "build/release/bin"
FILES = {"features": "tensor", "edges.in": "edges"}
OURS = {"io_uring": [], "pread": ["--threads"], "io_uring, verified": ["--verify"]}
PAGE = 4096


def run(command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def chunks_of(path, kind):
    lines = run([PROGRAMS / "direct_read_bench", path, kind, "--list"]).splitlines()
    return [tuple(map(int, line.split())) for line in lines]


def write_iolog(iolog, path, chunks, passes):
    """What fio replays: the ranges that we read, whole pages of them."""
    reads = [f"{path} read {offset} {-(-size // PAGE) * PAGE}" for offset, size in chunks]
    iolog.write_text("\n".join(["fio version 2 iolog", f"{path} add", f"{path} open",
                                *(reads * passes), f"{path} close"]) + "\n")


def read_with_fio(iolog, depth):
    report = json.loads(run([
        "fio", "--name=reads", "--readonly", "--rw=read", "--ioengine=io_uring", "--direct=1",
        "--fixedbufs", f"--iodepth={depth}", f"--read_iolog={iolog}", "--replay_no_stall=1",
        "--output-format=json"]))
    job = report["jobs"][0]
    return {
        "bytes_per_second": job["read"]["bw_bytes"],
        "cores": (job["usr_cpu"] + job["sys_cpu"]) / 100,
    }


def read_with_ours(path, kind, depth, passes, flags):
    result = json.loads(run([PROGRAMS / "direct_read_bench", path, kind, "--depth", depth,
                             "--passes", passes, *flags]))
    return {
        "way": result["way"],
        "bytes_per_second": result["bytes"] / result["seconds"],
        "cores": result["cpu_seconds"] / result["seconds"],
    }


def measure(path, kind, depth, rounds, iolog):
    chunks = chunks_of(path, kind)
    total = sum(size for _, size in chunks)
    passes = max(1, round(2e9 / total))
    write_iolog(iolog, path, chunks, passes)
    subjects = {"fio": lambda: read_with_fio(iolog, depth)}
    for name, flags in OURS.items():
        subjects[name] = lambda flags=flags: read_with_ours(path, kind, depth, passes, flags)
    names = list(subjects)
    runs = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            runs[name].append(subjects[name]())
    if any(r["way"] != "io_uring" for r in runs["io_uring"]):
        sys.exit("direct_reads.py: io_uring is refused here; there is nothing to compare")
    rates = {name: [r["bytes_per_second"] for r in runs[name]] for name in names}
    return {
        "file": path.name,
        "chunks": len(chunks),
        "mean_chunk_bytes": total // len(chunks),
        "bytes_per_run": total * passes,
        "ways": [{
            "way": name,
            "median_bytes_per_second": round(statistics.median(rates[name])),
            "median_ratio_to_fio": round(statistics.median(
                ours / fio for ours, fio in zip(rates[name], rates["fio"])), 3),
            "median_busy_cores": round(statistics.median(r["cores"] for r in runs[name]), 3),
            "bytes_per_second": [round(rate) for rate in rates[name]],
        } for name in names],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=pathlib.Path, help="default: make one")
    parser.add_argument("--depth", type=int, default=8, help="reads at once")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        work = pathlib.Path(name)
        dataset = arguments.dataset
        if dataset is None:
            dataset = work / "graph.ooc"
            run([PROGRAMS / "ooc-prep", "generate", "rmat", "--vertices", 8_000_000, "--edges",
                 100_000_000, "--features", 64, "--classes", 8, "-o", dataset, "--quiet"])
        results = [measure((dataset / file).resolve(), kind, arguments.depth, arguments.rounds,
                           work / "reads.iolog") for file, kind in FILES.items()]
    print("| file | mean chunk, MiB | way | MB/s | to fio | busy cores |")
    print("|---|---|---|---|---|---|")
    for result in results:
        for way in result["ways"]:
            print(f"| {result['file']} | {result['mean_chunk_bytes'] / 2**20:.2f} | {way['way']} "
                  f"| {way['median_bytes_per_second'] / 1e6:.0f} "
                  f"| {way['median_ratio_to_fio']:.2f} | {way['median_busy_cores']:.2f} |")
    report = {"machine": describe_machine(), "depth": arguments.depth,
              "rounds": arguments.rounds, "files": results}
    out = ROOT / "bench/results/direct-reads.json"
    out.write_text(json.dumps(report, indent=2) + "\n")
    uring = [way for result in results for way in result["ways"] if way["way"] == "io_uring"]
    return any(way["median_ratio_to_fio"] < 0.9 or way["median_busy_cores"] >= 1 for way in uring)


if __name__ == "__main__":
    sys.exit(main())
