#!/usr/bin/python3
"""The tables of README.md and notes/*.md, from results/*.json.

    bench/tables.py            writes each between `<!-- table: NAME -->` and `<!-- end -->`
    bench/tables.py --check    names the files whose tables aren't what the results say; exit code 1

A case that was not measured yet leaves its cell empty. A program that failed is said in its cell.
"""

import json
import pathlib
import re
import statistics
import sys

BENCH = pathlib.Path(__file__).resolve().parent
MARKED = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
GB, GIB, MIB = 1e9, 2**30, 2**20
TRAININGS = ("gcn-2", "gcn-3", "sage-2", "sage-3")
BUDGETS = ("1GiB", "512MiB", "256MiB")
POLICIES = ("none", "lru", "dp", "lp")
RATIOS = ("0.5", "0.75", "1", "1.5", "2", "3", "4", "6", "8")
MODELS = ("gcn", "sgc", "gat", "gatv2", "sage", "sage_pool", "resgcn", "gin", "commnet", "mpgcn",
          "ggcn", "ggnn")
# The cheapest ones first.
GRAPHS = ("eukaryote_go", "cora", "pcg", "citeseer", "amazon_photo", "amazon_computers", "tolokers",
          "facebook_pages", "flickr_attr", "twitch_union", "coauthor_physics")


def results(name):
    return json.loads((BENCH / "results" / f"{name}.json").read_text())


