#!/usr/bin/python3
"""Leaves out one wait after the other, and says whether a test notices.

    tests/mutations/waits.py COPY

COPY: a clone of the repository that may be changed; it is built in COPY/build/release. Takes some
minutes for each wait. Waits are found by what they look like: tickets of a device's queue that
somebody waits for, and questions whether memory is still in use. Exit code 1 where one is left out
and nothing notices.
"""

import pathlib
import re
import subprocess
import sys

SECONDS = 300  # a test that hangs has noticed
TICKET = re.compile(r"[\w.]*queue_?(?:\(QueueKind::\w+\))?\.record\(\)")
WATCHED = re.compile(r"queue_\.wait\(next->ticket\);")
BUSY = re.compile(r"\bbusy(?=\()")
# What would not compile, or asks nothing.
ELSEWHERE = {"sched/stream/hazards.cc", "sched/stream/hazards.h"}
CUDA_WAIT = re.compile(r"(?:check\()?cuda(?:StreamWaitEvent|(?:Event|Stream)Synchronize)\([^;]*;")
TESTS = [
    ("sched_tests", "strict*,device*,executor*,hazards*,slots*,rows writer*,wide*"),
    ("engine_tests", "strict*,out of core: models*"),
]  # fmt: skip
CUDA_TESTS = [("emulated_tests", "*"), ("emulated_training_tests", "*")]


def cuda_sites(root):
    for path in sorted(root.glob("kernels/**/*_cuda.cu")):
        text = path.read_text()
        for match in CUDA_WAIT.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            what = f"{path.relative_to(root)}:{line}: {match[0].split('(')[-2]}"
            yield path, what, (match.start(), match.end()), ";", CUDA_TESTS


def sites(root):
    for path in sorted([*root.glob("sched/**/*.*"), *root.glob("engine/train/*.cc")]):
        name = path.relative_to(root).as_posix()
        if path.suffix not in {".cc", ".h"} or name in ELSEWHERE:
            continue
        text = path.read_text()
        for pattern, instead in ((TICKET, "Ticket{}"), (WATCHED, ";"), (BUSY, "never_busy")):
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                what = f"{name}:{line}: {match[0]}"
                yield path, what, (match.start(), match.end()), instead, TESTS


def build(root, tests):
    command = ["ninja", "-C", root / "build/release", *(f"bin/{name}" for name, _ in tests)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def noticed_by(root, tests):
    for program, names in tests:
        command = [root / "build/release/bin" / program, names, "--abort"]
        try:
            result = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"{program} (it hangs)"
        if result.returncode != 0:
            return program
    return None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    hazards = root / "sched/stream/hazards.h"
    original = hazards.read_text()
    never = "  bool never_busy(std::span<const std::byte>) const { return false; }\n"
    hazards.write_text(original.replace(" public:\n", " public:\n" + never, 1))
    subprocess.run(["cmake", "--preset", "release"], cwd=root, check=True, capture_output=True)
    missed = 0
    try:
        everything = TESTS + CUDA_TESTS
        passes = build(root, everything).returncode == 0 and noticed_by(root, everything) is None
        print(f"without a change: {passes}", flush=True)
        for path, what, (begin, end), instead, tests in [*sites(root), *cuda_sites(root)]:
            text = path.read_text()
            path.write_text(text[:begin] + instead + text[end:])
            try:
                built = build(root, tests)
                found = noticed_by(root, tests) if built.returncode == 0 else "the compiler"
            finally:
                path.write_text(text)
            missed += found is None
            print(f"{what}: {found or 'NOTHING NOTICES'}", flush=True)
    finally:
        hazards.write_text(original)
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
