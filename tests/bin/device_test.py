"""Training through a device with memory of its own, below it the host's memory and storage, with
the real programs: the same losses as on the CPU, and the bytes of the plan, in whatever memory."""

import json
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import programs
from programs import ProgramTest
from train_test import curve, metrics

MIB = 1 << 20
EPOCHS = 3
POLICIES = ("none", "lru", "dp", "lp")
LINK = ("bytes_to_device", "bytes_from_device")
STORAGE = ("bytes_read", "bytes_written")
# Input dropout: layers are as wide as their inputs, and the features are read in every epoch.
MODEL = ("--layers", 3, "--hidden", 64, "--input-dropout", 0.1, "--threads", 2)
COUNTS = "vertices=5M,edges=50M,features=128,classes=64"


def read_json(path):
    return json.loads(path.read_text())


class DeviceProgram(ProgramTest):
    """Runs on a device against those on the CPU."""

    devices = "cpu:1"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        temporary = tempfile.TemporaryDirectory(prefix="ooc-test-")
        cls.addClassCleanup(temporary.cleanup)
        shared = pathlib.Path(temporary.name)
        cls.dataset, cls.cpu = shared / "x.ooc", shared / "cpu"

        def run(*command):
            command = [str(word) for word in command]
            subprocess.run([programs.BIN / command[0], *command[1:], "--quiet"], check=True,
                           stdout=subprocess.DEVNULL)  # fmt: skip

        # Features and hidden layers of 10 MiB each, in three blocks.
        run(*("ooc-prep", "generate", "sbm", "--vertices", 40000, "--edges", 200000),
            *("--features", 64, "--classes", 5, "-o", cls.dataset))  # fmt: skip
        run(*("ooc-train", cls.dataset, *MODEL, "--epochs", EPOCHS, "--devices", "cpu"),
            *("--run-dir", cls.cpu))  # fmt: skip

    def options(self, run, *more):
        return (self.dataset, *MODEL, "--run-dir", run, "--devices", self.devices, *more)

    def train(self, run, *more):
        """Returns the lines after the first epoch."""
        self.succeed("ooc-train", *self.options(run, "--epochs", EPOCHS, "--quiet", *more))
        self.check(self.path / run, *more)
        return metrics(self.path / run)[1:]

    def check(self, run, *options):
        """The losses and metrics of the CPU, the bytes of the plan and within all budgets."""
        self.assertEqual(curve(run), curve(self.cpu))
        plan, summary = read_json(run / "plan.json"), read_json(run / "summary.json")
        expected = {key: plan["epoch"][key] for key in LINK}
        expected |= {key: plan[key + "_per_epoch"] for key in STORAGE}
        passes = [
            {key: line[key] for key in LINK + STORAGE}
            for section in plan["epoch"]["sections"]
            for line in section["passes"]
        ]
        for line in metrics(run)[1:]:
            self.assertEqual({key: line[key] for key in expected}, expected)
            actual = [{key: one[key] for key in LINK + STORAGE} for one in line["passes"]]
            self.assertEqual(actual, passes)
        for key, bytes_per_epoch in expected.items():
            self.assertEqual(summary[key + "_per_epoch"], bytes_per_epoch)
        last = metrics(run)[-1]
        self.assertGreater(last["peak_device_bytes"], 0)
        self.assertEqual(summary["peak_device_bytes"], last["peak_device_bytes"])
        given = dict(zip(options[::2], options[1::2]))
        budgets = [given.get(f"--{memory}-memory", "auto") for memory in ("device", "host")]
        device, host = (int(b.removesuffix("MiB")) * MIB if b != "auto" else 0 for b in budgets)
        if device:
            self.assertLessEqual(last["peak_device_bytes"], device)
        if device and host:  # the devices' memory is in the process, too
            count = int(self.devices.removeprefix("cpu:"))
            self.assertLessEqual(summary["peak_host_bytes"], count * device + host)
        self.assertFalse((run / "scratch").exists())

    def least(self, *options, memory, program="ooc-train"):
        """In MiB, as the error names it; `options` are those of the program."""
        given = options[options.index(f"--{memory}-memory") + 1].removesuffix("MiB")
        error = (
            rf"error: a {'device ' if memory == 'device' else ''}memory budget of {given} MiB is "
            r"too small: the least that works is \d+ MiB \(\d+ for the plan, "
            rf"\d+ for what else the process holds\), --{memory}-memory; "
        )
        result = self.fail_with(4, error, program, *options)
        return int(re.search(r"the least that works is (\d+) MiB", result.stderr)[1])

    def least_of_training(self, *more, memory):
        options = self.options("refused", f"--{memory}-memory", "1MiB", *more)
        least = self.least(*options, memory=memory)
        self.assertFalse((self.path / "refused").exists())
        return least


