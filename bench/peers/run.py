#!/usr/bin/python3
"""ooc beside DGL and PyG, on the CPU.

    bench/peers/run.py [--graphs rmat-58k,rmat-233k] [--models gcn,gat] [--widths 128]

Makes a virtual environment with both peers from the Python index (requirements.txt; --venv DIR for
one that is there) and says which peer could not be had, and why. Then:

- exports a dataset, trains each model on it with ooc for some epochs, puts the parameters into the
  peers' own layers and compares logits;
- times whole training steps (forward, loss over the train vertices, gradients, Adam; no
  evaluation) of the same network with as many threads, turn by turn, the others standing still;
- times the sum over in-edges alone at some widths (SpMM): ooc's is the pass of sum.saga that
  gathers, by its own clock.

Each peer tries the forms of the graph that it has, and gets the one whose step is fastest. A turn
is as many steps as take about a second. What is told is the median of the turns and the fastest
one, each over ooc's (the median of a turn's own quotients), and how many processors others kept
busy meanwhile: a step whose threads wait for each other, as the peers' do, loses more to them, so
compare the fastest turns where that isn't near 0. Contenders that would not fit into memory
together run one after another, all turns of one at once (said as "alone"). ooc computes what
doesn't change from epoch to epoch once, such as the first layer's sums of the features; "every
epoch" is ooc that does it in each, as the peers do (--rewrites=-hoisting).

Every process may have --limit of data; one that asks for more does not survive. Peaks are of the
resident set: ooc's from its start, a peer's without what building its graph took (that is in
the JSON). Prints tables and keeps bench/results/peers.json; what is there is not measured again
with the same programs (--again does).
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import agreement  # noqa: E402
import environment  # noqa: E402
import report  # noqa: E402
import turns  # noqa: E402
from contenders import Ours, Peer  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FEATURES, CLASSES = 128, 16
# Kind, vertices, undirected edges.
GRAPHS = {
    "rmat-58k": ("rmat", 58_000, 2_900_000),
    "rmat-233k": ("rmat", 233_000, 11_500_000),
    "uniform-4m": ("sbm", 4_000_000, 16_000_000),
}
SMALL = ("rmat", 5_000, 50_000)
MODELS = ("gcn", "sage", "gin", "gat")
WIDTHS = (32, 128, 256)
HIDDEN, HEADS = 128, 8
EVERY_EPOCH = "--rewrites=-hoisting"


def shape_of(model):
    """Options of ooc-train and of worker.py for hidden layers of 128 columns."""
    attention = model in ("gat", "gatv2")
    hidden = HIDDEN // HEADS if attention else HIDDEN
    heads = ("--heads", HEADS) if attention else ()
    return ("--model", model, "--hidden", hidden, *heads), ("--hidden", hidden, *heads)


def dataset_of(options, graph, features=FEATURES):
    kind, vertices, edges = graph
    dataset = options.work / f"{kind}-{vertices}-{edges}-{features}-{CLASSES}.ooc"
    if not dataset.exists():
        print(f"generating {dataset.name}", file=sys.stderr, flush=True)
        agreement.run(
            options.programs / "ooc-prep", "generate", kind, "--vertices", vertices, "--edges",
            edges, "--features", features, "--classes", CLASSES, "-o", dataset, "--quiet")
    return dataset


def arrays_of(options, graph):
    dataset = dataset_of(options, graph)
    arrays = dataset.with_suffix(".arrays")
    if not (arrays / "features.npy").exists():
        agreement.run(options.programs / "ooc-prep", "export", dataset, "-o", arrays, "--force",
                      "--quiet")
    return arrays


class Results:
    """peers.json: written as each case is done."""

    def __init__(self, options):
        self.path, self.again = options.results, options.again
        self.programs = hashlib.sha256(
            (options.programs / "ooc-train").read_bytes()).hexdigest()[:16]
        self.report = {"cases": {}}
        if self.path.exists():
            self.report = json.loads(self.path.read_text())

    def get(self, name, settings):
        case = self.report["cases"].get(name)
        if case is None or self.again:
            return None
        same = case["programs"] == self.programs and case["settings"] == settings
        return case if same else None

    def put(self, name, settings, result):
        self.report["cases"][name] = {"programs": self.programs, "settings": settings, **result}
        self.write()

    def write(self, **values):
        self.report.update(values, machine=report.describe_machine())
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.report, indent=1) + "\n")
        new.replace(self.path)


def cases_of(options):
    """Name, graph, and model or width."""
    for name in options.graphs:
        for model in options.models:
            yield f"{name} {model}", GRAPHS[name], model, None
        for width in options.widths:
            yield f"{name} sum {width}", GRAPHS[name], "sum", width


def our_contenders(options, graph, model, width):
    """Name to how it is made."""
    if width:
        dataset = dataset_of(options, graph, width)
        arguments = ("--model", environment.HERE / "sum.saga", "--layers", 1, "--dropout", 0,
                     EVERY_EPOCH)
        return {"ooc": lambda: Ours(options, dataset, "ooc", arguments, "layer1.accum")}
    dataset, (arguments, _) = dataset_of(options, graph), shape_of(model)
    ours = {"ooc": lambda: Ours(options, dataset, "ooc", arguments)}
    if model != "gat":  # of which nothing is the same in all epochs
        ours["ooc, every epoch"] = lambda: Ours(
            options, dataset, "every-epoch", (*arguments, EVERY_EPOCH))
    return ours


def peer_contenders(options, peer, forms, graph, model, width):
    """Form to how it is made."""
    arrays = arrays_of(options, graph)
    shape = ("--width", width) if width else shape_of(model)[1]
    return {
        form: lambda form=form: Peer(
            options, environment.python_of(options.venv),
            ("sum" if width else "train", peer, model, arrays, "--form", form, *shape))
        for form in forms[model]
    }


def measure(options, peers, graph, model, width):
    contenders = {name: {None: make}
                  for name, make in our_contenders(options, graph, model, width).items()}
    for peer, traits in peers.items():
        contenders[environment.PEERS[peer]] = peer_contenders(
            options, peer, traits["forms"], graph, model, width)
    return turns.measure(contenders, options.turns)


def check_agreement(options, peers, versions, results):
    """Unless it was checked with these programs and peers."""
    known = {"programs": results.programs, "peers": versions}
    kept = results.report.get("agreement", {})
    if options.again or any(kept.get(key) != value for key, value in known.items()):
        kept = {**known, "differences": agreement.check(
            options, environment.python_of(options.venv), peers, dataset_of(options, SMALL),
            arrays_of(options, SMALL), shape_of)}
        results.write(agreement=kept)
    if not agreement.print_table(kept["differences"]):
        sys.exit("run.py: logits don't agree, so times wouldn't compare")


def chosen(text, known, what):
    names = text.split(",") if text else []
    for name in names:
        if name not in map(str, known):
            sys.exit(f"run.py: no {what} {name}; there are {', '.join(map(str, known))}")
    return names


def parse_size(text):
    number, unit = re.fullmatch(r"([\d.]+)([KMGT]?)(?:iB)?", text).groups()
    return int(float(number) * 1024 ** " KMGT".index(unit or " "))


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default=",".join(GRAPHS), help="these, with commas between")
    parser.add_argument("--models", default=",".join(MODELS), help="these; '' for none")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)), help="these; '' for none")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of everyone")
    parser.add_argument("--limit", default="16GiB", type=parse_size, help="data of a process")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench",
                        help="where graphs and runs go; graphs stay there")
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "build/bench/peers-venv")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results/peers.json")
    options = parser.parse_args()
    options.graphs = chosen(options.graphs, GRAPHS, "graph")
    options.models = chosen(options.models, MODELS, "model")
    options.widths = [int(width) for width in chosen(options.widths, WIDTHS, "width")]
    options.work.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = parse()
    peers, missing = environment.find_peers(options.venv)
    versions = {peer: traits["versions"] for peer, traits in peers.items()}
    results = Results(options)
    results.write(peers=versions, missing=missing)
    check_agreement(options, peers, versions, results)
    settings = {"threads": options.threads, "limit_bytes": options.limit, "peers": versions}
    for name, graph, model, width in cases_of(options):
        if results.get(name, settings) is None:
            print(f"\n{name}", file=sys.stderr, flush=True)
            results.put(name, settings, measure(options, peers, graph, model, width))
    report.print_tables(results.report["cases"], options.limit)


if __name__ == "__main__":
    main()
