#!/usr/bin/python3
"""What nvcc made of the sums over edges: each thread has eight loads of 16 bytes under way before
it waits for the first one, and keeps nothing in local memory."""

import os
import re
import shutil
import subprocess
import sys

# Of rows of fp32, in loads of 16 bytes, without weights.
GATHER = re.compile(r"Function : \S*gatherIfLb0ELi4E")
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")


def instructions(module, tools, architecture):
    """Of the kernel, in order."""
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    cuobjdump = shutil.which("cuobjdump", path=path)
    if cuobjdump is None:
        sys.exit("no cuobjdump: run bin/install-dependencies")
    text = subprocess.run([cuobjdump, "-arch", architecture, "-sass", module], check=True,
                          capture_output=True, text=True, env=os.environ | {"PATH": path}).stdout
    found, inside = [], False
    for line in text.splitlines():
        if "Function :" in line:
            inside = GATHER.search(line) is not None
        match = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", line)
        if inside and match:
            found.append(match[1])
    return found


def most_under_way(code):
    """Loads of 16 bytes that are asked for before an instruction reads what one of them brings."""
    coming, most = {}, 0  # by register, the number of its load
    for number, instruction in enumerate(code):
        load = re.search(r"LDG?\.E\.128\S* R(\d+), (.*)", instruction)
        read = re.findall(r"\bR(\d+)\b", load[2] if load else instruction)
        if any(int(register) in coming for register in read):
            coming = {}
        if load:
            coming |= {int(load[1]) + i: number for i in range(4)}
            most = max(most, len(set(coming.values())))
    return most


def main(module, tools):
    failed = False
    for architecture in ARCHITECTURES:
        code = instructions(module, tools, architecture)
        local = sum("LDL" in one or "STL" in one for one in code)
        loads = most_under_way(code)
        print(f"{architecture}: {len(code)} instructions, {loads} loads under way, {local} in local"
              " memory")  # fmt: skip
        failed |= not code or loads < 8 or local > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
