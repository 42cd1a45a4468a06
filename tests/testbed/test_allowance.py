"""What a container or a job withholds: read from control groups of both versions, advised on, and looked at before a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks
from fabricbench.testbed.advice import SHARED_BYTES_A_RANK, AdviceWeight, advise_on_allowance
from fabricbench.testbed.allowance import Allowance, read_allowance, throttled_seconds
from fabricbench.testbed.preflight import allowed
from fabricbench.testbed.preflight_result import FindingSeverity, Preflight

V2 = {
    "proc/self/cgroup": "0::/pod/box\n",
    "sys/fs/cgroup/cgroup.procs": "1\n",
    "sys/fs/cgroup/pod/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/pod/cpu.stat": "usage_usec 5\nnr_periods 10\nnr_throttled 2\nthrottled_usec 2500000\n",
    "sys/fs/cgroup/pod/box/cpu.max": "max 100000\n",
    "sys/fs/cgroup/pod/box/pids.max": "20\n",
    "sys/fs/cgroup/pod/box/pids.current": "15\n",
}
V1 = {
    "proc/self/cgroup": "4:pids:/\n2:cpu,cpuacct:/docker/abc\n0::/\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "40000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 141\nnr_throttled 139\nthrottled_time 8000000000\n",
    "sys/fs/cgroup/pids/pids.max": "max\n",
}


def host(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_narrowest_quota_of_the_groups_above_counts(tmp_path: Path):
    found = read_allowance(host(tmp_path, V2))
    assert (found.processors, found.processes) == (1.5, 5)
    assert throttled_seconds(tmp_path) == 2.5


def test_groups_of_version_1_are_read_where_only_their_root_is_mounted(tmp_path: Path):
    found = read_allowance(host(tmp_path, V1))
    assert (found.processors, found.processes) == (0.4, None)
    assert throttled_seconds(tmp_path) == 8.0


def test_nothing_is_told_of_a_host_without_groups(tmp_path: Path):
    found = read_allowance(tmp_path)
    assert (found.processors, found.processes, throttled_seconds(tmp_path)) == (None, None, 0.0)


def test_shared_memory_that_is_missing_has_no_room(tmp_path: Path):
    assert read_allowance(tmp_path).shared_memory_bytes == 0
    (tmp_path / "dev/shm").mkdir(parents=True)
    assert (read_allowance(tmp_path).shared_memory_bytes or 0) > 0


def test_the_doctor_warns_of_what_is_withheld_and_of_nothing_else():
    found = list(advise_on_allowance(Allowance(processors=0.4, processes=25, shared_memory_bytes=65536), usable=2))
    assert [one.subject for one in found] == ["quota.processors", "shared_memory", "quota.processes"]
    assert all(one.weight is AdviceWeight.WARNING for one in found)
    assert list(advise_on_allowance(Allowance(), usable=2)) == []
    assert list(advise_on_allowance(Allowance(processors=2.0, shared_memory_bytes=2**30), usable=2)) == []


@pytest.mark.parametrize(
    ("allowance", "what"),
    [
        (Allowance(shared_memory_bytes=65536), "64 KiB free in /dev/shm"),
        (Allowance(shared_memory_bytes=2 * SHARED_BYTES_A_RANK - 1), "free in /dev/shm"),
        (Allowance(processes=7), "room for 7 more processes"),
        (Allowance(open_files=16), "a process may open 16 files"),
        (Allowance(file_bytes=65536), "a file may have 64 KiB"),
    ],
)
def test_what_two_ranks_cannot_run_with_refuses_the_run_as_the_environments_lack(allowance: Allowance, what: str):
    refusal = Preflight(findings=tuple(allowed("n0", allowance, 2))).refusal()
    assert isinstance(refusal, EnvironmentLacks)
    assert what in refusal.message


def test_one_rank_needs_no_shared_memory_and_a_narrow_quota_only_warns():
    assert list(allowed("n0", Allowance(shared_memory_bytes=0, processes=4), 1)) == []
    (found,) = allowed("n0", Allowance(processors=1.5), 2)
    assert (found.severity, found.found) == (FindingSeverity.WARNING, "a quota of 1.5 processors")
