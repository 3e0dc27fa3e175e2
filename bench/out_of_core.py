#!/usr/bin/python3
"""Training within a memory limit, beside the disk and beside training in memory.

    bench/out_of_core.py [--cases gcn-2,sage-3-1GiB] [--vertices N] [--edges N] [--budgets LIST]
                         [--seconds S] [--disk-rate 1]

Generates a planted-class graph and trains GCN and SAGE of 2 and 3 layers on it with each
`--host-memory`, inside a memory cgroup of 1.5 times that (needs root), and without a limit beside
it, turn by turn: an epoch of one while the other stands still; both are told to go on for 100.
Behind each pair of epochs fio moves as many bytes as the run did, at its mix of reads and writes,
past the page cache, 2 MiB a request, 16 at once, in huge pages, in a file as large as the tensors
that the run reads and writes; then it does so while an epoch in memory goes on: what both take at
once, with nothing to wait for, is the least this machine needs. Epochs are whole, evaluation
included; the first one warms up, and then turns go on for --seconds, 150, and two at least. For
each case:

- the losses and metrics of all epochs are bit-equal to those of the run without a limit;
- seconds an epoch over the larger of fio's and the epoch in memory: 1.25 at most;
- bytes moved over the plan's: 1.05 at most;
- predicted over measured seconds: 0.8 to 1.2;
- the peak resident set is within --host-memory, and nothing was killed.

Prints a table; exit code 1 where a goal is missed. Each case goes to bench/results/out-of-core.json
at once, and what is there of the same programs is not measured again (--again does). --cases takes
beginnings of names. A disk that is shared changes from turn to turn: --disk-rate holds it, for all
that is measured, and has a file of its own. Needs fio (bin/install-dependencies --bench) and 40 GB
of disk. The defaults take more than an hour on two cores. Nothing else should run.
"""

import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import training
from training import MIB, parse_size
from turns import Run

MODELS = ["gcn", "sage"]
LAYERS = [2, 3]
LEAST_TURNS = 2  # after the warm-up
CGROUP = 1.5
GOALS = {"time": 1.25, "bytes": 1.05, "prediction": 0.2}


def measure_case(options, dataset, arguments, budget):
    limit = int(CGROUP * parse_size(budget))
    disk, at_once = [], []
    with Run(options, dataset, "unlimited", arguments) as unlimited, \
            Run(options, dataset, "limited", [*arguments, "--host-memory", budget],
                limit) as limited:
        for _ in turns(options.seconds):
            run_unlimited(unlimited)
            if not limited.epoch():
                return limited.result()
            moved = (*limited.moved(), limited.input_bytes())
            disk.append(training.disk_seconds(options, *moved) if sum(moved[:2]) > 0 else 0)
            at_once.append(seconds_beside_disk(options, unlimited, moved))
        result, in_memory = limited.result(), unlimited.result()
    if in_memory["bytes_read"] + in_memory["bytes_written"] > 0:
        print("without a limit bytes moved, too: there is too little memory to compare with",
              file=sys.stderr)
    in_memory["curve"] = in_memory["curve"][:len(result["curve"])]
    steady = slice(training.WARM_UP, None)
    in_memory["epoch_seconds"] = statistics.mean(unlimited.seconds[::2][steady])
    result["unlimited"] = in_memory
    result["in_memory_seconds"] = in_memory["epoch_seconds"]
    result["disk_seconds"] = statistics.mean(disk[steady])
    result["at_once_seconds"] = statistics.mean(at_once[steady])
    result["turns"] = {"epoch": limited.seconds, "disk": disk, "at_once": at_once}
    figures, missed = judge(result, in_memory, parse_size(budget))
    result.update(figures=figures, missed=missed)
    return result


def turns(seconds):
    """The warm-up, and as many as it takes: a shared disk's rate may change by half every ten or
    twenty seconds, and short epochs are in one of its states or the other."""
    yield
    begin, count = time.monotonic(), 0
    while count < LEAST_TURNS or time.monotonic() - begin < seconds:
        yield
        count += 1


def run_unlimited(run):
    if not run.epoch():
        sys.exit(f"without a limit: {run.error()}")


