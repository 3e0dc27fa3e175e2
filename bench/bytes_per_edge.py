#!/usr/bin/python3
"""Bytes that an edge takes on disk, beside what PyG and DGL hold for it.

    bench/bytes_per_edge.py [DATA_DIR] [--vertices N] [--programs DIR]

Imports the edges of every graph below DATA_DIR (as given; with --undirected where no edge has its
reverse in the list) and generates R-MAT graphs of average degrees 4 to 256. Writes
bench/results/bytes-per-edge.json and prints the table of bench/notes/bytes-per-edge.md.
The columns:

    ooc    the files edges.in and edges.out over the edges; a symmetric graph has edges.in alone,
           and it serves both directions
    PyG    edge_index, int64 [2, E]: 16; it has one order of edges, and none by destination
    DGL    what it makes of a graph to go both ways, CSR and CSC: int64 indptr [V + 1] and
           indices [E] twice. "with ids": and the int64 [E] edge ids that each keeps when it was
           made from a list of edges
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from accuracy import ROOT, describe_machine  # noqa: E402

DEGREES = (4, 16, 64, 256)
RESULT = ROOT / "bench" / "results" / "bytes-per-edge.json"


class Programs:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()

    def run(self, program, *arguments):
        command = [self.directory / program, *map(str, arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def facts(self, dataset):
        return json.loads(self.run("ooc-inspect", dataset, "--json"))

    def import_edges(self, edges, dataset):
        command = ("import", "--edges", edges, "-o", dataset, "--force", "--quiet")
        self.run("ooc-prep", *command)
        facts = self.facts(dataset)
        if facts["found"]["input"]["reciprocal_share"] == 0:
            self.run("ooc-prep", *command, "--undirected")
            facts = self.facts(dataset)
        return facts

    def generate(self, vertices, degree, dataset):
        self.run(
            "ooc-prep", "generate", "rmat", "--vertices", vertices, "--edges",
            vertices * degree // 2, "--features", 1, "--classes", 2, "-o", dataset, "--force",
            "--quiet",
        )  # fmt: skip
        return self.facts(dataset)


def row_of(name, facts):
    vertices, edges = facts["vertices"], facts["edges"]
    files = facts["file_bytes"]
    total = files["edges.in"] + files.get("edges.out", 0)
    dgl = 2 * (8 * (vertices + 1) + 8 * edges) / edges
    return {
        "graph": name,
        "vertices": vertices,
        "edges": edges,
        "symmetric": facts["symmetric"],
        "span_rows": facts["span_rows"],
        "ooc": total / edges,
        "pyg": 16.0,
        "dgl": dgl,
        "dgl_with_ids": dgl + 16,
    }


def print_table(rows):
    print("| graph | vertices | edges | files | ooc | PyG | DGL | with ids |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['graph']} | {row['vertices']:,} | {row['edges']:,} "
            f"| {'in' if row['symmetric'] else 'in, out'} | **{row['ooc']:.2f}** "
            f"| {row['pyg']:.0f} | {row['dgl']:.1f} | {row['dgl_with_ids']:.1f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=pathlib.Path)
    parser.add_argument("--vertices", type=int, default=1 << 18, help="of the R-MAT graphs")
    parser.add_argument("--programs", default=ROOT / "build" / "release" / "bin")
    options = parser.parse_args()
    programs = Programs(options.programs)
    rows = []
    with tempfile.TemporaryDirectory(prefix="ooc-bench-") as directory:
        dataset = pathlib.Path(directory) / "x.ooc"
        for graph in sorted(options.data.iterdir()) if options.data else []:
            if (graph / "edges.npy").exists():
                rows.append(row_of(graph.name, programs.import_edges(graph / "edges.npy", dataset)))
        for degree in DEGREES:
            facts = programs.generate(options.vertices, degree, dataset)
            rows.append(row_of(f"R-MAT, degree {degree}", facts))
    RESULT.write_text(json.dumps({"machine": describe_machine(), "graphs": rows}, indent=2) + "\n")
    print_table(rows)


if __name__ == "__main__":
    main()
