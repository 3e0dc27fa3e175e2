"""Where programs and tests are: in a bundle, or in a build."""

import pathlib
import sys
import tarfile
import zipfile

TESTS = ("tests", "training_tests", "gather_bench")


def unpack(archive, directory):
    """Its one folder."""
    directory.mkdir(parents=True, exist_ok=True)
    if zipfile.is_zipfile(archive):
        sys.exit("run: a bundle is a tar archive")
    with tarfile.open(archive) as file:
        trusted = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        file.extractall(directory, **trusted)
    folders = [path for path in directory.iterdir() if path.is_dir()]
    if len(folders) != 1:
        sys.exit(f"run: {archive} has {len(folders)} folders, not one")
    return folders[0]


def locate(options, work):
    """The folder of the programs, and the tests by name: gpu_tests and so on."""
    if options.bundle:
        root = options.bundle
        if root.is_file():
            root = unpack(root, work / "bundle")
        programs, folder, prefix = root / "bin", root / "tests", "gpu"
    elif options.dry:
        programs, folder, prefix = options.build / "emulated_bin", options.build / "bin", "emulated"
    else:
        programs, folder, prefix = options.build / "bin", options.build / "bin", "gpu"
    tests = {f"gpu_{name}": (folder / f"{prefix}_{name}").resolve() for name in TESTS}
    for path in (programs / "ooc-train", programs / "ooc-prep", *tests.values()):
        if not pathlib.Path(path).exists():
            print(f"run: {path} is missing", file=sys.stderr)
    return programs.resolve(), tests