def seconds_beside_disk(options, unlimited, moved):
    """Of an epoch in memory or of fio, which moves as many bytes as the run: begun at once, the
    longer one counts."""
    if sum(moved[:2]) == 0:
        run_unlimited(unlimited)
        return unlimited.seconds[-1]
    with ThreadPoolExecutor() as pool:
        disk = pool.submit(training.disk_seconds, options, *moved)
        run_unlimited(unlimited)
        return max(unlimited.seconds[-1], disk.result())


def judge(result, in_memory, budget_bytes):
    """The figures that the goals are about, and the names of the goals that are missed."""
    moved = result["bytes_read"] + result["bytes_written"]
    bound = max(result["disk_seconds"], result["in_memory_seconds"])
    predicted = result["plan_predicted_bytes"]
    figures = {
        "time": result["epoch_seconds"] / bound,
        "bytes": result["most_bytes"] / predicted if predicted else float(bool(moved)),
        "prediction": result["plan_predicted_seconds"] / result["epoch_seconds"],
    }
    missed = [name for name in ("time", "bytes") if figures[name] > GOALS[name]]
    if abs(figures["prediction"] - 1) > GOALS["prediction"]:
        missed.append("prediction")
    if result["curve"] != in_memory["curve"]:
        missed.append("losses")
    if result["peak_host_bytes"] > budget_bytes:
        missed.append("memory")
    return figures, missed


def print_header():
    print("| case | epoch, s | in memory, s | bytes / fio, s | both at once, s | to bound "
          "| GB read | GB written | to plan | predicted / measured | peak, MiB | busy | missed |")
    print("|---|" + "---|" * 12, flush=True)


def print_case(name, result):
    """Returns whether all goals are met."""
    if result["exit_code"] != 0:
        print(f"| {name} | exit code {result['exit_code']}: {result['error']} |", flush=True)
        return False
    figures, missed = result["figures"], result["missed"]
    print(f"| {name} | {result['epoch_seconds']:.2f} | {result['in_memory_seconds']:.2f} "
          f"| {result['disk_seconds']:.2f} | {result['at_once_seconds']:.2f} "
          f"| {figures['time']:.2f} "
          f"| {result['bytes_read'] / 1e9:.2f} | {result['bytes_written'] / 1e9:.2f} "
          f"| {figures['bytes']:.3f} | {figures['prediction']:.2f} "
          f"| {result['peak_host_bytes'] / MIB:.0f} | {result['cpu_busy']:.2f} "
          f"| {', '.join(missed) or '-'} |", flush=True)
    return not missed


def measure_model(options, results, model, layers, chosen):
    """All cases of one model; true where all goals are met."""
    settings = {name: getattr(options, name)
                for name in ("vertices", "edges", "features", "classes", "hidden")}
    cases = {f"{model}-{layers}-{budget}": budget for budget in options.budgets.split(",")}
    cases = {name: budget for name, budget in cases.items() if chosen(name)}
    if not cases:
        return True
    dataset = training.generate(options, "sbm", options.vertices, options.edges, options.features,
                                options.classes)
    arguments = ["--model", model, "--layers", layers, "--hidden", options.hidden]
    good = True
    for name, budget in cases.items():
        result = results.get(name, settings)
        if result is None:
            result = measure_case(options, dataset, arguments, budget)
            results.put(name, settings, result)
        good &= print_case(name, result)
    return good


def main():
    parser = training.parser_of(__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=4_000_000)
    parser.add_argument("--edges", type=int, default=60_000_000, help="undirected")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--budgets", default="1GiB,512MiB,256MiB")
    parser.add_argument("--seconds", type=float, default=150, help="turns of a case, all together")
    parser.add_argument("--cases", default="", help="beginnings of names, such as gcn-2")
    options = training.parse(parser)
    beginnings = tuple(options.cases.split(","))
    results = training.Results("out-of-core", options)
    print_header()
    good = True
    for model in MODELS:
        for layers in LAYERS:
            good &= measure_model(options, results, model, layers,
                                  lambda name: name.startswith(beginnings))
    training.finish(options)
    return not good


if __name__ == "__main__":
    sys.exit(main())
