#!/usr/bin/python3
"""What an import of names takes: edges, features and labels of accounts, in shuffled tables.

    bench/string_ids.py [--vertices N] [--edges N] [--memory SIZE]

Writes tables of text, a row a vertex in an order of its own each: features of 8 columns and labels,
both with a column of names ("acct-", 8 digits), and edges. Imports them with --id in a memory
cgroup of 1.25 of --memory (version 1 or 2; needs root): its peak counts the page cache, too.
Without --memory it gives what ooc-prep itself says is needed. Prints a table and writes
bench/results/string-ids.json.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import ROOT, describe_machine  # noqa: E402
from memory_limit import MemoryCgroup, parse_size  # noqa: E402

ROWS = 1 << 20  # written at once


def names_of(numbers):
    """Lines of "acct-00000042", without their ends."""
    digits = numbers[:, None] // 10 ** np.arange(7, -1, -1) % 10 + ord("0")
    return np.concatenate([np.tile(np.frombuffer(b"acct-", np.uint8), (len(numbers), 1)),
                           digits.astype(np.uint8)], axis=1)  # fmt: skip


def write_table(path, header, columns_of, count):
    with open(path, "wb") as file:
        file.write(header)
        for begin in range(0, count, ROWS):
            columns = columns_of(begin, min(begin + ROWS, count))
            cells = []
            for column in columns:
                cells += [column, np.full((len(column), 1), ord(","), np.uint8)]
            cells[-1] = np.full_like(cells[-1], ord("\n"))
            file.write(np.concatenate(cells, axis=1).tobytes())


def digits_of(random, rows, width):
    return random.integers(ord("1"), ord("9"), (rows, width), dtype=np.uint8, endpoint=True)


def make_tables(directory, vertices, edges):
    random = np.random.default_rng(1)
    # Names of 5 and 8 digits in no order of the vertices; the tables have orders of their own.
    names = random.permutation(vertices)
    ends = random.integers(0, vertices, (2, edges))
    write_table(directory / "edges.csv", b"payer,payee\n",
                lambda begin, end: [names_of(names[side[begin:end]]) for side in ends], edges)
    for name, header, columns, width in (("features", b"account,a,b,c,d,e,f,g,h\n", 8, 5),
                                         ("labels", b"account,class\n", 1, 1)):  # fmt: skip
        order = random.permutation(vertices)
        write_table(directory / f"{name}.csv", header,
                    lambda begin, end: [names_of(order[begin:end]),
                                        *(digits_of(random, end - begin, width)
                                          for _ in range(columns))], vertices)  # noqa: B023


def run_import(command, group):
    """The child's peak includes what this process holds when it forks: keep that small."""
    begin = time.monotonic()
    process = subprocess.Popen(command, preexec_fn=group.enter)
    _, status, usage = os.wait4(process.pid, 0)
    return {"exit_code": os.waitstatus_to_exitcode(status),
            "seconds": round(time.monotonic() - begin, 1),
            "peak_resident_bytes": usage.ru_maxrss * 1024,
            "peak_cgroup_bytes": group.peak()}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=20_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--memory", help="of ooc-prep (default: the least that it names)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        work = pathlib.Path(name)
        tables = multiprocessing.Process(target=make_tables, args=(work, arguments.vertices,
                                                                   arguments.edges))  # fmt: skip
        tables.start()
        tables.join()
        command = [ROOT / "build/release/bin/ooc-prep", "import", "--edges",
                   f"{work}/edges.csv:payer,payee", "--features", work / "features.csv",
                   "--labels", work / "labels.csv", "--id", "account", "-o", work / "graph.ooc",
                   "--quiet", "--memory"]  # fmt: skip
        memory = arguments.memory
        if memory is None:
            refusal = subprocess.run([*command, "1MiB"], capture_output=True, text=True).stderr
            memory = re.search(r"give --memory (\S+) or more", refusal).group(1)
            print(refusal, end="")
        with MemoryCgroup(f"ooc-bench-{os.getpid()}", parse_size(memory) * 5 // 4) as group:
            result = run_import([*command, memory], group)
    result |= {"memory": memory, "vertices": arguments.vertices, "edges": arguments.edges}
    resident = result["peak_resident_bytes"]
    print("| vertices | --memory | exit | seconds | peak resident, MiB | bytes a vertex |")
    print("|---|---|---|---|---|---|")
    print(f"| {arguments.vertices} | {memory} | {result['exit_code']} | {result['seconds']} "
          f"| {resident >> 20} | {resident / arguments.vertices:.1f} |")
    out = ROOT / "bench/results/string-ids.json"
    out.write_text(json.dumps({"machine": describe_machine(), **result}, indent=2) + "\n")
    return result["exit_code"]


if __name__ == "__main__":
    sys.exit(main())
