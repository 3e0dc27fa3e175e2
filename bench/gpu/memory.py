"""Training within parts of the working set: --device-memory is what the process holds of the GPU's
memory anyway (its context), and a part of what the plan for unlimited memory lays out."""

import json
import statistics

from contenders import Failed
from epochs import DEVICE, MODELS, arguments_of, dataset_of
from processes import run as run_program
from processes import check
from stage import read_report

PARTS = (1, 2, 4, 8)
NEVER = 1_000_000
TOO_LITTLE = 4  # exit code
# Of the GPU's memory beside the plan's, at most: a context, parameters.
MOST_HELD = 768 << 20


def run(context, stage):
    dataset = dataset_of(context)
    if dataset is None:
        stage.fail("there is no dataset: see prepare")
        return
    rates = read_report(context.work / "machine.json").get("rates", {})
    stage.put(graph=dataset, rates=rates)
    models = {}
    for model in MODELS[:1] if context.dry else MODELS:
        models[model] = {"parts": {}}
        try:
            measure(context, stage, dataset["path"], model, rates, models[model])
        except Failed as failure:
            stage.fail(f"{model}: {failure}")
        stage.put(models=models)


def command_of(context, dataset, model, *more):
    return [context.programs / "ooc-train", dataset, *arguments_of(context, model), "--devices",
            DEVICE, "--threads", context.threads, "--eval-every", NEVER, "--epochs",
            context.epochs, "--quiet", *more]


def plan_of(context, stage, dataset, model, *more):
    return json.loads(check(command_of(context, dataset, model, "--plan", "--json", *more),
                            stage.left()))


def measure(context, stage, dataset, model, rates, found):
    """Without a limit on the GPU's memory first."""
    working_set = plan_of(context, stage, dataset, model)["arena_bytes"]
    # The context counts only where memory is given.
    plenty = working_set + MOST_HELD
    held = plan_of(context, stage, dataset, model, "--device-memory", plenty)[
        "device_reserved_bytes"]
    found.update(held_bytes=held, working_set_bytes=working_set)
    for part in (None, *PARTS):
        budget = held + -(-working_set // part) if part else None
        name = f"1/{part}" if part else "no limit"
        figures = found["parts"][name] = {"device_memory_bytes": budget}
        figures.update(train(context, stage, dataset, model, budget))
        if "error" in figures:
            if not figures["too_little"]:
                stage.fail(f"{model}, {name}: {figures['error']}")
            continue
        whole = found["parts"]["no limit"]
        if figures["losses"] != whole.get("losses", figures["losses"]):
            stage.fail(f"{model}, {name}: losses are not those without a limit to the bit")
        if budget and figures["peak_device_bytes"] > budget:
            stage.fail(f"{model}, {name}: it took {figures['peak_device_bytes']} bytes of the "
                       f"GPU's memory, of {budget}")
        judge(figures, whole, rates)


def train(context, stage, dataset, model, budget):
    """Medians of the epochs after the first one."""
    run_dir = context.work / f"memory-{model}"
    limit = ("--device-memory", budget) if budget else ()
    result = run_program(command_of(context, dataset, model, *limit, "--run-dir", run_dir,
                                    "--force"), stage.left())
    if result.returncode != 0:
        said = result.stderr.strip().splitlines() or ["it said nothing"]
        return {"error": said[-1][:300], "too_little": result.returncode == TOO_LITTLE}
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    if len(lines) < 2:
        raise Failed("a run of less than two epochs")

    def median(key):
        return statistics.median(line[key] for line in lines[1:])

    return {"seconds": median("seconds"), "to_device": median("bytes_to_device"),
            "from_device": median("bytes_from_device"),
            "peak_device_bytes": max(line["peak_device_bytes"] for line in lines),
            "losses": [line["loss"] for line in lines]}


def judge(figures, whole, rates):
    """The bound: the larger of either direction's bytes by its rate, and the epoch in memory."""
    if not {"to_device", "from_device"} <= set(rates) or "seconds" not in whole:
        return
    link = max(figures[way] / rates[way] for way in ("to_device", "from_device"))
    figures["link_seconds"] = link
    figures["bound_seconds"] = max(link, whole["seconds"])
    figures["of_bound"] = figures["seconds"] / figures["bound_seconds"]
