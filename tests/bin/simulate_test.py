"""`ooc-train --simulate`: the bytes of the plan, the time of links, and what a trace has of it."""

import json
import pathlib

import programs
from device_test import COUNTS, LINK, STORAGE, DeviceProgram, read_json
from programs import RATES
from train_test import metrics

TOPOLOGIES = pathlib.Path(__file__).resolve().parents[2] / "docs/topologies"
SEVERAL = (*LINK, "bytes_between_devices")


class SimulateTest(DeviceProgram):
    devices = "cpu:3"

    def simulate(self, *options):
        return json.loads(self.succeed("ooc-train", "--simulate", "--json", *options).stdout)

    def test_it_moves_the_bytes_of_the_plan(self):
        least = self.least_of_training("--cache-policy", "lp", memory="device")
        for self.devices, *options in (
            ("cpu", "--cache-policy", "none"),
            ("cpu:3", "--cache-policy", "none"),
            ("cpu:3", "--cache-policy", "none", "--ring", "off"),
            ("cpu:3", "--cache-policy", "lp", "--device-memory", f"{least + 2}MiB"),
        ):
            with self.subTest(self.devices, options=options):
                command = self.options(self.path / "no-run", *options)
                plan = json.loads(self.succeed("ooc-train", "--plan", "--json", *command).stdout)
                simulated = self.simulate(*command)
                passes = [one for s in plan["epoch"]["sections"] for one in s["passes"]]
                for planned, ran in zip(passes, simulated["passes"], strict=True):
                    for key in (*SEVERAL, *STORAGE):
                        self.assertEqual(ran[key], planned.get(key, 0), key)
                for key in SEVERAL:
                    moved = sum(device[key] for device in simulated["devices"])
                    self.assertEqual(moved, plan["epoch"].get(key, 0))
        self.assertFalse((self.path / "no-run").exists())

    def test_it_takes_the_time_of_the_slowest_link(self):
        tree = {"children": [{"device": i, "to_device": 2e6, "from_device": 3e6} for i in range(3)]}
        (self.path / "slow.json").write_text(json.dumps({"tree": tree}))
        command = self.options("no-run", "--cache-policy", "none", "--ring", "off", "--topology",
                               self.path / "slow.json")  # fmt: skip
        simulated = self.simulate(*command)
        seconds = simulated["seconds"]
        busy = {link["link"]: link for link in simulated["links"]}
        for i, device in enumerate(simulated["devices"]):
            link = busy[f"/tree/children/{i} to_device"]
            self.assertEqual(link["bytes"], device["bytes_to_device"])
            self.assertAlmostEqual(link["busy"], link["bytes"] / 2e6 / seconds)
        self.assertGreater(max(link["busy"] for link in busy.values()), 0.7)
        self.assertLess(max(device["busy"] for device in simulated["devices"]), 0.3)

    def test_a_trace_has_what_takes_how_long(self):
        trace = self.path / "trace.json"
        simulated = self.simulate(*self.options("no-run", "--trace", trace))
        events = [event for event in read_json(trace) if event["ph"] == "X"]
        tracks = {event["args"]["name"] for event in read_json(trace) if event["ph"] == "M"}
        self.assertTrue({"passes", "worker 0", "from host", "from device"} <= tracks)
        # Two epochs, of which the second one counts.
        end = max(event["ts"] + event["dur"] for event in events) / 1e6
        self.assertGreater(end, simulated["seconds"])
        again = self.simulate(*self.options("no-run", "--trace", self.path / "again.json"))
        self.assertEqual(again, simulated)
        self.assertEqual((self.path / "again.json").read_bytes(), trace.read_bytes())

    def test_a_trace_of_the_cpu_has_its_workers(self):
        self.devices = "cpu"
        trace = self.path / "trace.json"
        options = ("--cache-policy", "none", "--trace", trace)
        self.simulate(*self.options("no-run", *options))
        ends, names = {}, {}
        for event in read_json(trace):
            if event["ph"] == "M":
                names[event["tid"]] = event["args"]["name"]
            elif names[event["tid"]].startswith("worker"):  # one thing after the other
                self.assertGreaterEqual(event["ts"] + 0.01, ends.get(event["tid"], 0))
                ends[event["tid"]] = event["ts"] + event["dur"]
        self.assertEqual(len(ends), 2)
        self.assertTrue(any(name.startswith("I/O") for name in names.values()))

    def test_kernels_take_what_those_of_a_run_took(self):
        self.train("run")
        durations = ("--durations", self.path / "run/metrics.jsonl")
        simulated = self.simulate(*self.options("no-run", *durations))
        measured = sum(one["compute_seconds"] for one in metrics(self.path / "run")[-1]["passes"])
        busy = sum(device["busy"] for device in simulated["devices"])
        self.assertAlmostEqual(busy * simulated["seconds"] / measured, 1, 3)
        self.fail_with(3, "no epoch in it has the passes of this plan",
                  *("ooc-train", "--simulate", *self.options("no-run", *durations)),
                  *("--rewrites", "-hoisting,-order", "--norm", "layer"))  # fmt: skip
        (self.path / "none.jsonl").write_text("{}\n")
        self.fail_with(3, "no epoch in it has the passes of this plan",
                  *("ooc-train", "--simulate", *self.options("no-run")),
                  *("--durations", self.path / "none.jsonl"))  # fmt: skip

    def test_a_graph_and_devices_that_are_not_there(self):
        rates = {**RATES, "to_device": 1e9, "from_device": 1e9, "device_gather": 1e11}
        (self.path / "rates.json").write_text(json.dumps(rates))
        command = ("--graph", COUNTS, "--plan-device", "a100", "--rates", self.path / "rates.json",
                   *("--device-memory", "3GiB"))  # fmt: skip
        one = self.simulate(*command)
        self.assertGreater(one["devices"][0]["bytes_to_device"], 1 << 30)
        self.assertGreater(one["seconds"], one["devices"][0]["bytes_to_device"] / 1e9)
        eight = (*command, "--devices", "cuda:0,1,2,3,4,5,6,7", "--topology",
                 TOPOLOGIES / "two_bridges.json")  # fmt: skip
        self.assertLess(self.simulate(*eight)["seconds"], one["seconds"] / 2)
        text = self.succeed("ooc-train", "--simulate", *eight).stdout
        for word in ("an epoch takes", "a100 7", "/tree/children/1 to_device"):
            self.assertIn(word, text)
        self.fail_with(2, "--graph without --plan or --simulate", "ooc-train", "--graph", COUNTS)
        self.fail_with(2, "--plan beside --simulate", "ooc-train", self.dataset, "--plan",
                       "--simulate")  # fmt: skip
        self.fail_with(2, "--durations without --simulate",
                       *("ooc-train", self.dataset, "--durations", "x.jsonl"))  # fmt: skip


del DeviceProgram

if __name__ == "__main__":
    programs.main()
