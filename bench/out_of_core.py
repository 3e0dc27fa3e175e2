#!/usr/bin/python3
"""Training within a memory limit, beside the disk and beside training in memory.

    bench/out_of_core.py [--cases gcn-2,sage-3-1GiB] [--vertices N] [--edges N] [--budgets LIST]

Generates a planted-class graph and trains GCN and SAGE of 2 and 3 layers on it with each
`--host-memory`, inside a memory cgroup of 1.5 times that (needs root), and without a limit before
and behind each of these: a shared machine's pace changes within minutes. Behind every limited run
fio measures the disk at the mix of reads and writes that the run had, past the page cache, 2 MiB a
request, 16 at once, in huge pages. Epochs are whole, evaluation included; the first one warms up.
For each case:

- the losses and metrics of all epochs are bit-equal to those of the runs without a limit;
- seconds an epoch over the larger of bytes / fio's rate and the epoch in memory (the mean of the
  run before and the one behind): 1.25 at most;
- bytes moved over the plan's: 1.05 at most;
- predicted over measured seconds: 0.8 to 1.2;
- the peak resident set is within --host-memory, and nothing was killed.

Prints a table; exit code 1 where a goal is missed. Each case goes to bench/results/out-of-core.json
at once, and what is there of the same programs is not measured again (--again does). --cases takes
beginnings of names. Needs fio (bin/install-dependencies --bench) and 15 GB of disk. The defaults
take about 50 minutes on two cores. Nothing else should run.
"""

import sys

import training
from training import MIB, parse_size

MODELS = ["gcn", "sage"]
LAYERS = [2, 3]
EPOCHS = training.WARM_UP + 2
CGROUP = 1.5
GOALS = {"time": 1.25, "bytes": 1.05, "prediction": 0.2}


def arguments_of(model, layers, options):
    return ["--model", model, "--layers", layers, "--hidden", options.hidden, "--epochs", EPOCHS]


def train(options, dataset, arguments, limit_bytes=None):
    """The rates are measured for each run, just before it: a shared machine's pace changes in
    minutes, and a prediction is compared with what follows."""
    training.forget_rates(options)
    return training.train(options, dataset, arguments, limit_bytes)


def measure_limited(options, dataset, arguments, budget):
    limit = int(CGROUP * parse_size(budget))
    result = train(options, dataset, [*arguments, "--host-memory", budget], limit)
    if result["exit_code"] == 0 and result["bytes_read"] + result["bytes_written"] > 0:
        result["disk_bytes_per_second"] = training.disk_rate(
            options, result["bytes_read"], result["bytes_written"])
    return result


class Unlimited(Exception):
    """A run without a limit failed."""


class References:
    """Runs without a limit, of one model: one before a case and one behind it, which is the next
    one's before."""

    def __init__(self, options, dataset, arguments, keep):
        self.options, self.dataset, self.arguments = options, dataset, arguments
        self.keep = keep
        self.last = None

    def before(self):
        return self.last or self.behind()

    def behind(self):
        self.last = None
        result = train(self.options, self.dataset, self.arguments)
        if result["exit_code"] != 0:
            raise Unlimited(f"without a limit: exit code {result['exit_code']}: {result['error']}")
        if result["bytes_read"] + result["bytes_written"] > 0:
            print("without a limit bytes moved, too: there is too little memory to compare with",
                  file=sys.stderr)
        self.keep(result)
        self.last = result
        return result


def measure_case(options, references, dataset, arguments, budget):
    before = references.before()
    result = measure_limited(options, dataset, arguments, budget)
    behind = references.behind()
    if result["exit_code"] == 0:
        around = [before["epoch_seconds"], behind["epoch_seconds"]]
        result.update(around_seconds=around, in_memory_seconds=sum(around) / 2)
        figures, missed = judge(result, [before, behind], parse_size(budget))
        result.update(figures=figures, missed=missed)
    return result


def judge(result, references, budget_bytes):
    """The figures that the goals are about, and the names of the goals that are missed."""
    moved = result["bytes_read"] + result["bytes_written"]
    storage = moved / result["disk_bytes_per_second"] if moved else 0
    bound = max(storage, result["in_memory_seconds"])
    predicted = result["plan_predicted_bytes"]
    figures = {
        "storage_seconds": storage,
        "time": result["epoch_seconds"] / bound,
        "bytes": result["most_bytes"] / predicted if predicted else float(bool(moved)),
        "prediction": result["plan_predicted_seconds"] / result["epoch_seconds"],
    }
    missed = [name for name in ("time", "bytes") if figures[name] > GOALS[name]]
    if abs(figures["prediction"] - 1) > GOALS["prediction"]:
        missed.append("prediction")
    if any(result["curve"] != reference["curve"] for reference in references):
        missed.append("losses")
    if result["peak_host_bytes"] > budget_bytes:
        missed.append("memory")
    return figures, missed


def print_header():
    print("| case | epoch, s | in memory, s | bytes / fio, s | to bound | GB read | GB written "
          "| to plan | predicted / measured | peak, MiB | busy | missed |")
    print("|---|" + "---|" * 11, flush=True)


def print_case(name, result):
    """Returns whether all goals are met."""
    if result["exit_code"] != 0:
        print(f"| {name} | exit code {result['exit_code']}: {result['error']} |", flush=True)
        return False
    figures, missed = result["figures"], result["missed"]
    print(f"| {name} | {result['epoch_seconds']:.2f} | {result['in_memory_seconds']:.2f} "
          f"| {figures['storage_seconds']:.2f} | {figures['time']:.2f} "
          f"| {result['bytes_read'] / 1e9:.2f} | {result['bytes_written'] / 1e9:.2f} "
          f"| {figures['bytes']:.3f} | {figures['prediction']:.2f} "
          f"| {result['peak_host_bytes'] / MIB:.0f} | {result['compute_busy'] or 0:.2f} "
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
    arguments = arguments_of(model, layers, options)
    references = References(
        options, dataset, arguments,
        lambda result: results.put(f"{model}-{layers}-unlimited", settings, result))
    good = True
    for name, budget in cases.items():
        result = results.get(name, settings)
        if result is None:
            try:
                result = measure_case(options, references, dataset, arguments, budget)
            except Unlimited as error:
                print(f"{name}: {error}", flush=True)
                return False
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
    parser.add_argument("--cases", default="", help="beginnings of names, such as gcn-2")
    options = parser.parse_args()
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
