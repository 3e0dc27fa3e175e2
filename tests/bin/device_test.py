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
TOPOLOGIES = pathlib.Path(__file__).resolve().parents[2] / "docs/topologies"
STORAGE = ("bytes_read", "bytes_written")
# Input dropout: layers are as wide as their inputs, and the features are read in every epoch.
MODEL = ("--layers", 3, "--hidden", 64, "--input-dropout", 0.1, "--threads", 2)
COUNTS = "vertices=5M,edges=50M,features=128,classes=64"


def read_json(path):
    return json.loads(path.read_text())


class DeviceTest(ProgramTest):
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

    def test_several_devices_change_nothing_but_bytes(self):
        for self.devices, policy in (("cpu:2", "lp"), ("cpu:3", "dp"), ("cpu:3", "none")):
            with self.subTest(self.devices):
                options = ("--cache-policy", policy)
                device = self.least_of_training(*options, memory="device") + 2
                options += ("--device-memory", f"{device}MiB")
                lines = self.train(f"{policy}-roomy", *options)
                partition = ("--device-partition", "equal-vertices")
                host = self.least_of_training(*options, *partition, memory="host") + 4
                options += ("--host-memory", f"{host}MiB", *partition)
                lines += self.train(f"{policy}-scarce", *options)
                for line in lines:
                    for key in LINK:
                        self.assertGreater(line[key], MIB)

    def test_a_ring_reads_from_the_host_what_each_would_read(self):
        self.devices = "cpu:3"
        moved = {}
        for ring in ("on", "off"):
            options = ("--ring", ring, "--cache-policy", "none")
            line = self.train(f"ring-{ring}", *options)[-1]
            plan = read_json(self.path / f"ring-{ring}/plan.json")["epoch"]
            self.assertEqual(line["bytes_between_devices"], plan.get("bytes_between_devices", 0))
            self.assertEqual(len(line["devices_busy"]), 3)
            for one in line["passes"]:
                for key in (*LINK, "bytes_between_devices"):
                    self.assertEqual(sum(device[key] for device in one["devices"]), one[key])
            moved[ring] = line
        passed_on = moved["on"]["bytes_between_devices"]
        self.assertGreater(passed_on, MIB)
        self.assertEqual(moved["off"]["bytes_between_devices"], 0)
        spared = moved["off"]["bytes_to_device"] - moved["on"]["bytes_to_device"]
        self.assertEqual(spared, passed_on)

    def test_a_trace_has_what_devices_do(self):
        self.devices = "cpu:2"
        options = ("--cache-policy", "none", "--trace", self.path / "trace.json")
        self.train("run", *options)
        names, moved, ends = {}, {}, {}
        for event in read_json(self.path / "trace.json"):
            place = event["pid"], event["tid"]
            if event["ph"] == "M":
                names[event["name"], event["pid"], event["tid"]] = event["args"]["name"]
                continue
            process = names["process_name", event["pid"], 0]
            track = names["thread_name", *place]
            self.assertGreaterEqual(event["dur"], 0)
            if track.startswith("worker"):  # one thing after the other
                self.assertGreaterEqual(event["ts"] + 0.01, ends.get(place, 0))
                ends[place] = event["ts"] + event["dur"]
            key = process, track.split()[0]
            moved[key] = moved.get(key, 0) + event.get("args", {}).get("bytes", 0)
        for device in ("device 0 of cpu:2", "device 1 of cpu:2"):
            for track in ("passes", "worker", "from", "to"):
                self.assertIn((device, track), moved)
        lines = metrics(self.path / "run")
        self.assertGreaterEqual(moved["storage", "I/O"], sum(line["bytes_read"] for line in lines))
        between = sum(line["bytes_between_devices"] for line in lines)
        self.assertGreaterEqual(moved["device 1 of cpu:2", "from"], between)

    def test_a_topology_decides_who_reads_and_what_it_takes(self):
        (self.path / "two.json").write_text(
            json.dumps(
                {
                    "tree": {
                        "children": [
                            {"device": i, "to_device": 8e9, "from_device": 4e9} for i in (1, 0)
                        ]
                    }
                }
            )
        )
        options = (self.dataset, *MODEL, "--epochs", 2, "--devices", "cpu:2", "--quiet")
        self.succeed("ooc-train", *options, "--topology", "two.json", "--run-dir", "run")
        plan = read_json(self.path / "run/plan.json")
        self.assertEqual(plan["epoch"]["ring_loaders"], 2)
        self.assertEqual((plan["rates"]["to_device"], plan["rates"]["from_device"]), (8e9, 4e9))
        for line, expected in zip(curve(self.path / "run"), curve(self.cpu)):
            self.assertAlmostEqual(line[1], expected[1], delta=1e-5 * expected[1])
        text = self.succeed(
            *("ooc-train", "--plan", "--graph", COUNTS, "--devices", "cpu:8"),
            *("--topology", TOPOLOGIES / "two_bridges.json", "--device-memory", "1GiB"),
        ).stdout  # fmt: skip
        self.assertIn("what edges read goes round the devices, read by 2 of them", text)
        self.assertRegex(text, r"(?m)^ +7 +\d+ to \d+ ")

    def test_a_wrong_topology_is_refused_with_its_place(self):
        leaf = {"device": 0, "to_device": 1e9, "from_device": 1e9}
        other = leaf | {"device": 1}
        for wrong, where in (
            ("{", r"/: not JSON \(byte 2\)"),
            ({}, "/tree: missing"),
            ({"tree": {"children": []}}, "/tree/children: not a list of nodes"),
            ({"tree": {"children": [leaf]}}, "/tree: device 1 of 2 is missing"),
            ({"tree": {"children": [leaf, leaf]}}, "/tree/children/1/device: device 0 again"),
            ({"tree": {"children": [leaf, leaf | {"device": 2}]}},
             "/tree/children/1/device: device 2 of 2"),
            ({"tree": {"children": [leaf, other | {"to_device": -1}]}},
             "/tree/children/1/to_device: not a rate in bytes a second"),
            ({"tree": {"children": [leaf, other | {"rate": 1}]}}, "/tree/children/1/rate: unknown"),
            ({"tree": {"children": [leaf, other]}, "peers": [{"devices": [0, 0], "rate": 1}]},
             "/peers/0/devices: one device twice"),
        ):  # fmt: skip
            with self.subTest(where):
                text = wrong if isinstance(wrong, str) else json.dumps(wrong)
                (self.path / "wrong.json").write_text(text)
                options = ("--devices", "cpu:2", "--topology", "wrong.json", "--run-dir", "run")
                error = rf"error: {where}, wrong.json; docs/topologies has examples"
                self.fail_with(2, error, "ooc-train", self.dataset, *options)
        options = ("--devices", "cpu:2", "--topology", "none.json", "--run-dir", "run")
        self.fail_with(2, "no such file, none.json", "ooc-train", self.dataset, *options)

    def test_more_devices_than_blocks_are_refused(self):
        error = (
            "error: 4 devices for a graph of 3 blocks of 16384 vertices, --devices; give fewer "
            "devices, or import the graph with smaller --block-rows"
        )
        self.devices = "cpu:4"
        self.fail_with(2, error, "ooc-train", *self.options("run"))
        self.assertEqual(list(self.path.iterdir()), [])

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
