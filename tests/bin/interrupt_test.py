"""ooc-prep stopped half way, and two of it at the same output."""

import os
import signal
import subprocess
import time

import numpy as np
import programs
from programs import ProgramTest, write_graph


class InterruptTest(ProgramTest):
    def start(self, *arguments):
        command = [programs.BIN / "ooc-prep", *arguments]
        process = subprocess.Popen(command, cwd=self.path, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def interrupted(self, process, number):
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertRegex(errors, r"ooc-prep: interrupted; [^\n]+\n\Z")

    def write_large_graph(self):
        """Some 600 MB of features, a hole on the disk."""
        raw = write_graph(self.path / "raw")
        columns = 1 << 20
        with open(raw / "features.npy", "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (150, columns)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 150 * columns * 4)
        np.save(raw / "labels.npy", np.arange(150) % 3)

    def test_a_terminated_import_leaves_nothing(self):
        self.write_large_graph()
        process = self.start("import", "raw", "-o", "x.ooc")
        while process.poll() is None and not (self.path / "x.ooc.partial").exists():
            time.sleep(0.001)
        self.interrupted(process, signal.SIGTERM)
        self.assertEqual(os.listdir(self.path), ["raw"])

    def test_two_imports_of_one_name_do_not_meet(self):
        self.write_large_graph()
        first = self.start("import", "raw", "-o", "x.ooc")
        while first.poll() is None and not (self.path / "x.ooc.partial" / "scratch").exists():
            time.sleep(0.001)
        first.send_signal(signal.SIGSTOP)
        refusal = "another process is writing this output, x.ooc; "
        self.fail_with(2, refusal, "ooc-prep", "import", "raw", "-o", "x.ooc")
        self.assertTrue((self.path / "x.ooc.partial" / "scratch").exists())
        first.kill()
        first.wait()
        write_graph(self.path / "raw")
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet")
        self.assertEqual(sorted(os.listdir(self.path)), ["raw", "x.ooc"])

    def test_an_interrupted_verification_says_so(self):
        self.prepare("x.ooc", vertices=6000, features=4000)
        status = None
        for _ in range(50):  # until a signal is early enough
            process = self.start("verify", "x.ooc")
            taken = 0  # the mask of the signals that the program handles
            while process.poll() is None and not taken >> (signal.SIGTERM - 1) & 1:
                with open(f"/proc/{process.pid}/status") as file:
                    caught = [line for line in file if line.startswith("SigCgt:")]
                taken = int(caught[0].split()[1], 16) if caught else 0
            process.send_signal(signal.SIGTERM)
            status = process.wait(timeout=60)
            if status != 0:
                break
        self.assertEqual(status, 130)
        self.assertRegex(process.stderr.read(), r"ooc-prep: interrupted; [^\n]+\n\Z")

    def test_an_interrupted_generation_leaves_nothing(self):
        counts = ("--vertices", "400000", "--edges", "8000000", "--features", "64")
        counts = (*counts, "--classes", "4")
        process = self.start("generate", "rmat", *counts, "-o", "x.ooc")
        # Once something lies on the disk the work has begun, and seconds of it are left.
        while process.poll() is None and not os.listdir(self.path):
            time.sleep(0.01)
        self.interrupted(process, signal.SIGINT)
        self.assertEqual(os.listdir(self.path), [])


if __name__ == "__main__":
    programs.main()
