#!/usr/bin/python3
"""The tables of README.md, from results/*.json.

    bench/tables.py            writes them between their marks
    bench/tables.py --check    says which aren't what the results say, and ends with 1
"""

import json
import pathlib
import re
import statistics
import sys

BENCH = pathlib.Path(__file__).resolve().parent
GIB, MIB = 2**30, 2**20


def results(name):
    return json.loads((BENCH / "results" / f"{name}.json").read_text())


def table(head, rows):
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head)]]
                     + ["| " + " | ".join(cells) + " |" for cells in rows])


def peer_cell(result, ours):
    if "error" in result:
        return "out of memory"
    times = statistics.median(t / o for t, o in zip(result["turns"], ours["turns"]))
    return f"{times:.1f} x, {result['peak_bytes'] / GIB:.1f} GiB"


def peers():
    """A row a case: ooc's seconds and peak, and the peers' as multiples."""
    rows = []
    for name, case in results("peers")["cases"].items():
        contenders = case["contenders"]
        ours = contenders["ooc"]
        every = contenders.get("ooc, every epoch")
        rows.append([name, f"{ours['seconds']:.3f} s, {ours['peak_bytes'] / GIB:.1f} GiB",
                     f"{every['seconds'] / ours['seconds']:.1f} x" if every else "",
                     *(peer_cell(contenders[peer], ours) for peer in ("DGL", "PyG"))])
    return table(["step", "ooc", "every epoch", "DGL", "PyG"], rows)


def mapped():
    rows = []
    for name, ways in results("mapped")["cases"].items():
        cells = [f"{ways[way]['first_epoch_seconds']:.2f}, {ways[way]['later_epoch_seconds']:.2f}"
                 for way in ("uring cold", "uring warm", "mapped cold", "mapped warm")]
        peak = max(ways[way]["peak_host_bytes"] for way in ("mapped cold", "mapped warm"))
        rows.append([name, *cells, f"{peak / MIB:.0f}"])
    return table(["case", "uring, cold", "warm", "mapped, cold", "warm", "peak, MiB"], rows)


def out_of_core():
    """To bound by model and budget."""
    cases = results("out-of-core")["cases"]
    budgets = ("1GiB", "512MiB", "256MiB")
    rows = []
    for model in ("gcn-2", "gcn-3", "sage-2", "sage-3"):
        cells = []
        for budget in budgets:
            result = cases[f"{model}-{budget}"]["result"]
            cells.append(f"{result['epoch_seconds']:.1f} s, {result['figures']['time']:.2f}")
        rows.append([model, *cells])
    return table(["model and layers", *budgets], rows)


TABLES = {"peers": peers, "mapped": mapped, "out of core": out_of_core}


def main():
    path = BENCH / "README.md"
    text = path.read_text()
    new = re.sub(
        r"<!-- table: ([a-z -]+) -->\n.*?<!-- end -->",
        lambda match: f"<!-- table: {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->",
        text, flags=re.DOTALL)
    if sys.argv[1:] == ["--check"]:
        if new != text:
            print(f"{path}: its tables aren't what the results say; run bench/tables.py")
        return new != text
    path.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
