"""What a stage has: the run's context, the time that is left, and a report that outlives it."""

import json
import pathlib
import time
import types


def load_context(path):
    """Paths as such, and the shapes' counts."""
    context = types.SimpleNamespace(**json.loads(path.read_text()))
    for name in ("programs", "work"):
        setattr(context, name, pathlib.Path(getattr(context, name)))
    context.tests = {name: pathlib.Path(file) for name, file in context.tests.items()}
    return context


class Stage:
    """Written whenever it changes: a stage that is killed has said what it found."""

    def __init__(self, name, path, seconds):
        self.name, self.path = name, path
        self.end = time.monotonic() + seconds
        self.report = {"failures": [], "not_here": []}
        self.write()

    def left(self):
        """Seconds."""
        return max(0.0, self.end - time.monotonic())

    def put(self, **figures):
        self.report.update(figures)
        self.write()

    def fail(self, line):
        self.report["failures"].append(line)
        self.write()

    def absent(self, line):
        """What this machine lacks."""
        self.report["not_here"].append(line)
        self.write()

    def write(self):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.report, indent=1, default=str) + "\n")
        new.replace(self.path)


def read_report(path):
    return json.loads(path.read_text()) if path.exists() else {"failures": [], "not_here": []}
