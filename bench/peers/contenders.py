"""Trainings that take turns: ooc, and a peer in worker.py. Each has start(), steps(n) and close(),
and stands still but in the first two. A failure is a Failed with what it said."""

import ctypes
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time

from environment import HERE

POLL_SECONDS = 0.005
PATIENCE_SECONDS = 240
EPOCHS = 1_000_000  # without an end, and without an evaluation
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Failed(Exception):
    pass


def machine_seconds():
    """What all processors worked so far, for whomever."""
    user, nice, system, _, _, irq, softirq = map(
        int, pathlib.Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class Contender:
    """A process with a limit on its data (RLIMIT_DATA): what it can't have it is refused."""

    def __init__(self, command, limit_bytes, threads):
        self.command, self.limit_bytes = [str(part) for part in command], limit_bytes
        free = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        self.environment = {**free, "OMP_NUM_THREADS": str(threads),
                            "MKL_NUM_THREADS": str(threads)}
        self.errors = tempfile.TemporaryFile("w+")
        self.process, self.peak_bytes, self.built_peak_bytes = None, None, None
        self.first_seconds = 0  # of a step that warms up, unless it does more than that

    def launch(self, **pipes):
        self.process = subprocess.Popen(self.command, stderr=self.errors, env=self.environment,
                                        preexec_fn=self.enter, **pipes)

    def enter(self):
        """In the new process. One that stands still must not outlive a bench that is killed."""
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_DATA, (self.limit_bytes, self.limit_bytes))

    def failure(self):
        """Of a process that has ended or is about to."""
        code = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        if code == -signal.SIGKILL:
            return Failed("killed, out of memory")
        return Failed(f"exit code {code}: {lines[-1][:300] if lines else ''}")

    def cpu_seconds(self):
        """With its own processes that have ended."""
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        return sum(map(int, text.rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout) if self.process else ():
            if pipe:
                pipe.close()
        self.errors.close()


class Ours(Contender):
    """Epochs of ooc-train. With `pass_name` only that pass is timed, by its own clock."""

    def __init__(self, options, dataset, name, arguments, pass_name=None):
        self.run_dir, self.pass_name = options.work / f"run-{name}", pass_name
        shutil.rmtree(self.run_dir, ignore_errors=True)
        super().__init__(
            [options.programs / "ooc-train", dataset, "--run-dir", self.run_dir, "--quiet",
             "--epochs", EPOCHS, "--eval-every", EPOCHS, "--checkpoint-every", EPOCHS, "--threads",
             options.threads, "--host-memory", options.limit, *arguments],
            options.limit, options.threads)
        self.size, self.done = 0, 0

    def start(self):
        """The first epoch does what is done once; the second one warms up."""
        self.launch(stdout=subprocess.DEVNULL)
        self.wait_for(2)
        self.stop()

    def steps(self, count):
        """Seconds of so many."""
        first = self.epochs_done()
        # The pass in which it stands still takes long by its own clock.
        edge = 1 if self.pass_name else 0
        begin = time.perf_counter()
        self.process.send_signal(signal.SIGCONT)
        self.wait_for(first + count + edge)
        seconds = time.perf_counter() - begin
        done = self.done - first
        self.stop()
        if not self.pass_name:
            return seconds / done * count
        lines = (self.run_dir / "metrics.jsonl").read_text().splitlines()
        passes = [p["seconds"] for line in lines[first + 1:first + 1 + count]
                  for p in json.loads(line)["passes"] if p["name"] == self.pass_name]
        assert len(passes) == count, passes
        return sum(passes)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        self.peak_bytes = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def wait_for(self, epochs):
        begin = time.monotonic()
        while self.epochs_done() < epochs:
            if self.process.poll() is not None:
                raise self.failure()
            if time.monotonic() - begin > PATIENCE_SECONDS:
                raise Failed(f"not done within {PATIENCE_SECONDS} s")
            time.sleep(POLL_SECONDS)

    def epochs_done(self):
        metrics = self.run_dir / "metrics.jsonl"
        if metrics.exists():
            with metrics.open("rb") as file:
                file.seek(self.size)
                new = file.read()
            self.size += len(new)
            self.done += new.count(b"\n")
        return self.done

    def close(self):
        super().close()
        shutil.rmtree(self.run_dir, ignore_errors=True)


class Peer(Contender):
    """A worker, which stands still until it is told to step."""

    def __init__(self, options, python, arguments, script="worker.py"):
        super().__init__([python, HERE / script, *arguments, "--threads", options.threads],
                         options.limit, options.threads)

    def start(self):
        self.launch(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        reply = self.read()
        self.built_peak_bytes = reply["built_peak_bytes"]
        self.first_seconds = reply["first_seconds"]

    def steps(self, count):
        try:
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.failure() from None
        return self.read()["seconds"]

    def read(self):
        if not select.select([self.process.stdout], [], [], PATIENCE_SECONDS)[0]:
            raise Failed(f"no step within {PATIENCE_SECONDS} s")
        line = self.process.stdout.readline()
        if not line:
            raise self.failure()
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(reply["error"])
        self.peak_bytes = reply["peak_bytes"]
        return reply
