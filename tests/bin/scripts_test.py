"""The scripts of bin/ where they meet a machine that is not ready. The only argument is the
repository's root. Nothing is installed: dpkg-query, apt-get, sudo and id are fakes."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()


class InstallDependenciesTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.directory.name)
        for tool in ("bash", "env"):
            (self.path / tool).symlink_to(shutil.which(tool))
        self.fake("apt-get", f'echo "apt-get $*" >> {self.path}/calls')
        header = self.path / ".cache/ooc/cuda-13.0/include/cuda_runtime_api.h"
        header.parent.mkdir(parents=True)
        header.touch()
        self.fake("cuobjdump", "")

    def tearDown(self):
        self.directory.cleanup()

    def fake(self, name, script):
        file = self.path / name
        file.write_text(f"#!/usr/bin/env bash\n{script}\n")
        file.chmod(0o755)

    def missing(self, package):
        """Every package is installed but this one."""
        test = f'[ "${{@: -1}}" = {package} ] && exit 1' if package else ""
        self.fake("dpkg-query", f"{test}\necho installed")

    def user(self, number):
        self.fake("id", f"echo {number}")

    def run_script(self, *arguments):
        result = subprocess.run(
            [ROOT / "bin/install-dependencies", *arguments],
            env={"PATH": str(self.path), "HOME": str(self.path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        calls = self.path / "calls"
        return result, calls.read_text().splitlines() if calls.exists() else []

    def test_nothing_happens_when_all_is_there(self):
        self.missing(None)
        self.user(1000)
        result, calls = self.run_script()
        self.assertEqual((result.returncode, result.stdout, result.stderr, calls), (0, "", "", []))

    def test_root_installs_what_is_missing_and_no_more(self):
        self.missing("catch2")
        self.user(0)
        result, calls = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(
            calls,
            [
                "apt-get update -o Acquire::Retries=3",
                "apt-get install -y --no-install-recommends catch2",
            ],
        )

    def test_others_install_through_sudo(self):
        self.missing("catch2")
        self.user(1000)
        self.fake("sudo", f'echo "sudo $*" >> {self.path}/calls')
        result, calls = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(calls[-1], "sudo apt-get install -y --no-install-recommends catch2")

    def check_command_is_printed(self):
        result, calls = self.run_script()
        self.assertEqual((result.returncode, calls), (2, []))
        self.assertIn(
            "  sudo apt-get update && sudo apt-get install -y --no-install-recommends catch2\n",
            result.stderr,
        )

    def test_without_sudo_the_command_is_printed(self):
        self.missing("catch2")
        self.user(1000)
        self.check_command_is_printed()

    def test_where_sudo_wants_a_password_the_command_is_printed(self):
        self.missing("catch2")
        self.user(1000)
        self.fake("sudo", "exit 1")
        self.check_command_is_printed()

    def test_a_failing_installation_fails(self):
        self.missing("catch2")
        self.user(0)
        self.fake("apt-get", "exit 100")
        self.assertEqual(self.run_script()[0].returncode, 100)

    def test_elsewhere_than_on_debian_the_packages_are_named(self):
        self.user(0)
        result, calls = self.run_script()
        self.assertEqual((result.returncode, calls), (2, []))
        self.assertIn("libtbb-dev", result.stderr)

    def test_only_the_benches_need_their_library(self):
        self.missing("libbenchmark-dev")
        self.user(0)
        self.assertEqual(self.run_script()[1], [])
        self.assertIn("libbenchmark-dev", self.run_script("--bench")[1][-1])

    def test_an_unknown_argument_is_refused(self):
        self.missing(None)
        result, _ = self.run_script("--all")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--all", result.stderr)


if __name__ == "__main__":
    unittest.main()
