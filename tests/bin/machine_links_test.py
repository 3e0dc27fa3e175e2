"""GPUs of a machine that hwloc is told of: how they hang on the processors decides which of them
load from the host, and in which order they pass on."""

import json
import pathlib
import re
import subprocess
import tempfile

import numpy as np

import cuda_test
import programs
from cuda_test import machine
from programs import ProgramTest, write_graph
from train_test import metrics

del cuda_test.CudaTest  # it runs by itself

MODEL = ("--hidden", 8, "--layers", 1, "--threads", 2)

# Two bridges with two GPUs each, as lstopo writes it.
GPU = """<object type="PCIDev" gp_index="{index}" pci_busid="00ab:0{number}:00.0"
  pci_type="0302 [10de:2330] [10de:0000] a1" pci_link_speed="{speed}"/>"""
BRIDGE = """<object type="Bridge" gp_index="{index}" bridge_type="1-1" depth="1"
  bridge_pci="00ab:[0{first}-0{last}]" pci_busid="00ab:00:0{first}.0"
  pci_type="0604 [8086:1234] [0000:0000] 00" pci_link_speed="{speed}">{below}</object>"""
MACHINE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine" os_index="0" gp_index="1" cpuset="0x1"
  complete_cpuset="0x1" allowed_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
  allowed_nodeset="0x1">
<object type="NUMANode" os_index="0" gp_index="2" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
  complete_nodeset="0x1" local_memory="1073741824"/>
<object type="PU" os_index="0" gp_index="3" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
  complete_nodeset="0x1"/>
<object type="Bridge" gp_index="4" bridge_type="0-1" depth="0" bridge_pci="00ab:[00-0f]">{below}
</object></object></topology>"""


def two_bridges(uplink, link):
    bridges = ""
    for first in (1, 3):
        gpus = "".join(GPU.format(index=10 + n, number=n, speed=link) for n in (first, first + 1))
        bridges += BRIDGE.format(index=4 + first, first=first, last=first + 1, speed=uplink,
                                 below=gpus)  # fmt: skip
    return MACHINE.format(below=bridges)


class MachineLinksTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        temporary = tempfile.TemporaryDirectory(prefix="ooc-test-")
        cls.addClassCleanup(temporary.cleanup)
        cls.dataset = pathlib.Path(temporary.name) / "x.ooc"
        graph = write_graph(cls.dataset.with_suffix(".graph"), vertices=6000, features=64)
        subprocess.run([programs.BIN / "ooc-prep", "import", graph, "--undirected", "--block-rows",
                        "256", "-o", cls.dataset, "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip

    def train(self, name, *more, **options):
        """Its losses."""
        command = (self.dataset, *MODEL, "--epochs", 2, "--run-dir", self.path / name, *more)
        self.succeed("ooc-train", *command, "--quiet", **options)
        return [line["loss"] for line in metrics(self.path / name)]

    def on(self, xml, gpus):
        (self.path / "machine.xml").write_text(xml)
        options = machine(gpus)
        options["env"] |= {"HWLOC_XMLFILE": str(self.path / "machine.xml")}
        return options

    def loaders(self, devices, options):
        command = ("ooc-train", "--plan", "--devices", devices, self.dataset, "--threads", 4)
        text = self.succeed(*command, **options).stdout
        return int(re.search(r"goes round the devices, read by (\d+) of them", text)[1])

    def test_bridges_decide_how_many_load(self):
        narrow, wide = two_bridges("16.0", "16.0"), two_bridges("64.0", "16.0")
        for xml, devices, loaders in (
            (narrow, "cuda", 2),  # a bridge carries as much as one of its GPUs
            (wide, "cuda", 4),
            (narrow, "cuda:0,1", 1),
            (narrow, "cuda:0,2", 2),
            (narrow.replace("00ab", "00ac"), "cuda", 1),  # the system doesn't know them
        ):
            with self.subTest(devices=devices, loaders=loaders):
                options = self.on(xml, "devices=4")
                self.assertEqual(self.loaders(devices, options), loaders)

    def test_what_is_found_can_be_given_as_a_file(self):
        options = self.on(two_bridges("16.0", "32.0"), "devices=4 links=1")
        text = self.succeed("ooc-inspect", "--machine", "--json", **options).stdout
        facts = json.loads(text)
        self.assertEqual(facts["gpus"], {f"cuda:{i}": "emulated sm_90" for i in range(4)})
        self.assertEqual(len(facts["topology"]["peers"]), 6)
        bridges = facts["topology"]["tree"]["children"]
        self.assertEqual([bridge["to_device"] for bridge in bridges], [12.8e9, 12.8e9])
        devices = [gpu["device"] for bridge in bridges for gpu in bridge["children"]]
        self.assertEqual(devices, [0, 1, 2, 3])
        (self.path / "found.json").write_text(json.dumps(facts["topology"]))
        command = ("ooc-train", "--plan", "--json", "--devices", "cuda", self.dataset)
        given = ("--topology", self.path / "found.json")
        plans = [json.loads(self.succeed(*command, *more, **options).stdout)
                 for more in ((), given)]  # fmt: skip
        self.assertEqual(plans[0]["epoch"], plans[1]["epoch"])

    def test_a_plan_goes_by_their_links(self):
        options = self.on(two_bridges("8.0", "16.0"), "devices=4")
        fast = programs.RATES | {"to_device": 50e9, "from_device": 50e9}
        (self.path / "rates.json").write_text(json.dumps(fast))
        command = ("ooc-train", "--plan", "--json", "--devices", "cuda", self.dataset, "--rates",
                   "rates.json")  # fmt: skip
        rates = json.loads(self.succeed(*command, "--threads", 4, **options).stdout)["rates"]
        self.assertAlmostEqual(rates["to_device"], 0.8 * 8e9)
        self.assertAlmostEqual(rates["from_device"], 0.8 * 8e9 / 2)  # two share a bridge

    def test_runs_are_right(self):
        expected = self.train("cpu", "--devices", "cpu", **machine("devices=4"))
        options = self.on(two_bridges("16.0", "16.0"), "devices=4 links=1")
        losses = self.train("gpus", "--devices", "cuda", "--cache-policy", "none", **options)
        np.testing.assert_allclose(losses, expected, rtol=1e-4)

    def test_a_lost_device_leaves_a_run_that_goes_on_to_the_same_bits(self):
        options = ("--devices", "cuda:0,1", "--checkpoint-every", 1, "--epochs", 3)
        run = ("ooc-train", self.dataset, *MODEL, *options, "--run-dir", "run")
        whole = self.train("whole", *options[:4], **machine("devices=2"))
        calls = 1000
        while True:  # until it is lost after the first epoch
            lost = machine(f"devices=2 lost_after={calls}")
            error = self.fail_with(1, r"error: .*, cuda:[01]; look at nvidia-smi", *run, "--force",
                                   **lost)  # fmt: skip
            self.assertNotIn("terminate", error.stderr)
            path = self.path / "run/metrics.jsonl"
            if path.exists() and len(metrics(self.path / "run")) > 0:
                break
            calls += 500
        self.assertLess(len(metrics(self.path / "run")), 3)
        self.succeed("ooc-train", "--resume", "run", "--quiet", **machine("devices=2"))
        losses = [line["loss"] for line in metrics(self.path / "run")]
        self.assertEqual(losses[:2], whole)


if __name__ == "__main__":
    programs.main()
