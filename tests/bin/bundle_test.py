"""A bundle, as cpack makes it, where nothing else is: below a root that has the C and C++ libraries
and /proc, its programs find their libraries and compute what those of the build do, to the bit."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import programs
from train_test import curve

BUILD = programs.BIN.parent
# What a Linux must bring.
SYSTEM = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1",
          "libresolv.so.2", "libstdc++.so.6", "libgcc_s.so.1")  # fmt: skip
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 30)}
MAX_PACKED = 64 << 20  # in haste; for others it is packed much smaller
LOADER = pathlib.Path("/lib64/ld-linux-x86-64.so.2")
CONFIG = BUILD / "CPackConfig.cmake"
MODEL = ("--hidden", "24", "--layers", "2", "--threads", "2", "--epochs", "3")
GRAPH = ("--vertices", "3000", "--edges", "12000", "--features", "64", "--classes", "5")
# Mounts of its own: they go when it ends.
ENTER = 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'


def enter():
    """The command that runs another below a root; none where that isn't allowed."""
    for command in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        with tempfile.TemporaryDirectory() as root:
            command += ["sh", "-c", ENTER, root]
            os.mkdir(f"{root}/proc")
            result = subprocess.run([*command, "/"], capture_output=True, text=True,
                                    env=os.environ | {"LC_ALL": "C"})  # fmt: skip
            if "chroot: failed to run command" in result.stderr:  # so it came as far as that
                return command[:-1]
    return None


def libraries():
    """Paths of this machine's by name."""
    lines = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True,
                           env=os.environ | {"PATH": os.environ["PATH"] + ":/sbin"}).stdout
    found = re.findall(r"^\s*(\S+) \(libc6,x86-64.*\) => (\S+)$", lines, re.M)
    return dict(reversed(found))


def make_root(root):
    """What a bare Linux has."""
    for folder in ("tmp", "proc", "lib64", "usr/lib"):
        (root / folder).mkdir(parents=True)
    there = libraries()
    for name in SYSTEM:
        shutil.copy(there[name], root / "usr/lib" / name)
    shutil.copy(LOADER, root / "lib64")


class BundleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="ooc-test-")
        cls.addClassCleanup(temporary.cleanup)
        cls.path = pathlib.Path(temporary.name)
        cls.root = cls.path / "root"
        make_root(cls.root)
        command = ["cpack", "--config", CONFIG, "-B", cls.path, "-D", "OOC_XZ=xz -T2 -0"]
        subprocess.run(command, check=True, cwd=cls.path, stdout=subprocess.DEVNULL)
        (archive,) = cls.path.glob("*.tar.xz")
        cls.packed = archive.stat().st_size
        subprocess.run(["tar", "-xf", archive, "-C", cls.root], check=True)
        archive.unlink()
        (cls.bundle,) = cls.root.glob("ooc-*")

    def run_below(self, program, *arguments, **variables):
        """`program` is a path in the bundle."""
        inside = pathlib.Path("/", self.bundle.name, program)
        command = [*COMMAND, self.root, inside, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300,
                              env=os.environ | variables)

    def succeed_below(self, *command):
        result = self.run_below(*command)
        self.assertEqual(result.returncode, 0, f"{command}: {result.stderr}")
        return result.stdout

    def succeed(self, program, *arguments):
        command = [programs.BIN / program, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def binaries(self):
        return [path for path in self.bundle.rglob("*") if not path.is_symlink()
                and path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]  # fmt: skip

    def test_it_makes_a_graph_trains_and_predicts_as_the_build_does(self):
        self.succeed_below("bin/ooc-prep", "generate", "sbm", *GRAPH, "-o", "/tmp/x.ooc", "--quiet")
        train = (*MODEL, "--quiet")
        below = self.succeed_below("bin/ooc-train", "/tmp/x.ooc", *train, "--run-dir", "/tmp/run")
        infer = ("--what", "logits", "--quiet")
        self.succeed_below(*("bin/ooc-infer", "/tmp/x.ooc", "--run", "/tmp/run"),
                           *("-o", "/tmp/x.npy", *infer))  # fmt: skip
        self.assertIn("3,000", self.succeed_below("bin/ooc-inspect", "/tmp/x.ooc"))
        tmp, dataset, run = self.root / "tmp", self.path / "x.ooc", self.path / "run"
        self.succeed("ooc-prep", "generate", "sbm", *GRAPH, "-o", dataset, "--quiet")
        self.assertEqual(below, self.succeed("ooc-train", dataset, *train, "--run-dir", run))
        self.succeed("ooc-infer", dataset, "--run", run, "-o", self.path / "x.npy", *infer)
        self.assertEqual(len(curve(run)), 3)
        self.assertEqual(curve(tmp / "run"), curve(run))
        self.assertEqual((tmp / "x.npy").read_bytes(), (self.path / "x.npy").read_bytes())

    def test_it_opens_the_gpu_s_module_and_says_that_there_is_no_driver(self):
        if not (programs.BIN / "libooc_cuda.so").exists():
            self.skipTest("built without CUDA")
        self.succeed_below("bin/ooc-prep", "generate", "sbm", *GRAPH, "-o", "/tmp/g.ooc", "--quiet")
        result = self.run_below("bin/ooc-train", "/tmp/g.ooc", *MODEL, "--devices", "cuda",
                                LD_DEBUG="files")  # fmt: skip
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, "calling init: .*/bin/libooc_cuda.so")
        self.assertRegex(result.stderr, "(?m)^ooc-train: error: there is no NVIDIA driver, "
                         "--devices; install one, or give --devices cpu$")  # fmt: skip

    def test_checks_of_a_gpu_unpack_beside_it(self):
        if not (programs.BIN / "gpu_tests").exists():
            self.skipTest("built without CUDA")
        subprocess.run(["cmake", "--install", BUILD, "--component", "gpu_checks", "--strip",
                        "--prefix", self.bundle], check=True, stdout=subprocess.DEVNULL)
        for name in ("gpu_tests", "gpu_training_tests"):
            result = self.run_below(f"tests/{name}")
            self.assertEqual(result.returncode, 77, result.stderr)
            self.assertIn("skipped: no GPU", result.stdout)
        self.assertIn("make DIR", self.run_below("tests/gpu_gather_bench").stderr)

    def test_it_asks_for_nothing_but_what_every_linux_has(self):
        binaries = self.binaries()
        self.assertGreater(len(binaries), 40)
        self.assertLess(self.packed, MAX_PACKED)
        for path in binaries:
            with self.subTest(path.name):
                text = subprocess.run(["readelf", "--wide", "-d", "--version-info", path],
                                      capture_output=True, text=True, check=True).stdout
                paths = set(re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text))
                ours = path.parent.name != "lib" and path.suffix != ".so"
                self.assertEqual(paths, {"$ORIGIN/../lib"} if ours else set())
                self.assertEqual("(RPATH)" in text, ours)
                for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
                    there = name in SYSTEM or name.startswith("ld-linux")
                    self.assertNotEqual((self.bundle / "lib" / name).exists(), there, name)
                for name, newest in NEWEST.items():
                    for version in re.findall(rf"\b{name}_([\d.]+)", text):
                        self.assertLessEqual(tuple(map(int, version.split("."))), newest)


if __name__ == "__main__":
    COMMAND = enter()
    if COMMAND is None or not LOADER.exists() or not CONFIG.exists():
        print("skipped: this isn't x86-64, there is no bundle, or chroot isn't allowed")
        sys.exit(77)
    programs.main()
