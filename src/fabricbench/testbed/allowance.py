"""What a container, a job or a mount leaves a process of its host: processor time, processes, shared memory.

Processors stay visible where a quota withholds most of their time (`docker run --cpus`), so that nothing else tells. Control
groups of version 1 and 2 are read, from this process's own up to the root: the narrowest counts
(Documentation/admin-guide/cgroup-v2.rst of Linux).
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fabricbench.model import Model
from fabricbench.testbed.host import read_integer, read_text

SHARED_MEMORY = Path("dev/shm")
V2_MOUNTS = ("sys/fs/cgroup", "sys/fs/cgroup/unified")


class Allowance(Model):
    """What is left of the host. None where nothing limits it, or nobody tells.

    `processors` is how many the quota amounts to, `processes` how many more may be started, `shared_memory_bytes` what is free in
    /dev/shm: 0 where it is missing, read-only, or has no room for another file. `open_files` and `file_bytes` are limits of a
    process (ulimit -n, -f).
    """

    processors: float | None = None
    processes: int | None = None
    shared_memory_bytes: int | None = None
    open_files: int | None = None
    file_bytes: int | None = None


def read_allowance(root: Path) -> Allowance:
    """Return what this process may use."""
    quotas = [quota for folder in _groups(root, "cpu") if (quota := _quota(folder)) is not None]
    left = [number for folder in _groups(root, "pids") if (number := _processes(folder)) is not None]
    return Allowance(
        processors=min(quotas, default=None),
        processes=min(left, default=None),
        shared_memory_bytes=_free_bytes(root / SHARED_MEMORY),
        open_files=_limit(resource.RLIMIT_NOFILE),
        file_bytes=_limit(resource.RLIMIT_FSIZE),
    )


def throttled_seconds(root: Path = Path("/")) -> float:
    """Return for how long quotas have withheld processors from this process's control groups since those were made, all summed."""
    return max((_throttled(folder) for folder in _groups(root, "cpu")), default=0.0)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control groups that a controller may have limits in, the innermost first."""
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            mounts = [root / mount for mount in V2_MOUNTS if (root / mount / "cgroup.procs").exists()]
        elif controller in controllers.split(","):
            mounts = [root / "sys/fs/cgroup" / name for name in (controllers, controller)]
        else:
            continue
        for mount in dict.fromkeys(mounts):
            folder = mount / path.lstrip("/")
            # In a container the path may be that of the host, of which only the root is mounted.
            yield from (one for one in (folder, *folder.parents) if one.is_relative_to(mount) and one.is_dir())


def _limit(which: int) -> int | None:
    allowed, _ = resource.getrlimit(which)
    return None if allowed == resource.RLIM_INFINITY else allowed


def _quota(folder: Path) -> float | None:
    words = (read_text(folder / "cpu.max") or "").split()
    if len(words) != 2:
        words = [str(read_integer(folder / f"cpu.cfs_{name}_us")) for name in ("quota", "period")]
    if not all(re.fullmatch(r"\d+", word) for word in words) or int(words[1]) == 0:  # `max`, -1 and nothing: no quota
        return None
    return int(words[0]) / int(words[1])


def _throttled(folder: Path) -> float:
    """Return the seconds: `throttled_usec` of version 2, `throttled_time` in nanoseconds of version 1."""
    found = dict(re.findall(r"^(\w+) (\d+)$", read_text(folder / "cpu.stat") or "", re.MULTILINE))
    return int(found.get("throttled_usec", 0)) * 1e-6 or int(found.get("throttled_time", 0)) * 1e-9


def _processes(folder: Path) -> int | None:
    most = read_integer(folder / "pids.max")
    return None if most is None else max(0, most - (read_integer(folder / "pids.current") or 0))


def _free_bytes(folder: Path) -> int | None:
    with suppress(OSError):
        found = os.statvfs(folder)
        is_writable = os.access(folder, os.W_OK) and not found.f_flag & os.ST_RDONLY
        has_room = found.f_favail > 0 or found.f_files == 0  # file systems without a table of files say 0 of 0
        return found.f_bavail * found.f_frsize if is_writable and has_room else 0
    return 0