class DeviceTest(DeviceProgram):
    def test_a_device_that_holds_everything_moves_nothing(self):
        for line in self.train("run"):
            self.assertEqual([line[key] for key in LINK + STORAGE], [0, 0, 0, 0])

    def test_a_small_device_above_much_host_memory_leaves_storage_idle(self):
        for policy in POLICIES:
            with self.subTest(policy):
                device = self.least_of_training("--cache-policy", policy, memory="device") + 4
                options = ("--device-memory", f"{device}MiB", "--cache-policy", policy)
                for line in self.train(policy, *options):
                    for key in STORAGE:  # none: not in the host's memory either
                        self.assertEqual(line[key] > 0, policy == "none")
                    for key in LINK:
                        self.assertGreater(line[key], 10 * MIB)

    def test_three_memories_change_nothing_but_bytes(self):
        for policy in POLICIES:
            with self.subTest(policy):
                options = ("--device-memory", "26MiB", "--cache-policy", policy)
                host = self.least_of_training(*options, memory="host") + 6
                for line in self.train(policy, *options, "--host-memory", f"{host}MiB"):
                    for key in LINK + STORAGE:
                        self.assertGreater(line[key], MIB)

    def test_a_link_is_held_to_a_rate_that_the_plan_goes_by(self):
        options = ("--device-memory", "26MiB", "--link-rate", "1GiB")
        self.train("held", *options)
        rates = read_json(self.path / "held/plan.json")["rates"]
        self.assertEqual((rates["to_device"], rates["from_device"]), (2**30, 2**30))
        self.fail_with(2, "link-rate", "ooc-train", *self.options("x", "--link-rate", "fast"))

    def test_more_host_memory_means_less_storage(self):
        options = ("--device-memory", "26MiB")
        least = self.least_of_training(*options, memory="host")
        moved = []
        for more in (0, 30, 200):
            line = self.train(f"{more}", *options, "--host-memory", f"{least + more}MiB")[-1]
            moved.append(line["bytes_read"] + line["bytes_written"])
        self.assertEqual(moved, sorted(set(moved), reverse=True))
        self.assertEqual(moved[-1], 0)

    def test_the_least_device_memory_that_is_named_works_and_less_does_not(self):
        least = self.least_of_training(memory="device")
        self.train("least", "--device-memory", f"{least}MiB")
        less = self.options("less", "--device-memory", f"{least - 1}MiB")
        self.assertEqual(self.least(*less, memory="device"), least)
        self.assertFalse((self.path / "less").exists())

    def test_the_least_host_memory_below_a_device_works_and_less_does_not(self):
        for device in (self.least_of_training(memory="device"), 40):
            with self.subTest(device=device):
                options = ("--device-memory", f"{device}MiB")
                least = self.least_of_training(*options, memory="host")
                self.train(f"least-{device}", *options, "--host-memory", f"{least}MiB")
                # What is named has two MiB to spare: what a process holds varies.
                less = self.options("less", *options, "--host-memory", f"{least - 4}MiB")
                self.least(*less, memory="host")

    def test_both_memories_too_small_are_named_one_after_the_other(self):
        both = self.options("run", "--device-memory", "1MiB", "--host-memory", "1MiB")
        device = self.least(*both, memory="device")
        options = ("--device-memory", f"{device}MiB")
        host = self.least(*self.options("run", *options, "--host-memory", "1MiB"), memory="host")
        self.train("run", *options, "--host-memory", f"{host}MiB")

    def test_killed_and_resumed_with_another_device_it_is_the_same_run(self):
        model = ("--layers", 2, "--hidden", 64, "--input-dropout", 0.1, "--threads", 2)
        epochs = ("--epochs", 24, "--checkpoint-every", 1)
        self.succeed(*("ooc-train", self.dataset, *model, *epochs, "--devices", "cpu"),
                     *("--run-dir", "whole", "--quiet"))  # fmt: skip
        arguments = (self.dataset, *model, *epochs, "--run-dir", "run")
        for epoch, options in (
            (3, ("--devices", "cpu:1", "--device-memory", "30MiB", "--host-memory", "59MiB")),
            (6, ("--devices", "cpu:1", "--device-memory", "24MiB", "--host-memory", "auto")),
            (9, ("--devices", "cpu", "--host-memory", "64MiB")),
            (12, ("--devices", "cpu:3", "--device-memory", "auto", "--cache-policy", "lp")),
            (15, ("--devices", "auto", "--device-memory", "auto", "--host-memory", "auto")),
        ):
            self.kill_after(epoch, *arguments, *options)
            arguments = ("--resume", "run")
        small = ("--devices", "cpu:1", "--device-memory", "20MiB", "--host-memory", "46MiB")
        self.succeed("ooc-train", *arguments, *small, "--quiet")
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"))
        last = metrics(self.path / "run")[-1]
        for key in LINK + STORAGE:
            self.assertGreater(last[key], MIB)

    def kill_after(self, epoch, *arguments):
        command = [programs.BIN / "ooc-train", *map(str, arguments), "--quiet"]
        with subprocess.Popen(
            command, cwd=self.path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            file = self.path / "run" / "metrics.jsonl"
            while not file.exists() or len(metrics(self.path / "run")) < epoch:
                self.assertIsNone(process.poll(), process.poll() and process.stderr.read())
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            self.assertEqual(process.wait(), -signal.SIGKILL)

    def test_inference_through_a_device_gives_the_same_bytes(self):
        infer = ("ooc-infer", self.dataset, "--run", self.cpu, "--threads", 2)
        self.succeed(*infer, "--devices", "cpu", "-o", "cpu.npy")
        expected = (self.path / "cpu.npy").read_bytes()
        small = (*infer[1:], "-o", "x.npy", "--devices", "cpu:1", "--device-memory")
        device = self.least(*small, "1MiB", memory="device", program="ooc-infer")
        small += (f"{device}MiB", "--host-memory")
        host = self.least(*small, "1MiB", memory="host", program="ooc-infer")
        self.assertFalse((self.path / "x.npy").exists())
        for name, options in {
            "device": (),
            "small": ("--device-memory", f"{device}MiB"),
            "three": ("--device-memory", f"{device}MiB", "--host-memory", f"{host}MiB"),
            "many": ("--devices", "cpu:3"),
        }.items():
            with self.subTest(name):
                output = f"{name}.npy"
                devices = () if name == "many" else ("--devices", "cpu:1")
                self.succeed(*infer, "-o", output, *devices, *options)
                self.assertEqual((self.path / output).read_bytes(), expected)

    def test_a_plan_says_what_both_memories_hold(self):
        budget = ("--devices", "cpu:1", "--device-memory", "1GiB", "--host-memory", "2GiB")
        here = ("--devices", "cpu:1", "--device-memory", "26MiB", "--host-memory", "80MiB")
        for name, options, device, host in (
            ("graph", ("--graph", COUNTS, *budget), 1 << 30, 2 << 30),
            ("dataset", (self.dataset, *MODEL, *here), 26 * MIB, 80 * MIB),
        ):
            with self.subTest(name):
                text = self.succeed("ooc-train", "--plan", *options).stdout
                self.assertRegex(text, r"(?m)^device memory: .+ for the plan, .+, of [\d.]+ [MG]iB")
                self.assertRegex(text, r"(?m)^host memory: .+ for the plan, .+, of [\d.]+ [MG]iB$")
                for words in ("to device", "from device", "what stays in the device's memory",
                              "what stays in the host's memory"):  # fmt: skip
                    self.assertIn(words, text)
                plan = json.loads(self.succeed("ooc-train", "--plan", "--json", *options).stdout)
                self.assertEqual(plan["device_memory"], device)
                self.assertEqual(plan["host_memory"], host)
                for key in ("epoch", "once"):
                    self.assertGreater(plan[key]["bytes_to_device"], 0)
                epoch = plan["epoch"]
                self.assertLessEqual(plan["device_reserved_bytes"] + epoch["arena_bytes"], device)
                held = plan["reserved_bytes"] + epoch["host"]["arena_bytes"]
                self.assertLessEqual(held, host)
                self.assertGreaterEqual(epoch["bytes_to_device"], epoch["bound_link_bytes"] / 2)
        self.assertEqual(list(self.path.iterdir()), [])

    def test_strategies_on_a_graph_of_reddits_shape(self):
        """Bytes over the link to a device that holds all but a little of it: ROC's figure 10."""
        counts = "vertices=233K,edges=115M,features=602,classes=41,symmetric=1"
        command = ("ooc-train", "--plan", "--json", "--graph", counts, "--layers", 2, "--hidden",
                   128, "--devices", "cpu:1", "--device-memory", "896MiB", "--host-memory", "8GiB",
                   "--threads", 2, *self.rates_of_a_machine(), "--cache-policy")  # fmt: skip
        moved, bound = {}, 0
        for policy in ("none", "lru", "dp", "lp"):
            plan = json.loads(self.succeed(*command, policy).stdout)["epoch"]
            moved[policy] = plan["bytes_to_device"] + plan["bytes_from_device"]
            bound = plan["bound_link_bytes"]
        self.assertLess(moved["lru"], moved["none"])
        self.assertLess(5 * moved["dp"], moved["none"])
        self.assertLess(1.4 * moved["dp"], moved["lru"])
        self.assertLess(moved["lp"], moved["dp"])
        self.assertLessEqual(moved["lp"], 1.05 * bound)

    def test_without_a_device_a_plan_has_one_memory(self):
        text = self.succeed("ooc-train", "--plan", "--graph", COUNTS, "--devices", "cpu").stdout
        self.assertNotIn("device", text)

    def test_an_unknown_device_is_refused_with_those_there_are(self):
        infer = (self.dataset, "--run", self.cpu, "-o", "x.npy")
        for wrong in ("cpu:0", "cpu:99", "cpus", "cuda:", "cuda:0,", "cuda:-1", "gpu"):
            error = f"--devices cannot be '{wrong}', command line; it takes auto, cpu, cpu:N, cuda"
            self.fail_with(2, error, "ooc-train", self.dataset, "--devices", wrong)
            self.fail_with(2, error, "ooc-infer", *infer, "--devices", wrong)
        error = "it takes a size such as 512MiB"
        self.fail_with(2, error, "ooc-train", *self.options("run", "--device-memory", "some"))
        self.assertEqual(list(self.path.iterdir()), [])


if __name__ == "__main__":
    programs.main()
