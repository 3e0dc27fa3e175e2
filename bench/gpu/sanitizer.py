"""compute-sanitizer on a few tests of every family of kernels."""

import os
import re
import time
from concurrent.futures import ThreadPoolExecutor

import processes
from contenders import Failed

# Tests by family, as Catch takes them.
FAMILIES = {
    "sums of parts, optimisers": "cuda kernels:*",
    "queues": "cuda device: queues copy*",
    "index of edges": "cuda edges: a window's*",
    "sums over edges": "cuda edges: sums*",
    "row programs": "cuda rows:*",
    "element-wise": "elementwise: add*,elementwise: mul_column_sum*",
    "dropout, bits": "dropout: keeps an element*,elementwise: positive_bits*",
    "activations": "activations: the kernels*",
    "columns": "columns: two*,columns: a range*",
    "products": "dense: matmul_reduce*,dense: bias*",
    "losses": "loss: cross-entropy*,loss: the gradient is*",
    "vertex data": "vertex data: factors*",
}
SUMMARIES = {"memcheck": r"ERROR SUMMARY: (\d+)", "racecheck": r"RACECHECK SUMMARY: (\d+)"}
# Errors of the runtime's calls are the tests' matter: that an event isn't ready is one.
OPTIONS = {"memcheck": ("--report-api-errors", "no"), "racecheck": ()}
AT_ONCE = 4
FOUND = 99


def run(context, stage):
    test = context.tests["gpu_tests"]
    if context.dry:
        counts = {family: len(processes.run([test, "--list-test-names-only", tests],
                                            stage.left()).stdout.split("\n")) - 1
                  for family, tests in FAMILIES.items()}
        stage.put(tests=counts)
        for family in (family for family, count in counts.items() if count == 0):
            stage.fail(f"no tests of {family}")
        stage.absent("compute-sanitizer is not used in a dry run")
        return
    sanitizer = processes.find_tool("compute-sanitizer")
    if sanitizer is None:
        stage.absent("compute-sanitizer is not here")
        return
    found = {tool: {} for tool in SUMMARIES}
    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count())) as pool:
        jobs = {(tool, family): pool.submit(check, stage, sanitizer, tool, test, tests)
                for tool in SUMMARIES for family, tests in FAMILIES.items()}
        for (tool, family), job in jobs.items():
            found[tool][family] = result = job.result()
            if result.get("errors") != 0:
                stage.fail(f"{tool}, {family}: {result['said']}")
            stage.put(tools=found)


def check(stage, sanitizer, tool, test, tests):
    """Errors that a tool finds; None and what was said where it did not get to the end."""
    begin = time.monotonic()
    if stage.left() < 2:
        return {"errors": None, "said": "no time was left"}
    try:
        result = processes.run([sanitizer, "--tool", tool, *OPTIONS[tool], "--error-exitcode",
                                FOUND, test, "--warn", "NoTests", tests], stage.left() - 1)
    except Failed as failure:
        return {"errors": None, "said": str(failure)}
    text = result.stdout + result.stderr
    summary = re.search(SUMMARIES[tool], text)
    lines = [line for line in text.splitlines() if line.startswith("=========")]
    errors = int(summary[1]) if summary else None
    if errors == 0 and result.returncode != 0:
        errors = None  # the test itself failed
    found = {"errors": errors, "exit_code": result.returncode,
             "seconds": round(time.monotonic() - begin, 2)}
    if errors != 0:
        told = [line for line in lines if re.search(r"Invalid|Race|Error|hazard", line)]
        found["said"] = (told or text.strip().splitlines()[-1:] or ["nothing"])[0][:300]
    return found
