#!/usr/bin/python3
"""Kernels, and what of storage and bin depends on the processor, compile for AArch64. Nothing is
linked or run. Skipped without Debian's cross compiler."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

COMPILER = "aarch64-linux-gnu-g++"
SKIPPED = 77
# The same for every processor; the compiler has its own of the C library.
HEADERS = ("fmt", "spdlog", "tbb", "oneapi", "boost", "nlohmann", "hwy", "xxhash.h", "fast_float")
# As CMakeLists.txt has them for this processor.
FLAGS = ("-std=c++20", "-O1", "-march=armv8-a+crypto", "-fno-trapping-math", "-fno-math-errno",
         "-Wall", "-Wextra", "-Werror=return-type", "-DFMT_SHARED", "-DSPDLOG_COMPILED_LIB",
         "-DSPDLOG_FMT_EXTERNAL", "-DHWY_DISABLE_PCLMUL_AES")
OPENBLAS = pathlib.Path("/usr/include/x86_64-linux-gnu/openblas-serial")
OTHERS = ("bin/cli/required_vectors.cc", "storage/io/block_file_mapped.cc",
          "storage/io/mapping_faults.cc", "storage/base/half.cc")


def main(root):
    if shutil.which(COMPILER) is None or not OPENBLAS.is_dir():
        print(f"skipped: no {COMPILER}, or no headers of OpenBLAS")
        return SKIPPED
    sources = [*sorted((root / "kernels").rglob("*.cc")), *(root / name for name in OTHERS)]
    with tempfile.TemporaryDirectory() as directory:
        for name in HEADERS:
            (pathlib.Path(directory) / name).symlink_to(f"/usr/include/{name}")

        command = [COMPILER, *FLAGS, f"-I{root}", "-isystem", directory, "-isystem", OPENBLAS]
        results = [subprocess.run([*command, "-c", source, "-o", os.devnull],
                                  capture_output=True, text=True, errors="replace")
                   for source in sources]
    failed = [source for source, result in zip(sources, results) if result.returncode != 0]
    for source, result in zip(sources, results):
        if result.stderr:
            print(f"{source.relative_to(root)}:\n{result.stderr[:3000]}")
    print(f"{len(sources)} files compiled, {len(failed)} failed")
    return 1 if failed or not sources else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
