"""The page of a run: failures first, then a table a stage."""

import re

TARGETS = {"cusparse": 1.6, "pyg": 2.0, "of_bound": 1.2}
WHAT = {
    "machine": "Rates that the other stages' bounds are from",
    "contract": "The tests of a backend. Target: none fails",
    "sanitizer": "Errors that compute-sanitizer finds in a few tests of each family of kernels. "
                 "Target: 0",
    "prepare": "Graphs, made on the CPU while the stages above ran",
    "gather": "Sums over in-edges, fp32, medians of turns. Target: with its index, "
              f"{TARGETS['cusparse']:g} times as fast as the best of cuSPARSE's algorithms, whose "
              "preprocessing isn't counted",
    "epochs": "A training step without evaluation, medians of turns. Target: "
              f"{TARGETS['pyg']:g} times as fast as PyG. \"Every epoch\": ooc that sums the "
              "features anew in each, as PyG does",
    "memory": "An epoch in parts of the working set, medians; the bound is the larger of the "
              "link's time and the epoch without a limit. Target: "
              f"{TARGETS['of_bound']:g} of the bound",
}


def number(value, digits=3):
    """As many significant ones."""
    return "" if value is None else f"{value:.{digits}g}"


def milliseconds(seconds):
    if seconds is None:
        return ""
    return f"{1e3 * seconds:.2f}" if seconds < 1 else f"{1e3 * seconds:.0f}"


def rate(value):
    if value is None:
        return ""
    return f"{value / 1e12:.2f} TB/s" if value >= 1e12 else f"{value / 1e9:.1f} GB/s"


def table(header, rows):
    if not rows:
        return []
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines] + [""]


def met(ratio, target, at_least=True):
    if ratio is None:
        return "not compared"
    return "yes" if (ratio >= target if at_least else ratio <= target) else "**no**"


def machine(report):
    gpu, host = report.get("gpu", {}), report.get("host", {})
    rows = [[name, value] for name, value in gpu.items()]
    rows += [["CPU", f"{host.get('cpu')}, {host.get('usable_cores')} cores, "
              f"{host.get('memory_bytes', 0) / 2**30:.0f} GiB"]]
    rows += [[name, version or "not here"] for name, version in report.get("versions", {}).items()]
    names = {"device_copy": "copy in the GPU's memory, read and written",
             "to_device": "link to the GPU, pinned", "from_device": "link from the GPU, pinned",
             "each_way_at_once": "either way of the link, both at once"}
    rates = report.get("rates", {})
    return table(["what", "figure"],
                 rows + [[text, rate(rates.get(key)) or "not measured"]
                         for key, text in names.items()])


def contract(report):
    return table(["suite", "passed", "failed", "assertions", "seconds", "met"],
                 [[name, suite["passed"], suite["failed"], suite["assertions"], suite["seconds"],
                   "yes" if suite["exit_code"] == 0 else "**no**"]
                  for name, suite in report.get("suites", {}).items()])


def sanitizer(report):
    tools = report.get("tools", {})
    if not tools:
        return table(["family", "tests"], [list(row) for row in report.get("tests", {}).items()])
    rows = []
    for family in next(iter(tools.values())):
        errors = [tool.get(family, {}).get("errors") for tool in tools.values()]
        rows.append([family, *("not ended" if count is None else count for count in errors),
                     "yes" if all(count == 0 for count in errors) else "**no**"])
    return table(["family", *tools, "met"], rows)


def prepare(report):
    rows = [[name, milliseconds(graph["seconds"])] for name, graph in
            report.get("graphs", {}).items()]
    if "dataset" in report:
        made = report["dataset"]
        rows.append([f"dataset of {made['vertices']:,} vertices, {made['edges']:,} directed edges, "
                     f"{made['features']} features ({made['scale']:g} of Reddit)",
                     milliseconds(made["seconds"])])
    return table(["graph", "ms"], rows)


