"""Training and predictions on a GPU, by programs beside the emulated module: the CPU's losses as
far as sums in another order let them be, within the memory given, resumed to the bit; and what
users are told where a GPU can't be used."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

import programs
from programs import ProgramTest, write_graph
from train_test import curve, metrics

MODEL = ("--hidden", 24, "--layers", 2, "--threads", 2)
EPOCHS = 3


# What stands for the driver's library lies beside the programs.
DRIVER = os.environ | {"LD_LIBRARY_PATH": str(programs.BIN)}


def machine(text):
    return {"env": DRIVER | {"CUDA_EMULATION": text}}


class CudaTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        temporary = tempfile.TemporaryDirectory(prefix="ooc-test-")
        cls.addClassCleanup(temporary.cleanup)
        cls.dataset, cls.cpu = (pathlib.Path(temporary.name) / name for name in ("x.ooc", "cpu"))

        def run(*command):
            command = [str(word) for word in command]
            subprocess.run([programs.BIN / command[0], *command[1:], "--quiet"], check=True,
                           stdout=subprocess.DEVNULL)  # fmt: skip

        run(*("ooc-prep", "generate", "sbm", "--vertices", 3000, "--edges", 12000),
            *("--features", 64, "--classes", 5, "-o", cls.dataset))  # fmt: skip
        run(*("ooc-train", cls.dataset, *MODEL, "--epochs", EPOCHS, "--devices", "cpu"),
            *("--run-dir", cls.cpu))  # fmt: skip

    def run_program(self, program, *arguments, **options):
        return super().run_program(program, *arguments, **({"env": DRIVER} | options))

    def train(self, run, *more, **options):
        return self.succeed("ooc-train", self.dataset, *MODEL, "--run-dir", run, *more, **options)

    def losses(self, run):
        return [line["loss"] for line in metrics(run)]

    def test_a_run_on_the_gpu_is_the_cpu_s_within_its_memory(self):
        result = self.train("run", "--epochs", EPOCHS)  # auto takes the GPU
        self.assertIn("computing on cuda:0, emulated sm_90; --devices cpu", result.stderr)
        expected = self.losses(self.cpu)
        np.testing.assert_allclose(self.losses(self.path / "run"), expected, rtol=1e-4)
        last = metrics(self.path / "run")[-1]
        self.assertGreater(last["peak_device_bytes"], 0)
        self.assertIn("devices = 'cuda:0'", (self.path / "run" / "config.toml").read_text())
        small = ("--device-memory", "5MiB", "--host-memory", "1GiB", "--epochs", EPOCHS)
        self.train("small", *small, "--devices", "cuda", "--quiet", **machine("seed=5"))
        self.assertEqual(curve(self.path / "small"), curve(self.path / "run"))
        self.assertLessEqual(metrics(self.path / "small")[-1]["peak_device_bytes"], 5 << 20)
        # Predictions on either device.
        for devices in ("cuda:0", "cpu"):
            self.succeed(*("ooc-infer", self.dataset, "--run", "run", "--devices", devices),
                         *("-o", devices[:3] + ".npy", "--quiet"))  # fmt: skip
        on_gpu, on_cpu = (np.load(self.path / name) for name in ("cud.npy", "cpu.npy"))
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-3, atol=1e-4)

    def test_a_lost_device_leaves_a_run_that_goes_on_to_the_same_bits(self):
        self.train("whole", "--epochs", EPOCHS, "--quiet")
        options = ("--epochs", EPOCHS, "--checkpoint-every", 1, "--run-dir", "run")
        error = self.fail_with(
            1, r"error: .*, cuda:0; look at nvidia-smi and dmesg, then go on with --resume",
            *("ooc-train", self.dataset, *MODEL, *options), **machine("lost_after=900")
        )  # fmt: skip
        self.assertNotIn("terminate", error.stderr)
        done = len(metrics(self.path / "run"))
        self.assertIn(done, range(1, EPOCHS))
        self.succeed("ooc-train", "--resume", "run", "--quiet")
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"))

    def test_runs_stay_where_they_began_unless_told(self):
        self.train("run", "--epochs", 1, "--devices", "cpu", "--quiet")
        more = ("ooc-train", "--resume", "run", "--epochs")
        stays = self.succeed(*more, 2, "--devices", "auto")
        self.assertNotIn("GPU", stays.stderr)
        self.assertEqual(curve(self.path / "run"), curve(self.cpu)[:2])
        moved = self.succeed(*more, 3, "--devices", "cuda")
        self.assertIn("goes on on cuda: results differ in their last bits", moved.stderr)
        np.testing.assert_allclose(self.losses(self.path / "run"), self.losses(self.cpu), rtol=1e-4)

    def test_models_without_kernels_take_the_cpu_or_say_so(self):
        gat = ("ooc-train", self.dataset, "--model", "gat", "--epochs", 1, "--threads", 2)
        result = self.succeed(*gat, "--run-dir", "run")
        self.assertIn("not computing on cuda:0: there is no CUDA kernel for", result.stderr)
        self.assertNotIn("info: computing on cuda:0", result.stderr)
        self.fail_with(1, r"no CUDA kernel.*--devices cuda; give --devices cpu",
                       *gat, "--devices", "cuda", "--run-dir", "other")  # fmt: skip
        self.assertFalse((self.path / "other").exists())

    def test_weighted_edges_take_the_cpu(self):
        raw = write_graph(self.path / "raw")
        edges = len(np.load(raw / "edges.npy"))
        np.save(raw / "edge_weights.npy", np.linspace(0.1, 1, edges, dtype=np.float32))
        self.succeed("ooc-prep", "import", "raw", "-o", "w.ooc", "--undirected", "--quiet")
        for model in ("gcn", "sage"):
            run = ("ooc-train", "w.ooc", "--model", model, "--epochs", 1, "--run-dir", model)
            result = self.succeed(*run)
            self.assertIn("not computing on cuda:0: there is no CUDA kernel for", result.stderr)
            result = self.succeed("ooc-infer", "w.ooc", "--run", model, "-o", "w.npy", "--force")
            self.assertIn("not computing on cuda:0", result.stderr)

    def test_what_a_gpu_lacks_is_said_in_one_line(self):
        run = ("ooc-train", self.dataset, *MODEL, "--epochs", 1)
        cases = (
            ("driver=0", (), 1, r"there is no NVIDIA driver, --devices; install one, or give"),
            ("driver=12080", (), 1, r"driver is too old: it is for CUDA 12\.8, ooc needs"),
            ("devices=0", (), 1, r"there is no GPU, --devices; look at nvidia-smi, or give"),
            ("capability=70", (), 1, r"too old: its compute capability is 7\.0, the least is"),
            ("", ("--devices", "cuda:3"), 1, r"there is no GPU of the number 3 among 1, --devices"),
            ("", ("--device-memory", "1GiB"), 4, r"has 256 MiB free of 256 MiB, --device-memory"),
            ("bytes=1500000", (), 4, r"device memory budget of \d+ MiB is too small"),
        )
        for emulated, more, code, line in cases:
            with self.subTest(emulated or more):
                options = more if "--devices" in more else ("--devices", "cuda", *more)
                self.fail_with(code, line, *run, *options, **machine(emulated))
        # auto asks for none, and says why it takes none that is there.
        for emulated in ("driver=0", "devices=0", "capability=70"):
            with self.subTest("auto, " + emulated):
                result = self.succeed(*run, "--run-dir", emulated, **machine(emulated))
                warned = "not computing on cuda:0: emulated sm_90 is too old" in result.stderr
                self.assertEqual(warned, emulated == "capability=70")
                text = (self.path / emulated / "config.toml").read_text()
                self.assertIn("devices = 'auto'", text)


if __name__ == "__main__":
    unittest.main()
