"""The run of all stages: time, results, exit code. A stage is a process of its own, so that one
which hangs or dies takes nothing with it."""

import argparse
import datetime
import importlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bundle
import page
import shapes
import stage
from contenders import Failed
from processes import HERE, die_with_parent

# Shares of the limit, in seconds of 540.
SHARES = {"machine": 50, "contract": 60, "sanitizer": 90, "gather": 115, "epochs": 125,
          "memory": 90}
SPARE, LATE = 10, 60
# Those that run while graphs are made, and those that need them.
MEANWHILE, NEED_GRAPHS = ("contract", "sanitizer"), "gather"


def parse(description):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, help="archive or folder")
    parser.add_argument("--build", type=pathlib.Path, help="a build, in place of a bundle")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu-results"))
    parser.add_argument("--dry", action="store_true", help="on the emulated GPU of --build")
    parser.add_argument("--scale", type=float, help="of the graphs (1; dry: 1e-4)")
    parser.add_argument("--limit", type=float, default=540, help="seconds of all stages (540)")
    parser.add_argument("--stages", default=",".join(SHARES), help="these, with commas between")
    parser.add_argument("--commit", help="of the bundle, where git can't tell")
    parser.add_argument("--work", type=pathlib.Path, help="where graphs and runs go; they stay")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--context", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scale is None:
        options.scale = 1e-4 if options.dry else 1.0
    options.stages = options.stages.split(",")
    unknown = set(options.stages) - set(SHARES)
    if unknown:
        parser.error(f"no stage {', '.join(unknown)}; there are {', '.join(SHARES)}")
    if not options.context and (not options.bundle) == (not options.build):
        parser.error("give --bundle or --build")
    if options.dry and options.bundle:
        parser.error("--dry needs --build: a bundle has nothing that is emulated")
    return options


def run_inside(options):
    """One stage, in the process that the run started for it."""
    context = stage.load_context(options.context)
    begin = time.monotonic()
    report = stage.Stage(options.stage, context.work / f"{options.stage}.json", options.limit)
    try:
        importlib.import_module(options.stage).run(context, report)
    except Failed as failure:
        report.fail(str(failure))
    except Exception as error:
        report.fail(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300]}")
        raise
    finally:
        report.put(took_seconds=round(time.monotonic() - begin, 1))
    return 0


def commit_of(options):
    """None where there is no git, or no repository."""
    if options.commit or not shutil.which("git"):
        return options.commit
    result = subprocess.run(["git", "-C", HERE, "describe", "--always", "--abbrev=40", "--dirty"],
                            capture_output=True, text=True)
    return result.stdout.strip() or None


def set_environment(options, programs, work):
    """Of all that is started: rates are measured anew; what is emulated finds its driver."""
    if options.dry:
        os.environ["LD_LIBRARY_PATH"] = str(programs)
        os.environ.setdefault("CUDA_EMULATION", "bytes=1073741824")
        return
    os.environ["XDG_CACHE_HOME"] = str(work / "cache")
    try:
        import ctypes

        ctypes.CDLL("libcuda.so.1")
    except OSError:
        folders = [str(folder) for folder in map(pathlib.Path, (
            "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/local/cuda/compat"))
            if (folder / "libcuda.so.1").exists()]
        known = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = ":".join(folders + ([known] if known else []))


