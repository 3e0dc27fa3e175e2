"""ooc-prep import killed (SIGKILL) at random moments: what is under the dataset's name afterwards
is the old dataset, the new one or nothing, and the next import does its work."""

import os
import random
import subprocess
import time
import unittest

import numpy as np
import programs
from programs import ProgramTest

ROUNDS = 60 if programs.NIGHTLY else 12


class KillTest(ProgramTest):
    def write_graph(self, name, vertices, edges):
        numbers = np.random.default_rng(edges)
        directory = self.path / name
        directory.mkdir()
        np.save(directory / "edges.npy", numbers.integers(0, vertices, (edges, 2)))
        features = numbers.normal(size=(vertices, 16)).astype(np.float32)
        np.save(directory / "features.npy", features)

    def command(self, graph):
        return [
            programs.BIN / "ooc-prep", "import", graph, "-o", "x.ooc", "--force", "--quiet",
            "--order", "random",
        ]  # fmt: skip

    def run_and_kill(self, graph, seconds):
        process = subprocess.Popen(self.command(graph), cwd=self.path, stdout=subprocess.DEVNULL)
        time.sleep(seconds)
        process.kill()
        return process.wait()

    def vertices(self):
        """Of the dataset, which is whole; 0 where there is none."""
        if not (self.path / "x.ooc").exists():
            return 0
        verified = self.succeed("ooc-prep", "verify", "x.ooc", "--quiet").stdout
        return int(verified.split(" vertices")[0].split()[-1].replace(",", ""))

    def test_a_killed_import_leaves_the_old_dataset_the_new_one_or_none(self):
        self.write_graph("small", 3000, 30000)
        self.write_graph("large", 4000, 50000)
        begin = time.monotonic()
        subprocess.run(self.command("large"), cwd=self.path, check=True, stdout=subprocess.DEVNULL)
        duration = time.monotonic() - begin
        self.assertEqual(self.vertices(), 4000)
        moments = random.Random(5)
        killed = 0
        for number in range(ROUNDS):
            if number % 6 == 0:  # now and then with nothing there
                subprocess.run(["rm", "-rf", "x.ooc"], cwd=self.path, check=True)
            before = self.vertices()
            graph, after = (("small", 3000), ("large", 4000))[number % 2]
            begin = time.monotonic()
            code = self.run_and_kill(graph, moments.uniform(0, 1.1 * duration))
            if code == 0:  # the machine is faster than it was
                duration = min(duration, time.monotonic() - begin)
            killed += code != 0
            self.assertIn(self.vertices(), (before, after))
            if code == 0:
                self.assertEqual(self.vertices(), after)
        self.assertGreater(killed, ROUNDS // 4)
        subprocess.run(self.command("small"), cwd=self.path, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.vertices(), 3000)
        self.assertEqual(sorted(os.listdir(self.path)), ["large", "small", "x.ooc"])


if __name__ == "__main__":
    programs.main()
