"""The tables of run.py."""

import os
import pathlib
import platform
import re
import statistics


def describe_machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
    }


def reason(error):
    """torch's own words for it are long."""
    wanted = re.search(r"can't allocate memory: you tried to allocate (\d+) bytes", error)
    if wanted:
        return f"out of memory, wanted {int(wanted[1]) / 2**30:.1f} GiB more"
    return error.replace("|", "/")[:110]


def row(name, case, contender, result, ours):
    if "error" in result:
        return (f"| {name} | {contender} | {result['form'] or ''} | did not survive: "
                f"{reason(result['error'])} | | | | | |")
    alone = "" if case["together"] else ", alone"
    times = ["", ""]
    if "seconds" in ours:
        # Turn by turn: whatever else the machine does changes.
        pairs = zip(result["turns"], ours["turns"])
        times = [f"{statistics.median(theirs / mine for theirs, mine in pairs):.2f}",
                 f"{result['fastest_seconds'] / ours['fastest_seconds']:.2f}"]
    return (f"| {name} | {contender} | {result['form'] or ''} | {result['seconds']:.3f}{alone} "
            f"| {times[0]} | {result['fastest_seconds']:.3f} | {times[1]} "
            f"| {result['peak_bytes'] / 2**30:.2f} "
            f"| {statistics.mean(result['others_busy']):.1f} |")


def print_tables(cases, limit):
    parts = {"Training steps": [name for name in cases if " sum " not in name],
             "Sums over in-edges (width)": [name for name in cases if " sum " in name]}
    for title, names in parts.items():
        print(f"\n{title}; at most {limit / 2**30:g} GiB of data a process\n\n"
              "| case | by | graph as | median, s | of ooc's | fastest, s | of ooc's | peak, GiB "
              "| others' cores |\n|---|---|---|---|---|---|---|---|---|")
        for name in names:
            contenders = cases[name]["contenders"]
            ours = contenders["ooc"]
            for contender, result in contenders.items():
                print(row(name, cases[name], contender, result, ours))