def table(rows):
    """Of dictionaries with the same keys: a column's head to its cell."""
    if not rows:
        return ""
    lines = [rows[0], ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def number(value, digits=2, unit=1):
    """Empty for what isn't there."""
    return "" if value is None else f"{value / unit:,.{digits}f}"


def over(value, base):
    """None where one isn't there, or nothing was moved."""
    return value / base if value is not None and base else None


def times(result, ours):
    """How many times as long as ooc: the median of the turns' own quotients."""
    return statistics.median(a / b for a, b in zip(result["turns"], ours["turns"]))


def contender(result, ours):
    if not result:
        return ""
    if "error" in result:
        memory = re.search("allocate memory|out of memory", result["error"])
        return "out of memory" if memory else "failed"
    absolute = result is ours or "error" in ours
    taken = f"{result['seconds']:.3f} s" if absolute else f"{times(result, ours):.1f} x"
    return f"{taken}, {result['peak_bytes'] / GIB:.1f} GiB"


def peers(sums, names):
    """A case is a graph and a model, or a graph and the columns of a sum."""
    cases = {name: case["contenders"] for name, case in results("peers")["cases"].items()}
    return table([{"case": name, **{by: contender(case.get(by), case["ooc"]) for by in names}}
                  for name, case in cases.items() if (" sum " in name) == sums])


def mapped():
    def seconds(figures):
        keys = ("first_epoch_seconds", "later_epoch_seconds")
        return ", ".join(number(figures[key]) for key in keys if key in figures)

    def peak(case, way):
        found = [case[key]["peak_host_bytes"] for key in case if key.startswith(way)]
        return number(max(found, default=None), 0, MIB)

    ways = ("uring cold", "uring warm", "mapped cold", "mapped warm")
    return table([
        {"case": name, **{way: seconds(case.get(way, {})) for way in ways},
         "uring, peak MiB": peak(case, "uring"), "mapped, peak MiB": peak(case, "mapped")}
        for name, case in results("mapped")["cases"].items()])


def trained(file, name):
    """The result of a case that ran to its end, or none."""
    result = results(file)["cases"].get(name, {}).get("result", {"exit_code": 1})
    return None if result["exit_code"] else result


def by_budget(file, cell):
    rows = []
    for training in TRAININGS:
        cases = {budget: trained(file, f"{training}-{budget}") for budget in BUDGETS}
        rows.append({"model and layers": training,
                     **{budget: cell(case) if case else "" for budget, case in cases.items()}})
    return table(rows)


def seconds_and_bound(case):
    return f"{case['epoch_seconds']:.1f} s, {case['figures']['time']:.2f}"


def bound_and_prediction(case):
    return f"{case['figures']['time']:.2f} ({case['figures']['prediction']:.2f})"


def moved(case):
    return {"GB read": number(case["bytes_read"], 2, GB),
            "GB written": number(case["bytes_written"], 2, GB)}


def single_cases(file, tail):
    rows = []
    for name in (f"{training}-{budget}" for training in TRAININGS for budget in BUDGETS):
        case = trained(file, name)
        if case:
            rows.append({"case": name, "epoch, s": number(case["epoch_seconds"]),
                         "in memory, s": number(case["in_memory_seconds"]),
                         "bytes / fio, s": number(case["disk_seconds"]),
                         "both at once, s": number(case["at_once_seconds"]),
                         "to bound": number(case["figures"]["time"]), **tail(case),
                         "missed": ", ".join(case["missed"]) or "-"})
    return table(rows)


def bytes_and_memory(case):
    return {**moved(case), "to plan": number(case["figures"]["bytes"], 3),
            "predicted / measured": number(case["figures"]["prediction"]),
            "peak, MiB": number(case["peak_host_bytes"], 0, MIB), "busy": number(case["cpu_busy"])}


def least_planned(case):
    return {"no plan takes less, s": number(case["plan_lower_bound_seconds"]),
            "predicted / measured": number(case["figures"]["prediction"])}


def curve_row(ratio, case, compute):
    """`compute`: without a limit, of as many vertices or fewer; scaled up."""
    seconds = compute["epoch_seconds"] * case["vertices"] / compute["vertices"]
    return {"tensors / memory": ratio, "vertices": number(case["vertices"], 0),
            "epoch, s": number(case["epoch_seconds"]), "without a limit, s": number(seconds),
            "bytes / fio, s": number(case["disk_seconds"]), **moved(case),
            "predicted, s": number(case["plan_predicted_seconds"]),
            "peak, MiB": number(case["peak_host_bytes"], 0, MIB),
            "to bound": number(case["epoch_seconds"] / max(case["disk_seconds"], seconds))}


def curve(file):
    cases = {ratio: (trained(file, f"gcn-{ratio}"), trained(file, f"gcn-{ratio}-unlimited"))
             for ratio in RATIOS}
    return table([curve_row(ratio, *pair) for ratio, pair in cases.items() if all(pair)])


def curve_large(file):
    pair = trained(file, "gcn-large-17"), trained(file, "gcn-large-17-compute")
    if not all(pair):
        return ""
    ratio = pair[0]["vertex_tensor_bytes"] / (2 * GIB)
    return table([curve_row(f"{ratio:.1f}", *pair)])


def strategies():
    """Bytes of plans alone."""
    budgets = {name.split("-")[1] for name in results("strategies")["cases"] if "-plan" in name}
    rows = []
    for budget in sorted(budgets, key=lambda text: int(text.removesuffix("MiB"))):
        plans = {policy: trained("strategies", f"{policy}-{budget}-plan") or {}
                 for policy in POLICIES}
        link = {policy: plan.get("plan_link_bytes") for policy, plan in plans.items()}
        bounds = {policy: plan["plan_bound_link_bytes"] for policy, plan in plans.items() if plan}
        link["bound"] = min(bounds.values(), default=None)
        rows.append({"--device-memory": budget,
                     **{name: number(value, 3, GB) for name, value in link.items()},
                     "none / dp": number(over(link["none"], link["dp"])),
                     "lru / dp": number(over(link["lru"], link["dp"])),
                     "lp / bound": number(over(link["lp"], bounds.get("lp")))})
    return table(rows)


def score(cell):
    """In %, over the seeds that are done."""
    if not cell:
        return ""
    tests = cell["tests"]
    spread = f" ± {100 * statistics.stdev(tests):.1f}" if len(tests) > 1 else ""
    done = f" ({len(tests)} of {cell['seeds']} seeds)" if len(tests) < cell["seeds"] else ""
    return f"{100 * statistics.mean(tests):.1f}{spread}{done}"


def accuracy():
    cells = {(cell["graph"], cell["model"]): cell for cell in results("accuracy")["cells"]}
    return table([{"model": model, "on citations": cells.get(("cora", model), {}).get("recipe", ""),
                   **{graph: score(cells.get((graph, model))) for graph in GRAPHS}}
                  for model in MODELS])


def accuracy_goals():
    cells = [cell for cell in results("accuracy")["cells"] if {"least", "published"} & set(cell)]
    cells.sort(key=lambda cell: (MODELS.index(cell["model"]), GRAPHS.index(cell["graph"])))
    return table([{"graph": cell["graph"], "model": cell["model"], "ooc": score(cell),
                   "at least": number(cell.get("least"), 1, 0.01),
                   "published": number(cell.get("published"), 1, 0.01),
                   "by": cell.get("published_by", "")} for cell in cells])


def rewrites():
    models = results("rewrites")["results"]
    names = {"all": "nothing", "none": "all"}

    def cell(model, variant, key, digits, unit):
        value, base = (models[model][of][key] for of in (variant, "all"))
        share = "" if variant == "all" else f" ({value / base:.1f})"
        return number(value, digits, unit) + share

    return table([{"left out": names.get(variant, variant), **{
        f"{model}, {what}": cell(model, variant, *how) for model in models for what, how in (
            ("s", ("seconds", 2, 1)), ("GB", ("bytes_moved", 1, GB)))}}
        for variant in models["gcn"]])


def zero_rows():
    columns = (("pass {}, s", "pass_seconds"), ("predicted {}, s", "pass_predicted"),
               ("epoch {}, s", "train_seconds"))
    return table([{"train": f"{share} %", **{head.format(which): number(both[which][key])
                                             for head, key in columns
                                             for which in ("without", "with")}}
                  for share, both in results("zero-rows")["shares"].items()])


def bytes_per_edge():
    return table([{"graph": row["graph"], "vertices": number(row["vertices"], 0),
                   "edges": number(row["edges"], 0),
                   "files": "in" if row["symmetric"] else "in, out", "ooc": number(row["ooc"]),
                   "PyG": number(row["pyg"], 0), "DGL": number(row["dgl"], 1),
                   "with ids": number(row["dgl_with_ids"], 1)}
                  for row in results("bytes-per-edge")["graphs"]])


def attention_memory():
    return table([{"model": model, "peak, MiB": number(result["peak_host_bytes"], 0, MIB),
                   "allowed, MiB": number(result["limit_bytes"], 0, MIB),
                   "tensors of 64 columns": str(len(result["wide_tensors"])),
                   "one edge tensor, MiB": number(result["edge_tensor_bytes"], 0, MIB),
                   "training epoch, s": number(result["train_seconds"], 1)}
                  for model, result in results("attention-memory")["results"].items()])


def sampling_accuracy():
    """In %; cells with two seeds or more."""
    return table([{
        "graph": cell["graph"],
        **{name: f"{100 * cell[f'{by}_mean']:.2f} ± {100 * cell[f'{by}_deviation']:.2f}"
           for by, name in (("ooc", "ooc"), ("pyg", "PyG"))},
        "difference": f"{100 * cell['difference']:+.2f}",
        "its deviation": number(cell["difference_deviation"], 2, 0.01),
        "seeds": str(len(cell["pyg"]["tests"]))}
        for cell in results("sampling-accuracy")["cells"] if "difference" in cell])


def sampling_peers():
    rows = []
    for name, case in results("sampling-peers")["cases"].items():
        for by, result in case["result"]["contenders"].items():
            budget = f"{result.get('budget_bytes', 0) / MIB:,.0f} MiB"
            rows.append({"case": name, "by": by, "as": result.get("form", budget),
                         "epoch, s": number(result.get("seconds"), 1),
                         "fastest, s": number(result.get("fastest_seconds"), 1),
                         "peak, GiB": number(result.get("peak_bytes"), 2, GIB),
                         "best peer / it": number(case["result"]["times"].get(by))})
    return table(rows)


def simulated():
    return table([{"case": name, "run, s": number(result["seconds"]),
                   "busiest link": f"{result['link_busy']:.0%}",
                   "simulated / run": number(result["predicted_ratio"]),
                   "with the run's kernels": number(result["replayed_ratio"]),
                   "plan / run": number(result["plan"] / result["seconds"])}
                  for name, case in results("simulated")["cases"].items()
                  for result in [case["result"]]])


def ring_scaling():
    """Geometric means over models and graphs."""
    cases = results("ring-scaling")

    def mean(devices, **wanted):
        return number(statistics.geometric_mean(
            case["speedup"] for case in cases if case["devices"] == devices
            and all(case[key] == value for key, value in wanted.items())))

    return table([{"links": "NVLink between all" if nvlink else "PCIe, two bridges",
                   "ring": "on" if ring else "off", "destination ranges": str(ranges),
                   **{f"{devices} devices": mean(devices, nvlink=nvlink, ring=ring, ranges=ranges)
                      for devices in (2, 4, 8)}}
                  for nvlink, ring in ((False, False), (False, True), (True, True))
                  for ranges in (8, 16)])


TABLES = {
    "peers": lambda: peers(False, ("ooc", "ooc, every epoch", "DGL", "PyG")),
    "peers, sums": lambda: peers(True, ("ooc", "DGL", "PyG")),
    "mapped": mapped,
    "out of core": lambda: by_budget("out-of-core", seconds_and_bound),
    "out of core, details": lambda: single_cases("out-of-core", bytes_and_memory),
    "out of core, held disk": lambda: single_cases("out-of-core-1.25-GB-s", least_planned),
    **{f"out of core, {machine}":
       lambda machine=machine: by_budget(f"out-of-core-{machine}", bound_and_prediction)
       for machine in ("xeon", "zen4", "fast")},
    "memory curve": lambda: curve("memory-curve"),
    "memory curve, large": lambda: curve_large("memory-curve"),
    "memory curve, xeon": lambda: curve("memory-curve-xeon"),
    "memory curve, xeon, large": lambda: curve_large("memory-curve-xeon"),
    "memory curve, 16 cores, large": lambda: curve_large("memory-curve-16-cores"),
    "strategies": strategies,
    "accuracy": accuracy,
    "accuracy, goals": accuracy_goals,
    "rewrites": rewrites,
    "zero rows": zero_rows,
    "bytes per edge": bytes_per_edge,
    "attention memory": attention_memory,
    "sampling, accuracy": sampling_accuracy,
    "sampling, peers": sampling_peers,
    "simulated": simulated,
    "ring scaling": ring_scaling,
}


def main():
    check, stale = sys.argv[1:] == ["--check"], False
    for path in [BENCH / "README.md", *sorted(BENCH.glob("notes/*.md"))]:
        text = path.read_text()
        new = MARKED.sub(lambda mark: mark[1] + TABLES[mark[2]]() + mark[3], text)
        if new != text and check:
            print(f"{path}: its tables aren't what the results say; run bench/tables.py")
        elif new != text:
            path.write_text(new)
        stale |= new != text
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
