"""What the benches of training out of core share: options, graphs, runs inside a memory limit,
fio at a run's own mix of reads and writes, and results that outlive an interrupted bench."""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import disk_rate  # noqa: E402
from accuracy import ROOT, describe_machine, run  # noqa: E402
from memory_limit import MemoryCgroup, parse_size  # noqa: E402, F401

MIB, GIB = 1 << 20, 1 << 30
# The first epoch warms up: what stays in memory comes in.
WARM_UP = 1
WAITS = ("compute_busy", "read_wait_seconds", "write_wait_seconds", "compute_wait_seconds")


def parser_of(description):
    """A parser with the options that all these benches have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench",
                        help="where graphs and runs go; graphs stay there")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    parser.add_argument("--disk-rate", type=float, metavar="GB/S",
                        help="hold the disk at so much in either direction, for fio, too (root)")
    return parser


def parse(parser):
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.disk_rate:
        disk_rate.hold(options.work, 1e9 * options.disk_rate)
    return options


class Results:
    """bench/results/<name>.json: cases by name, written as each is done. A case counts only for the
    programs and the settings that it was measured with. With --disk-rate in a file of its own."""

    def __init__(self, name, options):
        held = f"-{options.disk_rate:g}-GB-s" if options.disk_rate else ""
        self.path = ROOT / "bench/results" / f"{name}{held}.json"
        self.again = options.again
        self.programs = hashlib.sha256(
            (options.programs / "ooc-train").read_bytes()).hexdigest()[:16]
        self.done = set()
        self.report = {"cases": {}}
        if self.path.exists():
            self.report = json.loads(self.path.read_text())

    def get(self, name, settings):
        case = self.report["cases"].get(name)
        if case is None or (self.again and name not in self.done):
            return None
        same = case["programs"] == self.programs and case["settings"] == settings
        return case["result"] if same else None

    def put(self, name, settings, result):
        self.done.add(name)
        self.report["machine"] = describe_machine()
        self.report["cases"][name] = {
            "programs": self.programs, "settings": settings, "result": result}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.report, indent=2) + "\n")
        new.replace(self.path)


def generate(options, kind, vertices, edges, features, classes):
    """The dataset, made unless it is there; `edges` are undirected."""
    dataset = options.work / f"{kind}-{vertices}-{edges}-{features}-{classes}.ooc"
    if not dataset.exists():
        print(f"generating {dataset.name}", file=sys.stderr, flush=True)
        run(options.programs / "ooc-prep", "generate", kind, "--vertices", vertices, "--edges",
            edges, "--features", features, "--classes", classes, "-o", dataset, "--quiet")
    return dataset


def environment(cache):
    """As users have it: OpenBLAS picks its kernels for the machine, whatever it was told to here.
    The machine's rates are measured in this bench and kept in `cache`, not of an earlier day."""
    free = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    return {**free, "XDG_CACHE_HOME": str(cache)}


def forget_rates(options):
    """What runs next measures them anew."""
    shutil.rmtree(options.work / "cache", ignore_errors=True)


def plan(options, *arguments):
    """What `ooc-train --plan --json` prints; None where the budget is too small (exit 4)."""
    command = [options.programs / "ooc-train", *map(str, arguments), "--plan", "--json", "--quiet"]
    result = subprocess.run(command, capture_output=True, text=True,
                            env=environment(options.work / "cache"))
    if result.returncode == 4:
        return None
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return json.loads(result.stdout)


def train(options, dataset, arguments, limit_bytes=None):
    """Trains within a cgroup of `limit_bytes`, if given, and says how it went. The run's directory
    and its scratch lie beside the dataset and are gone afterwards, but for a run that failed."""
    run_dir = options.work / "run"
    shutil.rmtree(run_dir, ignore_errors=True)
    command = [options.programs / "ooc-train", dataset, "--run-dir", run_dir, "--quiet",
               *map(str, arguments)]
    how = {"capture_output": True, "text": True, "env": environment(options.work / "cache")}
    group_peak = None
    if limit_bytes is None:
        process = subprocess.run(command, **how)
    else:
        with MemoryCgroup(f"ooc-bench-{os.getpid()}", limit_bytes) as group:
            process = subprocess.run(command, preexec_fn=group.enter, **how)
            group_peak = group.peak()
    result = {"exit_code": process.returncode, "error": process.stderr.strip()[-500:],
              "peak_cgroup_bytes": group_peak}
    if process.returncode == 0:
        result.update(read_run(run_dir))
        shutil.rmtree(run_dir)
    return result