def gather(report, copy_rate):
    rows = []
    for name, case in report.get("cases", {}).items():
        seconds = case.get("seconds", {})
        ours, theirs = seconds.get("run"), seconds.get("cusparse")
        ratio = theirs / ours if ours and theirs else None
        alone = seconds.get("gather")
        least = case.get("least_bytes")
        rows.append([
            name, f"{case.get('edges', 0) / 1e6:.3g} M", milliseconds(ours), milliseconds(alone),
            milliseconds(seconds.get("index")),
            f"{milliseconds(theirs)} ({case['cusparse']['chosen']})" if theirs else "not here",
            number(ratio), number(theirs / alone if alone and theirs else None),
            met(ratio, TARGETS["cusparse"]),
            milliseconds(least / copy_rate if least and copy_rate else None) or "not measured",
            rate(case["gathered_bytes"] / alone) if alone else "",
            number(case.get("cusparse_difference", case.get("difference")), 2)])
    return table(["graph, columns", "edges", "with index, ms", "sums alone, ms", "index alone, ms",
                  "cuSPARSE, ms", "times as fast", "sums alone: times as fast", "met",
                  "least bytes by the copy's rate, ms", "rows gathered", "difference"], rows)


def epochs(report):
    rows = []
    for model, found in report.get("models", {}).items():
        seconds = {name: result.get("seconds")
                   for name, result in found.get("contenders", {}).items()}
        ours, every, theirs = (seconds.get(name) for name in ("ooc", "ooc, every epoch", "PyG"))
        ratio = theirs / ours if ours and theirs else None
        loss = found.get("loss", {})
        rows.append([
            model, milliseconds(ours), milliseconds(every),
            f"{milliseconds(theirs)} ({found['pyg']['form']})" if theirs else "not here",
            number(ratio), number(theirs / every if every and theirs else None),
            met(ratio, TARGETS["pyg"]),
            f"{loss['difference']:.1e} ({loss['by']})" if loss else ""])
    return table(["model", "ooc, ms", "every epoch, ms", "PyG, ms", "times as fast",
                  "every epoch: times as fast", "met", "difference of losses"], rows)


def memory(report):
    rows = []
    for model, found in report.get("models", {}).items():
        for part, figures in found.get("parts", {}).items():
            budget = figures["device_memory_bytes"]
            size = f"{budget / 2**20:.0f}" if budget else ""
            if "seconds" not in figures:
                why = re.search(r"the least that works is [^(]+", figures.get("error", ""))
                rows.append([f"{model}, {part}", size,
                             f"too little: {why[0].strip()}" if why else "**not ended**"]
                            + [""] * 6)
                continue
            ratio = figures.get("of_bound")
            rows.append([
                f"{model}, {part}", size, milliseconds(figures["seconds"]),
                f"{figures['to_device'] / 1e9:.3f}", f"{figures['from_device'] / 1e9:.3f}",
                milliseconds(figures.get("link_seconds")) or "not measured",
                milliseconds(figures.get("bound_seconds")), number(ratio),
                met(ratio, TARGETS["of_bound"], at_least=False)])
    return table(["model, part", "device memory, MiB", "epoch, ms", "GB to the GPU",
                  "GB from the GPU", "the link's time, ms", "bound, ms", "of the bound", "met"],
                 rows)


def problems(stages):
    lines = [f"- {name}: {line}" for name, report in stages.items()
             for line in report["failures"]]
    absent = [f"- {name}: {line}" for name, report in stages.items()
              for line in report["not_here"]]
    return ["## Failures", "", *(lines or ["None."]), "",
            *(["## Not here", "", *absent, ""] if absent else [])]


def page(results):
    stages = results["stages"]
    gpu = stages.get("machine", {}).get("gpu", {}).get("name", "no GPU")
    lines = [f"# ooc on a GPU: {gpu}", "",
             f"Commit {results['commit'] or 'unknown'}, {results['began']}, "
             f"{results.get('seconds', 0):.0f} s.", ""]
    if results["dry"]:
        lines += ["A dry run on the emulated GPU, with small graphs: its seconds mean nothing.", ""]
    lines += problems(stages)
    copy_rate = stages.get("machine", {}).get("rates", {}).get("device_copy")
    tables = {"machine": machine, "contract": contract, "sanitizer": sanitizer, "prepare": prepare,
              "gather": lambda report: gather(report, copy_rate), "epochs": epochs,
              "memory": memory}
    for name, report in stages.items():
        lines += [f"## {name}", "", f"{WHAT[name]}. {report['took_seconds']:.0f} s, of "
                  f"{report['limit_seconds']:.0f} at most.", "", *tables[name](report)]
    return "\n".join(lines).rstrip() + "\n"
