#!/usr/bin/python3
"""Leaves out one wait after the other, and says which test notices.

    tests/mutations/waits.py COPY

COPY: a clone of the repository that is changed and stays so; it is built in COPY/build/release,
once. OOC_LEFT_OUT then says which wait is left out. Waits are found by what they look like: tickets
of a device's queue that somebody waits for, questions whether memory is still in use, and CUDA's
own. The scheduler's are left out on both devices without a GPU: the strict one, and the emulated
GPU.
Exit code 1 where one is left out and nothing notices.
"""

import os
import pathlib
import re
import subprocess
import sys
import time

SECONDS = 300  # a test that hangs has noticed
LEFT_OUT = """#pragma once
#include <cstdlib>
inline bool left_out(int site) {
  static const char* const chosen = std::getenv("OOC_LEFT_OUT");
  return chosen != nullptr && std::atoi(chosen) == site;
}
// A ticket that is waited for, or one that its queue has come to long ago.
template <class Ticket>
Ticket wait_unless(int site, Ticket ticket) {
  if (left_out(site)) ticket.value = 0;
  return ticket;
}
"""
HEADER = "storage/base/left_out.h"
NEVER_BUSY = """ public:
  bool busy_unless(int site, std::span<const std::byte> memory) const {
    return !left_out(site) && busy(memory);
  }
"""
HAZARDS = "sched/stream/hazards.h"
TICKET = re.compile(r"[\w.]*queue_?(?:\(QueueKind::\w+\))?\.record\(\)")
WATCHED = re.compile(r"queue_\.wait\(\*next->ticket\);")
BUSY = re.compile(r"(?<=[.>])busy\(")
CUDA_WAIT = re.compile(r"(?:check\()?cuda(?:StreamWaitEvent|(?:Event|Stream)Synchronize)\([^;]*;")
SCHEDULER = ((TICKET, "wait_unless({site}, {wait})"),
             (WATCHED, "if (!left_out({site})) {wait}"),
             (BUSY, "busy_unless({site}, "))  # fmt: skip
CUDA = ((CUDA_WAIT, "if (!left_out({site})) {wait}"),)
STRICT = (("sched_tests", "strict*,device*,executor*,hazards*,slots*,rows writer*,wide*"),
          ("engine_tests", "strict*,out of core: models*"))  # fmt: skip
EMULATED = (("emulated_training_tests", "*"), ("emulated_tests", "*"))


def edit(root, paths, patterns, sites):
    """Makes the waits of these files ones that can be left out, and appends them to `sites`."""
    for path in sorted(paths):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        if path.suffix not in {".cc", ".cu", ".h"} or name.startswith("sched/stream/hazards."):
            continue
        before = len(sites)
        for pattern, instead in patterns:
            def leave_out(match, name=name, text=text, instead=instead):
                line = text.count("\n", 0, match.start()) + 1
                sites.append(f"{name}:{line}: {match[0].splitlines()[0]}")
                return instead.format(site=len(sites), wait=match[0])

            text = pattern.sub(leave_out, text)
        if len(sites) > before:
            at = text.index("#include")
            path.write_text(f'{text[:at]}#include "{HEADER}"\n{text[at:]}')


def noticed_by(root, tests, site=0):
    """The program that fails with this wait left out, and after how long."""
    for program, names in tests:
        command = [root / "build/release/bin" / program, names, "--abort"]
        begin = time.monotonic()
        try:
            code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env=os.environ | {"OOC_LEFT_OUT": str(site)}, timeout=SECONDS,
                                  check=False).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{program}, which hangs"
        if code != 0:
            return f"{program}, {time.monotonic() - begin:.0f} s"
    return None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    sites = []
    edit(root, [*root.glob("sched/**/*.*"), *root.glob("engine/train/*.cc")], SCHEDULER, sites)
    of_scheduler = len(sites)
    edit(root, root.glob("kernels/**/*_cuda.cu"), CUDA, sites)
    (root / HEADER).write_text(LEFT_OUT)
    hazards = root / HAZARDS
    text = hazards.read_text().replace(" public:\n", NEVER_BUSY, 1)
    hazards.write_text(text.replace("#include", f'#include "{HEADER}"\n#include', 1))
    subprocess.run(["cmake", "--preset", "release"], cwd=root, check=True, capture_output=True)
    programs = [f"bin/{name}" for name, _ in STRICT + EMULATED]
    subprocess.run(["ninja", "-C", root / "build/release", *programs], check=True)
    passes = noticed_by(root, STRICT + EMULATED) is None
    print(f"without a change: {passes}", flush=True)
    missed = 0
    for site, wait in enumerate(sites, 1):
        devices = {"emulated": EMULATED}
        if site <= of_scheduler:
            devices = {"strict": STRICT} | devices
        for device, tests in devices.items():
            found = noticed_by(root, tests, site)
            missed += found is None
            print(f"{site:2} {wait}, {device}: {found or 'NOTHING NOTICES'}", flush=True)
    return not passes or missed > 0


if __name__ == "__main__":
    sys.exit(main())
