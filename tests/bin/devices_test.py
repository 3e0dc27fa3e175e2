"""Training on several devices: the CPU's losses, the bytes of the plan, rings and topologies, and
what a trace has of it."""

import json
import pathlib

import programs
from device_test import COUNTS, LINK, MIB, MODEL, DeviceProgram, read_json
from train_test import curve, metrics

TOPOLOGIES = pathlib.Path(__file__).resolve().parents[2] / "docs/topologies"


class DevicesTest(DeviceProgram):
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
        for device in ("0: device 0 of cpu:2", "1: device 1 of cpu:2"):
            for track in ("passes", "worker", "from", "to"):
                self.assertIn((device, track), moved)
        lines = metrics(self.path / "run")
        self.assertGreaterEqual(moved["storage", "I/O"], sum(line["bytes_read"] for line in lines))
        between = sum(line["bytes_between_devices"] for line in lines)
        self.assertGreaterEqual(moved["1: device 1 of cpu:2", "from"], between)

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
        # Each hangs by itself: from the host it gets its own, over its link goes what it passes on.
        last = metrics(self.path / "run")[-1]
        moved = {key: [sum(one["devices"][i][key] for one in last["passes"]) for i in (0, 1)]
                 for key in (*LINK, "bytes_between_devices")}  # fmt: skip
        for at in (0, 1):  # in the file, and in the ring
            from_other = moved["bytes_between_devices"][at]
            to_other = moved["bytes_between_devices"][1 - at]
            self.assertEqual(last["links"][f"/tree/children/{at} to_device"],
                             moved["bytes_to_device"][at] + from_other)  # fmt: skip
            self.assertEqual(last["links"][f"/tree/children/{at} from_device"],
                             moved["bytes_from_device"][at] + to_other)  # fmt: skip
        # Other devices have other links: the run's file is theirs no more.
        resumed = ("--resume", "run", "--epochs", 3, "--devices", "cpu")
        warned = self.succeed("ooc-train", *resumed).stderr
        self.assertIn("2 of the run's devices read what goes round all of them, now 0 do", warned)
        text = self.succeed(
            *("ooc-train", "--plan", "--graph", COUNTS, "--devices", "cpu:8"),
            *("--topology", TOPOLOGIES / "two_bridges.json", "--device-memory", "1GiB"),
        ).stdout  # fmt: skip
        self.assertIn("what edges read goes round the devices, read by 2 of them", text)
        self.assertRegex(text, r"(?m)^ +7 +\d+ to \d+ ")
        text = self.succeed(  # GPUs that aren't there
            *("ooc-train", "--plan", "--graph", COUNTS, "--plan-device", "h100"),
            *("--devices", "cuda:0,1,2,3,4,5,6,7"),
            *("--topology", TOPOLOGIES / "nvlink_all_to_all.json"),
        ).stdout  # fmt: skip
        self.assertIn("what edges read goes round the devices, read by 4 of them", text)

    def test_a_wrong_topology_is_refused_with_its_place(self):
        leaf = {"device": 0, "to_device": 1e9, "from_device": 1e9}
        other = leaf | {"device": 1}
        for wrong, where in (
            ("{", r"/: not JSON \(byte 2\)"),
            ('{"tree": 1e999}', "/: a number that is too large"),
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
                error = rf"error: {where}, .*wrong.json; docs/topologies has examples"
                self.fail_with(2, error, "ooc-train", self.dataset, *options)
        options = ("--devices", "cpu:2", "--topology", "none.json", "--run-dir", "run")
        self.fail_with(2, "no such file, .*none.json", "ooc-train", self.dataset, *options)

    def test_more_devices_than_blocks_are_refused(self):
        error = (
            "error: 4 devices for a graph of 3 blocks of 16384 vertices, --devices; give fewer "
            "devices, or import the graph with smaller --block-rows"
        )
        self.devices = "cpu:4"
        self.fail_with(2, error, "ooc-train", *self.options("run"))
        self.assertEqual(list(self.path.iterdir()), [])


if __name__ == "__main__":
    programs.main()
