"""Trainings turn by turn: each runs for an epoch while the others stand still.

A shared machine's pace changes within minutes, and by a third: what is compared has to be measured
seconds apart, not one run after the other.
"""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import training
from memory_limit import MemoryCgroup

# Told to each training, as a user might; it's interrupted after the turns. What is worth its while
# over all epochs, such as an evaluation in the step after, is planned as it would be.
EPOCHS = 100
INTERRUPTED = 130
POLL_SECONDS = 0.02
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Run:
    """A training that stands still but in epoch(). With `limit_bytes` in a memory cgroup. Its
    directory and its scratch lie beside the dataset and are gone after a run that did well. Use
    with `with`."""

    def __init__(self, options, dataset, name, arguments, limit_bytes=None):
        self.run_dir = options.work / f"run-{name}"
        self.seconds, self.cpu_seconds = [], []  # of each epoch
        shutil.rmtree(self.run_dir, ignore_errors=True)
        self.group = limit_bytes and MemoryCgroup(f"ooc-bench-{os.getpid()}-{name}", limit_bytes)
        self.process = None
        self.errors = tempfile.TemporaryFile("w+")
        self.command = [options.programs / "ooc-train", dataset, "--run-dir", self.run_dir,
                        "--quiet", "--epochs", str(EPOCHS), *map(str, arguments)]
        # The machine's rates are measured just before what they predict.
        cache = options.work / f"cache-{name}"
        shutil.rmtree(cache, ignore_errors=True)
        self.environment = training.environment(cache)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process is not None and self.process.returncode == INTERRUPTED:
            shutil.rmtree(self.run_dir)
        if self.group:
            self.group.path.rmdir()

    def epoch(self):
        """The next one; the first one with all that comes before it. False: the run failed."""
        done = len(self.seconds)
        self.check_at_most(done)
        begin, cpu_begin = time.monotonic(), sum(self.cpu_seconds)
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdout=subprocess.DEVNULL, stderr=self.errors,
                env=self.environment, preexec_fn=self.enter)
        else:
            self.process.send_signal(signal.SIGCONT)
        cpu = cpu_begin
        while self.process.poll() is None:
            cpu = self.cpu_so_far()
            if self.epochs_done() > done:
                break
            time.sleep(POLL_SECONDS)
        self.check_at_most(done + 1)
        self.seconds.append(time.monotonic() - begin)
        self.cpu_seconds.append(cpu - cpu_begin)
        if self.process.poll() is not None:
            return False
        self.process.send_signal(signal.SIGSTOP)
        return True

    def interrupt(self):
        """After the last turn."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.send_signal(signal.SIGCONT)
        self.process.wait()

    def check_at_most(self, epochs):
        if self.epochs_done() > epochs:
            sys.exit(f"epochs of {self.run_dir.name} are too short to be taken in turn")

    def enter(self):
        """In the new process. One that stands still must not outlive a bench that is killed."""
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if self.group:
            self.group.enter()

    def cpu_so_far(self):
        """Seconds of all its threads; the process is there, ended or not."""
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def epochs_done(self):
        metrics = self.run_dir / "metrics.jsonl"
        return metrics.read_text().count("\n") if metrics.exists() else 0

    def moved(self):
        """Bytes read and written in the last epoch."""
        line = json.loads((self.run_dir / "metrics.jsonl").read_text().splitlines()[-1])
        return line["bytes_read"], line["bytes_written"]

    def input_bytes(self):
        """Of the tensors that its epochs read and don't write."""
        document = json.loads((self.run_dir / "plan.json").read_text())
        return training.plan_figures(document)["input_bytes"]

    def error(self):
        self.errors.seek(0)
        return self.errors.read().strip()[-500:]

    def result(self):
        """As training.train() has it, after the last turn or a failure; `cpu_busy` is the share of
        all processors' time that it took."""
        self.interrupt()
        done = self.process.returncode == INTERRUPTED
        result = {"exit_code": 0 if done else self.process.returncode, "error": self.error(),
                  "peak_cgroup_bytes": self.group.peak() if self.group else None}
        if done:
            result.update(training.read_run(self.run_dir, self.seconds))
            steady = slice(training.WARM_UP, None)
            result["cpu_busy"] = (sum(self.cpu_seconds[steady])
                                  / (sum(self.seconds[steady]) * os.cpu_count()))
        return result
