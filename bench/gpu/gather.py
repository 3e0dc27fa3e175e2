"""Sums over edges beside cuSPARSE, in turns: what EdgeWork does, with its index and without."""

import statistics
import sys

import processes
from contenders import Failed
from processes import HERE, Worker

# Of the largest sum.
LARGEST = 1e-4
CHECKED_ROWS, MOST_CALLS = 500, 50
OURS = {"run": "with the index", "gather": "sums alone", "index": "index alone"}


def run(context, stage):
    why = processes.why_no_torch()
    if why:
        stage.absent(f"cuSPARSE: {why}")
    cases = {}
    for name, (_, _, _, widths, _) in context.gathers.items():
        for columns in widths:
            label = f"{name} {columns}"
            cases[label] = {}
            try:
                graph = context.work / name, columns
                measure(context, stage, label, graph, not why, cases[label])
            except Failed as failure:
                stage.fail(f"{label}: {failure}")
            stage.put(cases=cases)


def measure(context, stage, label, graph, with_peer, case):
    """Into `case`, which has what was found so far if something fails."""
    ours = Worker(context.tests["gpu_gather_bench"], "run", *graph)
    theirs = Worker(sys.executable, HERE / "cusparse_worker.py", *graph) if with_peer else None
    try:
        for worker in filter(None, (ours, theirs)):
            worker.start()
        case.update(ours.read(stage.left()))
        case.update(bytes_of(case))
        case["difference"] = ours.ask(f"check {CHECKED_ROWS}", stage.left())["difference"]
        if not case["difference"] <= LARGEST:
            stage.fail(f"{label}: sums differ from the host's by {case['difference']:.1e}")
        if theirs:
            agree(context, stage, label, ours, theirs, case)
        take_turns(context, stage, ours, theirs, case)
    finally:
        for worker in filter(None, (ours, theirs)):
            worker.close()


def bytes_of(case):
    """`gathered`: every edge's row and its neighbour's id. `least`: the matrix and the sums once,
    and the ids."""
    row, ids = 4 * case["columns"], 4 * case["edges"]
    return {"gathered_bytes": row * case["edges"] + ids + row * case["vertices"],
            "least_bytes": 2 * row * case["vertices"] + ids + 4 * case["vertices"]}


def agree(context, stage, label, ours, theirs, case):
    facts = theirs.read(stage.left())
    case["cusparse"] = facts
    path = context.work / "sums.bin"
    ours.ask(f"write {path}", stage.left())
    case["cusparse_difference"] = theirs.ask(f"compare {path}", stage.left())["difference"]
    path.unlink()
    if not case["cusparse_difference"] <= LARGEST:
        stage.fail(f"{label}: sums differ from cuSPARSE's by {case['cusparse_difference']:.1e}")


def take_turns(context, stage, ours, theirs, case):
    """Calls of a turn take turn_seconds together; the median of the turns counts."""
    contenders = {what: (ours, what) for what in OURS}
    if theirs:
        contenders["cusparse"] = (theirs, "step")
    counts, turns = {}, {name: [] for name in contenders}
    for name, (worker, what) in contenders.items():
        seconds = worker.ask(f"{what} 1", stage.left())["seconds"]
        counts[name] = max(1, min(MOST_CALLS, round(context.turn_seconds / seconds)))
    for _ in range(context.turns):
        for name, (worker, what) in contenders.items():
            reply = worker.ask(f"{what} {counts[name]}", stage.left())
            turns[name].append(reply["seconds"])
    case["turns"], case["calls_in_turn"] = turns, counts
    case["seconds"] = {name: statistics.median(taken) for name, taken in turns.items()}
