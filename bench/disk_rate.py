"""A disk that moves no more than so many bytes a second in either direction, for this process and
all that it starts: fio and trainings meet the same disk, and it stays the same for hours."""

import atexit
import os
import pathlib

CGROUPS = pathlib.Path("/sys/fs/cgroup")


def hold(directory, bytes_per_second):
    """The disk of `directory`, by a cgroup of either version, until this process ends (root)."""
    disk = disk_of(directory)
    v1 = CGROUPS / "blkio"
    root = v1 if v1.is_dir() else CGROUPS
    before = root / group_of_this_process(root == v1)
    group = root / f"ooc-bench-disk-{os.getpid()}"
    group.mkdir()
    rate = round(bytes_per_second)
    if root == v1:
        for way in ("read", "write"):
            (group / f"blkio.throttle.{way}_bps_device").write_text(f"{disk} {rate}")
    else:
        (root / "cgroup.subtree_control").write_text("+io")
        (group / "io.max").write_text(f"{disk} rbps={rate} wbps={rate}")
    (group / "cgroup.procs").write_text(str(os.getpid()))
    atexit.register(leave, group, before)


def leave(group, before):
    (before / "cgroup.procs").write_text(str(os.getpid()))
    group.rmdir()


def group_of_this_process(is_v1):
    """Relative to the root of its hierarchy."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if (controllers == "") if not is_v1 else ("blkio" in controllers.split(",")):
            return path.lstrip("/")
    return ""


def disk_of(directory):
    """Major and minor number of the whole disk, also of a partition: no less can be held."""
    device = os.stat(directory).st_dev
    entry = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    if (entry / "partition").exists():
        entry = entry.parent
    return (entry / "dev").read_text().strip()
