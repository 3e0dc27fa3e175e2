"""A case: every contender's best form, then turns."""

import math
import pathlib
import re
import statistics
import sys
import time

from contenders import Failed, machine_seconds

TURN_SECONDS = 1.0
MOST_STEPS = 50
TRIED_STEPS, TRIED_SECONDS, FAR = 3, 5, 4
# Of steps longer than this a few turns have to do.
LONG_SECONDS, FEW_TURNS = 20, 3
# What stays free beside the contenders of a case.
SPARE_BYTES = 3 << 30


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def available_bytes():
    text = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(r"MemAvailable:\s+(\d+) kB", text)[1]) * 1024


def peak_of(contender):
    return max(contender.peak_bytes or 0, contender.built_peak_bytes or 0)


def try_form(make, best):
    """The fastest of up to three steps after the one that warms up; of a form far from `best` that
    one has to do."""
    contender = make()
    try:
        contender.start()
        if contender.first_seconds > FAR * best:
            return {"seconds": contender.first_seconds, "peak_bytes": peak_of(contender)}
        seconds = [contender.steps(1)]
        while len(seconds) < TRIED_STEPS and sum(seconds) < TRIED_SECONDS:
            seconds.append(contender.steps(1))
        return {"seconds": min(seconds), "peak_bytes": peak_of(contender)}
    except Failed as failure:
        return {"error": str(failure)}
    finally:
        contender.close()


def choose(name, forms):
    """The form whose step is fastest, what all of them came to, and the error if all fail."""
    tried = {}
    for form, make in forms.items():
        best = min((reply.get("seconds", math.inf) for reply in tried.values()), default=math.inf)
        tried[form] = try_form(make, best)
        reply = tried[form]
        say(f"{name}{f', {form}' if form else ''}: "
            + (reply.get("error")
               or f"{reply['seconds']:.3f} s, {reply['peak_bytes'] >> 20} MiB"))
    good = {form: reply for form, reply in tried.items() if "error" not in reply}
    best = min(good, key=lambda form: good[form]["seconds"]) if good else None
    result = {"form": best, "turns": [], "others_busy": []}
    if list(forms) != [None]:
        result["tried"] = tried
    if not good:
        result["error"] = list(tried.values())[-1]["error"]
    return result, good.get(best)


class Entry:
    """A contender in its turns; `seconds`: of its step, roughly."""

    def __init__(self, name, make, result, seconds):
        self.name, self.make, self.result = name, make, result
        self.count = max(1, min(MOST_STEPS, round(TURN_SECONDS / max(seconds, 1e-6))))
        self.most_turns = FEW_TURNS if seconds > LONG_SECONDS else sys.maxsize
        self.contender = None

    def guard(self, work):
        """Does some work unless it failed before."""
        if "error" in self.result:
            return
        try:
            work()
        except Failed as failure:
            self.result["error"] = str(failure)
            say(f"{self.name}: {failure}")

    def open(self):
        self.contender = self.make()
        self.guard(self.contender.start)

    def turn(self):
        if len(self.result["turns"]) < self.most_turns:
            self.guard(self.take)

    def take(self):
        """Also notes how many processors others kept busy meanwhile."""
        begin = time.monotonic(), machine_seconds() - self.contender.cpu_seconds()
        seconds = self.contender.steps(self.count)
        others = machine_seconds() - self.contender.cpu_seconds() - begin[1]
        self.result["turns"].append(seconds / self.count)
        self.result["others_busy"].append(others / (time.monotonic() - begin[0]))

    def close(self):
        self.contender.close()
        if self.result["turns"]:
            self.result.update(
                seconds=statistics.median(self.result["turns"]),
                fastest_seconds=min(self.result["turns"]), steps_in_turn=self.count,
                peak_bytes=self.contender.peak_bytes,
                built_peak_bytes=self.contender.built_peak_bytes)


def take_turns(entries, turns):
    """Whoever is first in a turn is last in the next one."""
    try:
        for entry in entries:
            entry.open()
        for i in range(turns):
            for k in range(len(entries)):
                entries[(i + k) % len(entries)].turn()
    finally:
        for entry in entries:
            entry.close()


def measure(contenders, turns):
    """`contenders`: by name, how each of their forms is made."""
    results, entries, peaks = {}, [], 0
    for name, forms in contenders.items():
        results[name], tried = choose(name, forms)
        if tried:
            make = forms[results[name]["form"]]
            entries.append(Entry(name, make, results[name], tried["seconds"]))
            peaks += tried["peak_bytes"]
    together = peaks <= available_bytes() - SPARE_BYTES
    for group in [entries] if together else [[entry] for entry in entries]:
        take_turns(group, turns)
    for name, result in results.items():
        if "seconds" in result:
            say(f"{name}: {result['seconds']:.3f} s, {result['peak_bytes'] >> 20} MiB")
    return {"together": together, "contenders": results}
