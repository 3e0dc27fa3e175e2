"""The tests of a backend, on the GPU."""

import re
import time

import processes
from contenders import Failed

SKIPPED = 77
# A few seconds of the emulated machine.
DRY = "cuda kernels:*,cuda edges: sums*,cuda rows:*"
PASSED_AND_FAILED = r'{} successes="(\d+)" failures="(\d+)"'


def run(context, stage):
    suites = {}
    names = ["gpu_tests"] if context.dry else ["gpu_tests", "gpu_training_tests"]
    if context.dry:
        stage.absent("the training tests are not run in a dry run")
    for name in names:
        suites[name] = run_suite(context, stage, name, stage.left() / (len(names) - len(suites)))
        stage.put(suites=suites)


def run_suite(context, stage, name, seconds):
    xml = context.work / f"{name}.xml"
    xml.unlink(missing_ok=True)
    begin, code = time.monotonic(), None
    try:
        result = processes.run(
            [context.tests[name], "--warn", "NoTests", "-r", "xml", "-o", xml,
             DRY if context.dry else "~[emulation]"], seconds)
        code = result.returncode
    except Failed as failure:
        stage.fail(str(failure))
    figures = read(xml.read_text() if xml.exists() else "")
    figures.update(seconds=round(time.monotonic() - begin, 2), exit_code=code)
    if code == SKIPPED:
        stage.fail(f"{name}: {result.stdout.strip()[:200]}")
    elif code is not None and (code != 0 or figures["failed"] or not figures["passed"]):
        names = "; ".join(figures["failed_names"]) or figures["last"]
        stage.fail(f"{name}: exit code {code}, {figures['failed']} failed: {names}")
    elif code is None:
        stage.fail(f"{name}: it was at: {figures['last']}")
    return figures


def read(text):
    """Of Catch's XML, whole or not."""
    cases = re.split(r"<TestCase ", text)[1:]
    names = [re.match(r'name="([^"]*)"', case)[1] for case in cases]
    done = [name for name, case in zip(names, cases) if '<OverallResult success="true"' in case]
    failed = [name for name, case in zip(names, cases)
              if '<OverallResult success="false"' in case]
    totals = re.findall(PASSED_AND_FAILED.format("<OverallResults"), text)
    return {"passed": len(done), "failed": len(failed), "failed_names": failed,
            "assertions": sum(map(int, totals[-1])) if totals else None,
            "last": names[-1] if names else "nothing"}