def read_run(run_dir, seconds=None):
    """What a run says of itself; means over the epochs after the warm-up. `seconds`: what each
    epoch took of a run that stood still between them, while its own clocks went on."""
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    for line, taken in zip(lines, seconds or []):
        line["seconds"] = taken
    lines = lines[:len(seconds)] if seconds else lines  # no epoch that it finished before it ended
    steady = lines[WARM_UP:]
    curve = ("epoch", "loss", "train", "valid", "test", "valid_loss")
    return {
        "curve": [[line[key] for key in curve] for line in lines],
        "warm_up_seconds": sum(line["seconds"] for line in lines[:WARM_UP]),
        "epoch_seconds": statistics.mean(line["seconds"] for line in steady),
        "bytes_read": statistics.mean(line["bytes_read"] for line in steady),
        "bytes_written": statistics.mean(line["bytes_written"] for line in steady),
        "link_bytes": statistics.mean(
            line["bytes_to_device"] + line["bytes_from_device"] for line in steady),
        "most_bytes": max(line["bytes_read"] + line["bytes_written"] for line in steady),
        "peak_host_bytes": max(line["peak_host_bytes"] for line in lines),
        "peak_device_bytes": max(line["peak_device_bytes"] for line in lines),
        **({key: steady[-1].get(key) for key in WAITS} if seconds is None else {}),
        **plan_figures(json.loads((run_dir / "plan.json").read_text())),
    }


def plan_figures(document):
    """Bytes of an epoch by the plan and by the optimum of its linear program, from and to storage
    and over the link to a device, and of all the vertex tensors that an epoch's passes share."""
    epoch = document["epoch"]
    return {
        "plan_predicted_bytes": document["bytes_read_per_epoch"]
        + document["bytes_written_per_epoch"],
        "plan_predicted_seconds": epoch["seconds"],
        "plan_lower_bound_seconds": epoch["bound_seconds"],
        "plan_bytes_read": document["bytes_read_per_epoch"],
        "plan_bytes_written": document["bytes_written_per_epoch"],
        "plan_bound_bytes": epoch["bound_bytes"],
        "plan_link_bytes": document["bytes_to_device_per_epoch"]
        + document["bytes_from_device_per_epoch"],
        "plan_bound_link_bytes": epoch.get("bound_link_bytes"),
        "plan_remark": epoch.get("remark"),
        "blas_core": document["blas_core"],
        "vertex_tensor_bytes": sum(tensor["bytes"] for tensor in epoch["tensors"]),
        "input_bytes": sum(tensor["bytes"] for tensor in epoch["tensors"] if tensor["input"]),
    }


class HugePages:
    """So many huge pages more, for programs that ask for them, while this is entered (root)."""

    PATH = pathlib.Path("/proc/sys/vm/nr_hugepages")

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        """Whether there are."""
        self.before = None
        try:
            before = int(self.PATH.read_text())
            self.PATH.write_text(str(before + self.count))
            self.before = before
            return int(self.PATH.read_text()) >= before + self.count
        except OSError:
            return False

    def __exit__(self, *_):
        if self.before is not None:
            self.PATH.write_text(str(self.before))


def disk_seconds(options, bytes_read, bytes_written, input_bytes):
    """What fio takes to move as many bytes past the page cache at this mix, by its own clock: 2 MiB
    a request, 16 at once, from and into huge pages as ooc's are where there are any: with small
    ones this disk is a third slower. Its file is as large as the tensors of a run which writes so
    much and has so much to read besides, in whole GiB: of a small one a cache below the disk would
    hold more. It is written once before: blocks that never were are moved at other rates."""
    moved = bytes_read + bytes_written
    share = round(100 * bytes_read / moved)
    mix = {100: ["--rw=read"], 0: ["--rw=write"]}
    file, file_bytes = options.work / "fio", round(bytes_written + input_bytes) // GIB * GIB + GIB
    fio = ["fio", "--name=disk", f"--filename={file}", f"--size={file_bytes}", "--bs=2M",
           "--direct=1", "--ioengine=io_uring", "--iodepth=16", "--output-format=json"]
    if not file.exists() or file.stat().st_size < file_bytes:
        run(*fio, "--rw=write")
    with HugePages(32) as huge:
        memory = ["--iomem=shmhuge"] if huge else []
        if not huge:
            print("no huge pages for fio (root?): small ones, with which it is slower",
                  file=sys.stderr, flush=True)
        report = json.loads(run(*fio, *memory, f"--io_size={round(moved)}",
                                *mix.get(share, ["--rw=rw", f"--rwmixread={share}"])))
    job = report["jobs"][0]
    assert job["read"]["io_bytes"] + job["write"]["io_bytes"] > 0.99 * moved, job
    return job["job_runtime"] / 1000


def finish(options):
    (options.work / "fio").unlink(missing_ok=True)
    print(f"\ngraphs are kept in {options.work}: "
          f"{sum(p.stat().st_size for p in options.work.rglob('*') if p.is_file()) / 1e9:.1f} GB",
          file=sys.stderr)
