"""Programs that a stage runs. None outlives it."""

import importlib.util
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess
import sys

from contenders import LIBC, PR_SET_PDEATHSIG, Contender, Failed, Ours

HERE = pathlib.Path(__file__).resolve().parent


def die_with_parent():
    """In the new process."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(command, seconds):
    """Its CompletedProcess; Failed if it takes longer."""
    try:
        return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=max(seconds, 0.1), preexec_fn=die_with_parent)
    except subprocess.TimeoutExpired:
        name = pathlib.Path(command[0]).name
        raise Failed(f"{name} was not done within {seconds:.0f} s") from None


def check(command, seconds):
    """What it prints; Failed, with its last line, where it fails."""
    result = run(command, seconds)
    if result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip()).splitlines() or [""]
        name = pathlib.Path(command[0]).name
        raise Failed(f"{name}: exit code {result.returncode}: {said[-1][:400]}")
    return result.stdout


class Worker(Contender):
    """A process that answers each line with one of JSON, the first one of its own accord."""

    def __init__(self, *command):
        super().__init__(command, resource.RLIM_INFINITY, os.cpu_count())

    def start(self):
        self.launch(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, text, seconds):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.failure() from None
        return self.read(seconds)

    def read(self, seconds):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise Failed(f"no answer within {seconds:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise self.failure()
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(reply["error"])
        return reply


class OursOnGpu(Ours):
    """Epochs of ooc-train on the GPU. Its driver reserves more than a limit on data would allow."""

    def enter(self):
        die_with_parent()


def has(module):
    return importlib.util.find_spec(module) is not None


def why_no_torch():
    """Of stages that need it with a GPU; None where there are both."""
    if not has("torch"):
        return "torch is not here"
    import torch

    return None if torch.cuda.is_available() else "torch sees no GPU"


def find_tool(name):
    """Of the CUDA toolkit, where that lies by itself or as packages of Python; None if absent."""
    folders = [pathlib.Path("/usr/local/cuda/bin")]
    for folder in map(pathlib.Path, sys.path):
        folders += sorted(folder.glob("nvidia/*/bin"))
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, folders)))
