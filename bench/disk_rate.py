"""A disk that moves no more than so many bytes a second in either direction, for this process and
all that it starts: fio and trainings meet the same disk, and it stays the same for hours. What goes
through the page cache isn't held on its way to the disk."""

import atexit
import os
import pathlib
import sys

BLKIO = pathlib.Path("/sys/fs/cgroup/blkio")


def hold(directory, bytes_per_second):
    """The disk of `directory`, until this process ends (root). By version 1 of cgroups: in version
    2 a process is in one group, and trainings go into those that limit their memory."""
    if not BLKIO.is_dir():
        sys.exit(f"--disk-rate needs {BLKIO}, of version 1 of cgroups; leave it out here")
    disk, rate, before = disk_of(directory), round(bytes_per_second), group_of_this_process()
    group = BLKIO / f"ooc-bench-disk-{os.getpid()}"
    group.mkdir()
    atexit.register(leave, group, before)
    for way in ("read", "write"):
        (group / f"blkio.throttle.{way}_bps_device").write_text(f"{disk} {rate}")
    (group / "cgroup.procs").write_text(str(os.getpid()))


def leave(group, before):
    (before / "cgroup.procs").write_text(str(os.getpid()))
    group.rmdir()


def group_of_this_process():
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "blkio" in controllers.split(","):
            return BLKIO / path.lstrip("/")
    return BLKIO


def disk_of(directory):
    """Major and minor number of the whole disk, also of a partition: no less can be held."""
    device = os.stat(directory).st_dev
    entry = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    if (entry / "partition").exists():
        entry = entry.parent
    return (entry / "dev").read_text().strip()
