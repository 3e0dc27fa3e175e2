"""bench/gpu/run without a GPU: a dry run has the figures of all stages, and a stage that fails or
takes too long leaves a line and the others. Arguments: the repository's root, and a build."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(2)).resolve()
ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
STAGES = ("machine", "contract", "sanitizer", "prepare", "gather", "epochs", "memory")


class GpuHarnessTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="ooc-test-")
        self.addCleanup(temporary.cleanup)
        self.out = pathlib.Path(temporary.name) / "out"

    def run_dry(self, *more):
        command = [sys.executable, ROOT / "bench/gpu/run", "--dry", "--build", BUILD, "--out",
                   self.out, *more]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertTrue((self.out / "results.json").exists(), result.stderr)
        self.page = (self.out / "page.md").read_text()
        self.assertEqual(result.stdout.rstrip(), self.page.rstrip())
        results = json.loads((self.out / "results.json").read_text())
        return result.returncode, results["stages"]

    def test_a_dry_run_has_every_stage_s_figures(self):
        code, stages = self.run_dry()
        failures = {name: report["failures"] for name, report in stages.items()}
        self.assertEqual(failures, dict.fromkeys(STAGES, []))
        self.assertEqual(code, 0)
        for name in STAGES:
            self.assertIn(f"\n## {name}\n", self.page)
        self.assertGreater(stages["machine"]["host"]["usable_cores"], 0)
        self.assertGreater(stages["contract"]["suites"]["gpu_tests"]["passed"], 2)
        self.assertTrue(all(count > 0 for count in stages["sanitizer"]["tests"].values()))
        self.assertEqual({name.split()[0] for name in stages["gather"]["cases"]},
                         {"reddit", "products"})
        for case in stages["gather"]["cases"].values():
            self.assertLessEqual(case["difference"], 1e-4)
            self.assertGreater(case["gathered_bytes"], case["least_bytes"] / 4)
            self.assertLessEqual({"run", "gather", "index"}, set(case["seconds"]))
        for found in stages["epochs"]["models"].values():
            self.assertLess(found["loss"]["difference"], 1e-4)
            for name in ("ooc", "ooc, every epoch"):
                self.assertGreater(found["contenders"][name]["seconds"], 0)
        parts = stages["memory"]["models"]["gcn"]["parts"]
        self.assertEqual(list(parts), ["no limit", "1/1", "1/2", "1/4", "1/8"])
        self.assertEqual(parts["1/1"]["losses"], parts["no limit"]["losses"])
        self.assertLessEqual(parts["1/1"]["peak_device_bytes"],
                             parts["1/1"]["device_memory_bytes"])

    def test_what_takes_too_long_leaves_a_line(self):
        code, stages = self.run_dry("--stages", "gather", "--limit", "3")
        self.assertEqual(code, 1)
        said = stages["prepare"]["failures"] + stages["gather"]["failures"]
        self.assertTrue(said)
        self.assertIn(said[0], self.page)

    def test_what_fails_fails_alone(self):
        build = self.out.parent / "build"
        (build / "bin").mkdir(parents=True)
        (build / "emulated_bin").symlink_to(BUILD / "emulated_bin")
        (build / "bin/emulated_tests").symlink_to(BUILD / "bin/emulated_tests")
        code, stages = self.run_dry("--build", build, "--stages", "contract,gather")
        self.assertEqual(code, 1)
        self.assertEqual(stages["contract"]["failures"], [])
        for name in ("prepare", "gather"):
            self.assertIn("emulated_gather_bench", stages[name]["failures"][0])


if __name__ == "__main__":
    unittest.main()