class Child:
    """A stage's process and its group."""

    def __init__(self, run, name, seconds):
        self.run, self.name, self.seconds = run, name, seconds
        self.path = run.work / f"{name}.json"
        self.path.unlink(missing_ok=True)
        self.begin = time.monotonic()
        command = [sys.executable, HERE / "run", "--stage", name, "--context", run.context,
                   "--limit", str(seconds)]
        with (run.options.out / f"{name}.log").open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            start_new_session=True, preexec_fn=die_with_parent)

    def finish(self, seconds):
        """Its report, with how it ended."""
        late = None
        try:
            self.process.wait(max(seconds, 0.1))
        except subprocess.TimeoutExpired:
            late = f"stopped after {time.monotonic() - self.begin:.0f} s"
        self.kill()
        report = stage.read_report(self.path)
        if late:
            report["failures"].append(late)
        elif self.process.returncode != 0 and not report["failures"]:
            report["failures"].append(f"exit code {self.process.returncode}; see {self.name}.log")
        report.setdefault("took_seconds", round(time.monotonic() - self.begin, 1))
        report["limit_seconds"] = round(self.seconds, 1)
        return report

    def kill(self):
        """All that is left of the group."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Run:
    """All stages."""

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.begin = time.monotonic()
        self.factor = options.limit / (sum(SHARES.values()) + SPARE)
        self.results = {
            "commit": commit_of(options), "dry": options.dry, "scale": options.scale,
            "began": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": sys.argv, "python": sys.version.split()[0], "stages": {}}
        programs, tests = bundle.locate(options, work)
        set_environment(options, programs, work)
        self.results["settings"] = shapes.settings(options.scale, options.dry)
        self.context = work / "context.json"
        self.context.write_text(json.dumps({
            "programs": str(programs), "tests": {k: str(v) for k, v in tests.items()},
            "work": str(work), "dry": options.dry, "scale": options.scale,
            "threads": os.cpu_count(), **self.results["settings"]}))
        self.preparing = None

    def left(self):
        return self.options.limit - (time.monotonic() - self.begin)

    def later(self, name):
        """Shares of the stages after it."""
        names = self.options.stages
        return self.factor * sum(SHARES[other] for other in names[names.index(name) + 1:])

    def put(self, name, report):
        self.results["stages"][name] = report
        self.write()
        said = report["failures"] or report["not_here"] or ["done"]
        print(f"{name}: {report['took_seconds']:.0f} s: {said[0]}", file=sys.stderr, flush=True)

    def write(self):
        self.results["seconds"] = round(time.monotonic() - self.begin, 1)
        for name, text in (("results.json", json.dumps(self.results, indent=1) + "\n"),
                           ("page.md", page.page(self.results))):
            new = self.options.out / f"{name}.new"
            new.write_text(text)
            new.replace(self.options.out / name)

    def prepare(self, name):
        """Begins to make graphs before the first stage that runs meanwhile, and waits for them
        before the first one that needs them."""
        names = [*SHARES]
        needed = any(names.index(other) >= names.index(NEED_GRAPHS)
                     for other in self.options.stages)
        if self.preparing is None and needed and name != "machine":
            self.preparing = Child(self, "prepare", self.left())
        ready = "prepare" in self.results["stages"]
        if self.preparing and not ready and name not in MEANWHILE:
            late = self.left() - self.later(name) - self.factor * SHARES[name]
            report = self.preparing.finish(late + self.factor * LATE)
            self.put("prepare", report)

    def all(self):
        try:
            for name in self.options.stages:
                self.prepare(name)
                seconds = self.left() - self.later(name) - self.factor * SPARE / 2
                self.put(name, Child(self, name, seconds).finish(seconds))
        finally:
            if self.preparing:
                self.preparing.kill()
            self.write()
        return self.is_good()

    def is_good(self):
        """A dry run may lack what it can't have."""
        reports = self.results["stages"].values()
        return all(not report["failures"] for report in reports) and (
            self.options.dry or all(not report["not_here"] for report in reports))


def main(description):
    options = parse(description)
    if options.stage:
        return run_inside(options)
    options.out.mkdir(parents=True, exist_ok=True)
    work = options.work or pathlib.Path(tempfile.mkdtemp(prefix="ooc-gpu-"))
    work.mkdir(parents=True, exist_ok=True)
    work = work.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        good = Run(options, work).all()
    finally:
        if not options.work:
            shutil.rmtree(work, ignore_errors=True)
    print((options.out / "page.md").read_text())
    return 0 if good else 1
