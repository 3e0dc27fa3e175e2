"""The peers' virtual environment, and who of them can be had in it."""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
BUILT = HERE / "requirements-sampling.txt"
PEERS = {"dgl": "DGL", "pyg": "PyG"}


def install(venv):
    """All of requirements.txt; if that fails one after the other, so that what can be had is."""
    print(f"making {venv} from the Python index: some GB", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [venv / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "-r", REQUIREMENTS]).returncode == 0:
        return
    for line in REQUIREMENTS.read_text().splitlines():
        if line and not line.startswith("#"):
            subprocess.run([*pip, "-c", REQUIREMENTS, line])


def install_built(venv):
    """What NeighborLoader needs, unless it is there: some minutes of a C++ compiler, without
    CUDA."""
    python = python_of(venv)
    if subprocess.run([python, "-c", "import torch_sparse"], capture_output=True).returncode == 0:
        return
    print(f"building torch-sparse in {venv}: some minutes", file=sys.stderr, flush=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "setuptools<70", "wheel"], check=True)
    lines = BUILT.read_text().splitlines()
    for line in lines:  # in order: torch-sparse imports torch-scatter
        if line and not line.startswith("#"):
            subprocess.run([*pip, "--no-build-isolation", line], check=True,
                           env={**os.environ, "FORCE_ONLY_CPU": "1"})


def python_of(venv):
    """Its interpreter."""
    return venv / "bin/python"


def ask(python, *arguments):
    """What worker.py answers to one question."""
    result = subprocess.run([python, HERE / "worker.py", *map(str, arguments)],
                            capture_output=True, text=True)
    lines = result.stdout.strip().splitlines()
    if lines:
        return json.loads(lines[-1])
    complaint = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
    return {"error": complaint[-1][:300]}


def find_peers(venv):
    """Those that can be imported, with versions and forms of graphs, and why the others can't."""
    found, missing = {}, {}
    for peer, name in PEERS.items():
        try:
            if not python_of(venv).exists():
                install(venv)
            reply = ask(python_of(venv), "forms", peer)
        except (OSError, subprocess.CalledProcessError) as error:
            reply = {"error": f"no virtual environment: {error}"}
        if "error" in reply:
            missing[peer] = reply["error"]
            print(f"{name} could not be had: {reply['error']}", flush=True)
        else:
            found[peer] = reply
    return found, missing
