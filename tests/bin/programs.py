"""What the tests of the programs share: running them, judging their errors, small graphs."""

import ctypes
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

import numpy as np

# The folder of the programs is the first argument of every test.
BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/bin").resolve()

# As often as pays at night (bin/run-nightly); else a few times.
NIGHTLY = "OOC_NIGHTLY" in os.environ

# Of metrics.jsonl: what moved, and what needn't. Together what a plan counts.
MOVED, ZEROS = ("bytes_read", "bytes_written"), ("zeros_read", "zeros_written")

# In a second: bytes, elements of dropout, multiply-adds.
RATES = {"storage_read": 2e9, "storage_write": 4.5e9, "storage_both": 2.9e9, "gather": 2.6e10,
         "elementwise": 1.3e11, "dropout": 3.3e9, "packing": 2e10, "multiply_adds": 1.1e11,
         "row_sums": 1.2e11}


def write_graph(directory, vertices=60, classes=3, features=8, degree=4, seed=0):
    """A graph with planted classes under the convention's names: each edge once, a third of the
    vertices in each split."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    labels = np.arange(vertices) % classes
    ends = random.integers(0, vertices, (vertices * degree // 2, 2))
    # Most edges stay inside a class.
    same = random.random(len(ends)) < 0.8
    ends[same, 1] = ends[same, 1] // classes * classes + labels[ends[same, 0]]
    ends = np.minimum(ends, vertices - 1)
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    centres = random.normal(size=(classes, features))
    x = centres[labels] + random.normal(size=(vertices, features))
    order = random.permutation(vertices)
    third = vertices // 3
    np.save(directory / "edges.npy", ends.astype(np.int64))
    np.save(directory / "features.npy", x.astype(np.float32))
    np.save(directory / "labels.npy", labels.astype(np.int64))
    np.save(directory / "train_idx.npy", np.sort(order[:third]))
    np.save(directory / "valid_idx.npy", np.sort(order[third : 2 * third]))
    np.save(directory / "test_idx.npy", np.sort(order[2 * third :]))
    return directory


class ProgramTest(unittest.TestCase):
    """Each test has an empty directory, self.path."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="ooc-test-")
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name)

    def run_program(self, program, *arguments, **options):
        command = [BIN / program, *map(str, arguments)]
        return subprocess.run(
            command, cwd=self.path, capture_output=True, text=True, timeout=300, **options
        )

    def succeed(self, program, *arguments, **options):
        result = self.run_program(program, *arguments, **options)
        self.assertEqual(result.returncode, 0, f"{program} {arguments}: {result.stderr}")
        return result

    def fail_with(self, code, pattern, program, *arguments, **options):
        """The program ends with `code` and one line of the contract's shape that `pattern` is
        found in; --quiet must not silence it."""
        result = self.run_program(program, *arguments, "--quiet", **options)
        self.assertEqual(result.returncode, code, f"{program} {arguments}: {result.stderr}")
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, rf"\A{program}: error: [^\n]+, [^\n]+; [^\n]+\n\Z")
        self.assertRegex(result.stderr, pattern)
        return result

    def small_disk(self, size):
        """The directory small/ on a file system of `size` bytes where that may be mounted;
        elsewhere a limit on the size of files. Returns what the error says and the options of
        subprocess."""
        small = self.path / "small"
        small.mkdir()
        libc = ctypes.CDLL(None)
        options = f"size={size}".encode()
        if libc.mount(b"tmpfs", str(small).encode(), b"tmpfs", 0, options) == 0:
            self.addCleanup(libc.umount, str(small).encode())
            return "no space left", {}

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

        return "File too large", {"preexec_fn": limit}

    def rates_of_a_machine(self, **others):
        """Options by which plans are made with the rates of a certain machine, whatever this one's
        are."""
        path = self.path / "rates.json"
        path.write_text(json.dumps({**RATES, **others}))
        return "--rates", path

    def prepare(self, name="graph.ooc", **options):
        """A dataset made from write_graph()."""
        graph = write_graph(self.path / "raw", **options)
        self.succeed("ooc-prep", "import", graph, "-o", name, "--undirected", "--quiet")
        return name


def flip_byte(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0xFF]))


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
