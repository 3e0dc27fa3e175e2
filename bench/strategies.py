#!/usr/bin/python3
"""Bytes moved per epoch by each way to decide what stays on a device: ROC's figure 10.

    bench/strategies.py [--budgets LIST] [--policies none,lru,dp,lp] [--plan-only]

Generates a skewed graph of Reddit's size (233 k vertices, 57 M undirected edges, 602 features, 41
classes) and trains a GCN on it with every --cache-policy, on the CPU as a device with so much
--device-memory, above host memory that holds everything: two epochs after a warm-up. Prints the
bytes that cross the link to the device per epoch, both ways together, beside the plan's bound: the
optimum of the linear program over the plan's passes. --plan-only takes the plans' bytes and runs
nothing.

Goals, at one budget at least: dp moves 1.4 times fewer bytes than lru and 5 times fewer than none.
At every budget: lp is within 5 % of its bound. Exit code 1 where one is missed. Each case goes to
bench/results/strategies.json at once, and what is there of the same programs is not measured again
(--again does). About 10 minutes on two cores and 3 GB of disk; with --plan-only one.
"""

import sys

import training
from training import MIB

EPOCHS = training.WARM_UP + 2
GOALS = {"lru": 1.4, "none": 5.0}  # how many times dp's bytes
BOUND = 1.05


def arguments_of(options, policy, budget):
    rewrites = [f"--rewrites={options.rewrites}"] if options.rewrites else []
    return ["--model", "gcn", "--layers", options.layers, "--hidden", options.hidden, "--epochs",
            EPOCHS, "--cache-policy", policy, "--devices", "cpu:1", "--device-memory", budget,
            *rewrites]


def measure(options, dataset, policy, budget):
    arguments = arguments_of(options, policy, budget)
    if not options.plan_only:
        result = training.train(options, dataset, arguments)
        if result["exit_code"] not in (0, 4):
            sys.exit(f"{policy}, {budget}: exit code {result['exit_code']}: {result['error']}")
        return result
    planned = training.plan(options, dataset, *arguments)
    return {"exit_code": 4} if planned is None else {"exit_code": 0,
                                                     **training.plan_figures(planned)}


def bytes_of(result, options):
    """Moved per epoch; None where the budget was too small."""
    if result["exit_code"] != 0:
        return None
    return result["plan_link_bytes" if options.plan_only else "link_bytes"]


def ratio(bytes_moved, bytes_base):
    """None where nothing moves: then the budget is none that caching matters at."""
    return bytes_moved / bytes_base if bytes_moved is not None and bytes_base else None


def print_budget(budget, results, options):
    """A line of the table; returns by how much dp beats the others, and lp over its bound."""
    moved = {policy: bytes_of(result, options) for policy, result in results.items()}
    bounds = [result["plan_bound_link_bytes"] for result in results.values()
              if result["exit_code"] == 0]
    bound = min(bounds, default=None)
    lp_bound = results["lp"].get("plan_bound_link_bytes") if "lp" in results else None
    figures = {
        "none_to_dp": ratio(moved.get("none"), moved.get("dp")),
        "lru_to_dp": ratio(moved.get("lru"), moved.get("dp")),
        "lp_to_bound": ratio(moved.get("lp"), lp_bound),
    }

    def show(value, form):
        return "-" if value is None else format(value, form)

    cells = [show(None if value is None else value / 1e9, ".3f")
             for value in [*moved.values(), bound]]
    print(f"| {budget} | " + " | ".join(cells + [show(v, ".2f") for v in figures.values()]) + " |",
          flush=True)
    return figures


def print_seconds(table):
    print("\n| --device-memory | policy | epoch, s | predicted, s | peak of the device, MiB |")
    print("|---|---|---|---|---|")
    for budget, results in table.items():
        for policy, result in results.items():
            if result["exit_code"] == 0:
                print(f"| {budget} | {policy} | {result['epoch_seconds']:.2f} "
                      f"| {result['plan_predicted_seconds']:.2f} "
                      f"| {result['peak_device_bytes'] / MIB:.0f} |")


def reached(figures):
    best = {name: max((f[f"{name}_to_dp"] or 0 for f in figures), default=0) for name in GOALS}
    worst = max((f["lp_to_bound"] or 0 for f in figures), default=0)
    print(f"\ndp moves at most {best['lru']:.2f} times fewer bytes than lru (goal {GOALS['lru']}) "
          f"and {best['none']:.2f} times fewer than none (goal {GOALS['none']}); "
          f"lp is at most {worst:.3f} of its bound (goal {BOUND})")
    return all(best[name] >= GOALS[name] for name in GOALS) and worst <= BOUND


def main():
    parser = training.parser_of(__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=232_965)
    parser.add_argument("--edges", type=int, default=57_300_000, help="undirected")
    parser.add_argument("--features", type=int, default=602)
    parser.add_argument("--classes", type=int, default=41)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--rewrites", default="", help="as ooc-train's, such as -hoisting")
    parser.add_argument("--budgets", default="256MiB,384MiB,512MiB,768MiB,864MiB,896MiB")
    parser.add_argument("--policies", default="none,lru,dp,lp")
    parser.add_argument("--plan-only", action="store_true", help="the plans' bytes, without runs")
    options = training.parse(parser)
    dataset = training.generate(options, "rmat", options.vertices, options.edges, options.features,
                                options.classes)
    settings = {name: getattr(options, name) for name in
                ("vertices", "edges", "features", "classes", "layers", "hidden", "rewrites")}
    kept = training.Results("strategies", options)
    training.forget_rates(options)
    policies = options.policies.split(",")
    print("GB moved per epoch\n\n| --device-memory | " + " | ".join(policies) +
          " | bound | none / dp | lru / dp | lp / bound |")
    print("|---|" + "---|" * (len(policies) + 4), flush=True)
    table, figures = {}, []
    for budget in options.budgets.split(","):
        table[budget] = {}
        for policy in policies:
            name = f"{policy}-{budget}" + ("-plan" if options.plan_only else "")
            result = kept.get(name, settings)
            if result is None:
                result = measure(options, dataset, policy, budget)
                kept.put(name, settings, result)
            table[budget][policy] = result
        figures.append(print_budget(budget, table[budget], options))
    if not options.plan_only:
        print_seconds(table)
    good = reached(figures)
    training.finish(options)
    return not good


if __name__ == "__main__":
    sys.exit(main())
